"""What the paced server says: completions in the form of OpenAI's API, each token in an event that tells when it was sent."""

import json
import time
from array import array
from functools import lru_cache
from typing import Any

__all__ = ["PacedStream", "error", "json_response", "whole_answer", "whole_stream"]

_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_DONE = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_WORDS = (" river", " stone", " garden", " winter", " music", " paper", " window", " silver")
_CREATED = int(time.time())


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _piece(chat: bool, text: str, finish: str | None = None, role: bool = False) -> bytes:
    """The `choices` of one event."""
    choice: dict[str, Any] = {"index": 0}
    if chat:
        choice["delta"] = {"role": "assistant", "content": ""} if role else {"content": text} if text else {}
    else:
        choice["text"] = text
    return b'"choices":' + _text([choice | {"logprobs": None, "finish_reason": finish}])


_TOKENS = {chat: [_piece(chat, word) for word in _WORDS] for chat in (True, False)}
_ROLE = _piece(True, "", role=True)
_FINISH = {chat: _piece(chat, "", finish="length") for chat in (True, False)}


class PacedStream:
    """
    A stream whose events become due one after the other.

    Args:
        number: its own, for its id.
        chat: whether it is a chat completion, or else a text completion.
        model: who answers.
        tokens: how many; one in each event.
        prompt_tokens: for the usage; None where none is asked for.
        pace: `ttft_ms`, `itl_ms`, a `name`, and `stamped`, whether events say when they were sent (they do by default).
        t_recv: when its request had arrived, in nanoseconds.

    Attributes:
        sent: when each token was sent.
        blocked: how many of them found the socket full: their stamps are worth nothing.
    """

    def __init__(
        self,
        number: int,
        chat: bool,
        model: str,
        tokens: int,
        prompt_tokens: int | None,
        pace: dict[str, Any],
        t_recv: int,
    ) -> None:
        self.number = number
        self.sent = array("q")
        self.blocked = 0
        self._chat = chat
        self._head = _head(chat, number, model)
        self._tokens = tokens
        self._usage = None if prompt_tokens is None else _usage(prompt_tokens, tokens)
        self._name = str(pace.get("name", ""))
        self._stamped = bool(pace.get("stamped", True))
        self._t_recv = t_recv
        self._first_ns: int = t_recv + round(pace.get("ttft_ms", 0) * 1e6)
        self._gap_ns: int = round(pace.get("itl_ms", 0) * 1e6)

    @property
    def due(self) -> int:
        """When the next token is due, in nanoseconds."""
        return self._first_ns + len(self.sent) * self._gap_ns

    @property
    def over(self) -> bool:
        """Whether the last token has been sent."""
        return len(self.sent) == self._tokens

    def event(self, now: int) -> bytes:
        """The next token and what goes with it, to be sent at once."""
        k = len(self.sent)
        self.sent.append(now)
        stamp, received = (b',"t_ns":%d' % now, b',"t_recv_ns":%d' % self._t_recv) if self._stamped else (b"", b"")
        piece = _TOKENS[self._chat][(self.number + k) % len(_WORDS)]
        if k:
            data = _event(self._head, piece, stamp)
        else:
            role = _event(self._head, _ROLE, stamp) if self._chat else b""
            first = _event(self._head, piece, stamp + received)
            data = _STREAM_HEAD + role + first
        return data + _tail(self._chat, self._head, self._usage, stamp) if self.over else data

    def told(self) -> dict[str, Any]:
        """What became of it."""
        times = {"t_recv": self._t_recv, "t_w": list(self.sent)}
        return {"name": self._name, "tokens": self._tokens, "blocked": self.blocked, **times}


@lru_cache(maxsize=64)
def whole_stream(chat: bool, model: str, tokens: int, prompt_tokens: int | None) -> bytes:
    """A stream without a pace; with usage where `prompt_tokens` are given."""
    head = _head(chat, 0, model)
    usage = None if prompt_tokens is None else _usage(prompt_tokens, tokens)
    events = [_event(head, _TOKENS[chat][k % len(_WORDS)]) for k in range(tokens)]
    return b"".join([_STREAM_HEAD, *([_event(head, _ROLE)] if chat else []), *events, _tail(chat, head, usage)])


def whole_answer(chat: bool, model: str, tokens: int, prompt_tokens: int) -> bytes:
    """What is sent where no stream is asked for."""
    text = "".join(_WORDS[k % len(_WORDS)] for k in range(tokens))
    told: dict[str, Any] = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    choice = {"index": 0, **told, "logprobs": None, "finish_reason": "length"}
    id, kind = ("chatcmpl-0", "chat.completion") if chat else ("cmpl-0", "text_completion")
    answer = {"id": id, "object": kind, "created": _CREATED, "model": model, "choices": [choice]}
    return json_response(answer | {"usage": _usage(prompt_tokens, tokens)})


def json_response(value: Any, status: str = "200 OK") -> bytes:
    """A response whose body is this."""
    body = _text(value)
    return f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def error(status: str, message: str) -> bytes:
    """A refusal in OpenAI's form."""
    told = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return json_response({"error": told}, status)


def _head(chat: bool, number: int, model: str) -> bytes:
    """What every event of an answer begins with."""
    kind, name = ("chat.completion.chunk", "chatcmpl") if chat else ("text_completion", "cmpl")
    data = {"id": f"{name}-{number:08d}", "object": kind, "created": _CREATED, "model": model}
    return b"data: " + _text(data)[:-1] + b","


def _event(head: bytes, piece: bytes, more: bytes = b"") -> bytes:
    """One event as one chunk."""
    return b"%x\r\n%b%b%b}\n\n\r\n" % (len(head) + len(piece) + len(more) + 3, head, piece, more)


def _tail(chat: bool, head: bytes, usage: dict[str, int] | None, more: bytes = b"") -> bytes:
    """What follows the last token."""
    told = b"" if usage is None else _event(head, b'"choices":[],"usage":' + _text(usage), more)
    return _event(head, _FINISH[chat], more) + told + _DONE


def _usage(prompt_tokens: int, tokens: int) -> dict[str, int]:
    return {"prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": prompt_tokens + tokens}
