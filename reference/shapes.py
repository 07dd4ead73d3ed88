"""The JSON objects of an answer, whole and in chunks, as the documents describe them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.contract import CHAT, COMPLETIONS
from streamgauge.contract.profile import ANY, Dialect
from streamgauge.reference.logprobs import chat_logprobs, completion_logprobs, echoed_logprobs, prompt_logprobs
from streamgauge.reference.model import Choice, Piece
from streamgauge.reference.parameters import Parameters

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
        if choice.calls:
            calls = [
                {**self._called(choice, number), "function": _function(call.name, choice.arguments(number))}
                for number, call in enumerate(choice.calls)
            ]
            message |= {"content": prefix or None, "tool_calls": calls}
        if choice.reasoning and self.parameters.shows_reasoning:
            message[self._reasoning_field] = "".join(piece.text for piece in choice.reasoning)
        return {
            "index": choice.index,
            "message": message,
            "logprobs": None if choice.calls else self._logprobs(choice.pieces),
            "finish_reason": choice.finish_reason,
            "stop_reason": choice.stop_reason,
            **_told_ids(self.parameters, choice.tokens),
        }

    def beside(self, *, first: bool = True, streamed: bool = False) -> dict[str, Any]:
        """What the whole answer, or the first chunk, has beside its choices: about the prompt."""
        if not first:
            return {}
        asked, [prompt] = self.parameters, self.parameters.prompts
        told: dict[str, Any] = {}
        if asked.tells_ids:
            told["prompt_token_ids"] = list(prompt.ids)
        if asked.tells_prompt:
            told["prompt_text"] = prompt.text
        if asked.prompt_logprobs is not None and not streamed:
            told["prompt_logprobs"] = prompt_logprobs(prompt.ids, asked.prompt_logprobs)
        return told

    def of_prompt(self, choice: Choice, *, first: bool) -> dict[str, Any]:
        """Nothing: what is said of the prompt stands beside the choices."""
        del choice, first
        return {}

    def opening(self, choice: Choice) -> list[dict[str, Any]]:
        """What a choice's stream begins with before any token: the role."""
        return [_delta(choice, {"role": "assistant", "content": None if choice.calls else ""})]

    def prefix(self, choice: Choice) -> list[dict[str, Any]]:
        """The message that `echo` prepends, if any."""
        text = self.parameters.prefixes[choice.prompt]
        return [_delta(choice, {"content": text})] if text else []

    def calling(self, choice: Choice, number: int) -> dict[str, Any]:
        """The beginning of a call: all but the arguments."""
        function = _function(choice.calls[number].name, "")
        called = {"index": number, **self._called(choice, number), "function": function}
        return _delta(choice, {"tool_calls": [called]})

    def thought(self, choice: Choice, piece: Piece) -> dict[str, Any]:
        """One token of reasoning."""
        return _delta(choice, {self._reasoning_field: piece.text})

    def token(self, choice: Choice, piece: Piece, offset: int) -> dict[str, Any]:
        """One token's part of a stream; chat counts no offsets."""
        del offset
        if choice.calls:
            return _delta(choice, {"tool_calls": [{"index": piece.call, "function": {"arguments": piece.text}}]})
        return {**_delta(choice, {"content": piece.text}), "logprobs": self._logprobs([piece])}

    def finish(self, choice: Choice) -> dict[str, Any]:
        """The end of a choice's stream."""
        return {
            **_delta(choice, {}),
            "finish_reason": choice.finish_reason,
            "stop_reason": choice.stop_reason,
        }

    def _called(self, choice: Choice, number: int) -> dict[str, Any]:
        return {"id": f"call_{self.unique}-{choice.index}" + (f"-{number}" if number else ""), "type": "function"}

    @property
    def _reasoning_field(self) -> str:
        """Where every name is taken, vLLM's present one."""
        return "reasoning" if self.dialect.reasoning_field == ANY else self.dialect.reasoning_field

    def _logprobs(self, pieces: Sequence[Piece]) -> dict[str, Any] | None:
        wanted = self.parameters.logprobs
        return None if wanted is None else chat_logprobs(pieces, self.parameters)


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
            **_told_ids(self.parameters, choice.tokens),
            **self._of_prompt(choice),
        }

    def beside(self, *, first: bool = True, streamed: bool = False) -> dict[str, Any]:
        """Nothing: what is said of a prompt stands in its choices."""
        del first, streamed
        return {}

    def of_prompt(self, choice: Choice, *, first: bool) -> dict[str, Any]:
        """The prompt's tokens, in the first chunk of a choice whose tokens are told."""
        return {"prompt_token_ids": list(self.parameters.prompts[choice.prompt].ids)} if first else {}

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

    def calling(self, choice: Choice, number: int) -> dict[str, Any]:
        """Never asked for: see :class:`Parameters`."""
        raise NotImplementedError

    def token(self, choice: Choice, piece: Piece, offset: int) -> dict[str, Any]:
        """One token's part of a stream, `offset` characters behind the beginning of the choice's text."""
        wanted = self.parameters.logprobs
        logprobs = None if wanted is None else completion_logprobs([piece], self.parameters, offset)
        return {**_text(choice, piece.text), "logprobs": logprobs}

    def finish(self, choice: Choice) -> dict[str, Any]:
        """The end of a choice's stream."""
        return {**_text(choice, ""), "finish_reason": choice.finish_reason, "stop_reason": choice.stop_reason}

    def _of_prompt(self, choice: Choice) -> dict[str, Any]:
        asked, prompt = self.parameters, self.parameters.prompts[choice.prompt]
        told: dict[str, Any] = {"prompt_token_ids": list(prompt.ids)} if asked.tells_ids else {}
        if asked.prompt_logprobs is not None:
            told["prompt_logprobs"] = prompt_logprobs(prompt.ids, asked.prompt_logprobs)
        return told

    def _prompt_logprobs(self, choice: Choice) -> dict[str, Any] | None:
        wanted = self.parameters.logprobs
        return (
            None if wanted is None else echoed_logprobs(self.parameters.prompts[choice.prompt].shown, self.parameters)
        )

    def _whole_logprobs(self, choice: Choice, offset: int) -> dict[str, Any] | None:
        wanted = self.parameters.logprobs
        if wanted is None:
            return None
        arrays = completion_logprobs(choice.pieces, self.parameters, offset)
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


def _told_ids(parameters: Parameters, tokens: Sequence[int]) -> dict[str, Any]:
    return {"token_ids": list(tokens)} if parameters.tells_ids else {}
