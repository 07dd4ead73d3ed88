"""The JSON objects of an answer, whole and in chunks, as the documents describe them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.contract import CHAT, COMPLETIONS
from streamgauge.contract.profile import ANY, Dialect
from streamgauge.reference.logprobs import chat_logprobs, completion_logprobs, prompt_logprobs
from streamgauge.reference.model import Choice, Piece
from streamgauge.reference.parameters import Parameters
from streamgauge.reference.tools import Call

__all__ = ["FAMILIES", "ChatShape", "CompletionShape"]


@dataclass(frozen=True, slots=True)
class ChatShape:
    """The choices of `chat.completion` and `chat.completion.chunk` objects."""

    parameters: Parameters
    dialect: Dialect
    unique: str
    id_prefix = "chatcmpl-"
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def whole(self, choice: Choice) -> dict[str, Any]:
        """A choice of a whole answer."""
        prefix = self.parameters.prefixes[choice.prompt]
        message: dict[str, Any] = {"role": "assistant", "content": prefix + choice.text}
        if choice.call:
            call = {**self._called(choice), "function": _function(choice.call.name, choice.text)}
            message |= {"content": prefix or None, "tool_calls": [call]}
        if choice.reasoning and self.parameters.shows_reasoning:
            message[self._reasoning_field] = "".join(piece.text for piece in choice.reasoning)
        return {
            "index": choice.index,
            "message": message,
            "logprobs": None if choice.call else self._logprobs(choice.pieces),
            "finish_reason": choice.finish_reason,
            "stop_reason": choice.stop_reason,
        }

    def opening(self, choice: Choice) -> list[dict[str, Any]]:
        """What a choice's stream begins with before any token: the role."""
        return [_delta(choice, {"role": "assistant", "content": None if choice.call else ""})]

    def prefix(self, choice: Choice) -> list[dict[str, Any]]:
        """The message that `echo` prepends, if any."""
        text = self.parameters.prefixes[choice.prompt]
        return [_delta(choice, {"content": text})] if text else []

    def calling(self, choice: Choice, call: Call) -> dict[str, Any]:
        """The beginning of a call: all but the arguments."""
        called = {"index": 0, **self._called(choice), "function": _function(call.name, "")}
        return _delta(choice, {"tool_calls": [called]})

    def thought(self, choice: Choice, piece: Piece) -> dict[str, Any]:
        """One token of reasoning."""
        return _delta(choice, {self._reasoning_field: piece.text})

    def token(self, choice: Choice, piece: Piece, offset: int) -> dict[str, Any]:
        """One token's part of a stream; chat counts no offsets."""
        del offset
        if choice.call:
            return _delta(choice, {"tool_calls": [{"index": 0, "function": {"arguments": piece.text}}]})
        return {**_delta(choice, {"content": piece.text}), "logprobs": self._logprobs([piece])}

    def finish(self, choice: Choice) -> dict[str, Any]:
        """The end of a choice's stream."""
        return {
            **_delta(choice, {}),
            "finish_reason": choice.finish_reason,
            "stop_reason": choice.stop_reason,
        }

    def _called(self, choice: Choice) -> dict[str, Any]:
        return {"id": f"call_{self.unique}-{choice.index}", "type": "function"}

    @property
    def _reasoning_field(self) -> str:
        """Where every name is taken, vLLM's present one."""
        return "reasoning" if self.dialect.reasoning_field == ANY else self.dialect.reasoning_field

    def _logprobs(self, pieces: Sequence[Piece]) -> dict[str, Any] | None:
        wanted = self.parameters.logprobs
        return None if wanted is None else chat_logprobs(pieces, wanted)


@dataclass(frozen=True, slots=True)
class CompletionShape:
    """The choices of `text_completion` objects, which have neither reasoning nor calls."""

    parameters: Parameters
    dialect: Dialect
    unique: str
    id_prefix = "cmpl-"
    whole_object = "text_completion"
    chunk_object = "text_completion"

    def whole(self, choice: Choice) -> dict[str, Any]:
        """A choice of a whole answer."""
        prefix = self.parameters.prefixes[choice.prompt]
        return {
            "index": choice.index,
            "text": prefix + choice.text,
            "logprobs": self._whole_logprobs(choice, len(prefix)),
            "finish_reason": choice.finish_reason,
            "stop_reason": choice.stop_reason,
        }

    def opening(self, choice: Choice) -> list[dict[str, Any]]:
        """Nothing comes before the first token."""
        del choice
        return []

    def prefix(self, choice: Choice) -> list[dict[str, Any]]:
        """The prompt that `echo` repeats."""
        if not self.parameters.echo:
            return []
        text = self.parameters.prefixes[choice.prompt]
        return [{**_text(choice, text), "logprobs": self._prompt_logprobs(choice)}]

    def thought(self, choice: Choice, piece: Piece) -> dict[str, Any]:
        """Never asked for: see :class:`Parameters`."""
        raise NotImplementedError

    def calling(self, choice: Choice, call: Call) -> dict[str, Any]:
        """Never asked for: see :class:`Parameters`."""
        raise NotImplementedError

    def token(self, choice: Choice, piece: Piece, offset: int) -> dict[str, Any]:
        """One token's part of a stream, `offset` characters behind the beginning of the choice's text."""
        wanted = self.parameters.logprobs
        logprobs = None if wanted is None else completion_logprobs([piece], wanted, offset)
        return {**_text(choice, piece.text), "logprobs": logprobs}

    def finish(self, choice: Choice) -> dict[str, Any]:
        """The end of a choice's stream."""
        return {**_text(choice, ""), "finish_reason": choice.finish_reason, "stop_reason": choice.stop_reason}

    def _prompt_logprobs(self, choice: Choice) -> dict[str, Any] | None:
        wanted = self.parameters.logprobs
        return None if wanted is None else prompt_logprobs(self.parameters.prompts[choice.prompt].tokens, wanted)

    def _whole_logprobs(self, choice: Choice, offset: int) -> dict[str, Any] | None:
        wanted = self.parameters.logprobs
        if wanted is None:
            return None
        arrays = completion_logprobs(choice.pieces, wanted, offset)
        if self.parameters.echo:
            before = self._prompt_logprobs(choice) or {}
            arrays = {name: before[name] + values for name, values in arrays.items()}
        return arrays


FAMILIES: dict[str, type[ChatShape] | type[CompletionShape]] = {CHAT: ChatShape, COMPLETIONS: CompletionShape}
"""Family of an operation → the shape of its answers."""


def _delta(choice: Choice, delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": None}


def _function(name: str, arguments: str) -> dict[str, str]:
    return {"name": name, "arguments": arguments}


def _text(choice: Choice, text: str) -> dict[str, Any]:
    return {"index": choice.index, "text": text, "logprobs": None, "finish_reason": None}
