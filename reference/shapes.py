"""The JSON objects of an answer, whole and in chunks, as the documents describe them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.contract import CHAT, COMPLETIONS
from streamgauge.contract.profile import ANY, Dialect
from streamgauge.reference.logprobs import chat_logprobs, completion_logprobs, prompt_logprobs
from streamgauge.reference.model import Choice, Piece
from streamgauge.reference.parameters import Parameters

__all__ = ["FAMILIES", "ChatShape", "CompletionShape", "usage"]


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """The usage object."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


@dataclass(frozen=True, slots=True)
class ChatShape:
    """The choices of `chat.completion` and `chat.completion.chunk` objects."""

    parameters: Parameters
    dialect: Dialect
    id_prefix = "chatcmpl-"
    whole_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def whole(self, choice: Choice) -> dict[str, Any]:
        """A choice of a whole answer."""
        text = self.parameters.prefixes[choice.prompt] + choice.text
        message = {"role": "assistant", "content": text}
        if choice.reasoning and self.parameters.shows_reasoning:
            message[self._reasoning_field] = "".join(piece.text for piece in choice.reasoning)
        return {
            "index": choice.index,
            "message": message,
            "logprobs": self._logprobs(choice.pieces),
            "finish_reason": choice.finish_reason,
            "stop_reason": choice.stop_reason,
        }

    def opening(self, choice: Choice) -> list[dict[str, Any]]:
        """What a choice's stream begins with before any token: the role."""
        return [_delta(choice, {"role": "assistant", "content": ""})]

    def prefix(self, choice: Choice) -> list[dict[str, Any]]:
        """The message that `echo` prepends, if any."""
        text = self.parameters.prefixes[choice.prompt]
        return [_delta(choice, {"content": text})] if text else []

    def thought(self, choice: Choice, piece: Piece) -> dict[str, Any]:
        """One token of reasoning."""
        return _delta(choice, {self._reasoning_field: piece.text})

    def token(self, choice: Choice, piece: Piece, offset: int) -> dict[str, Any]:
        """One token's part of a stream; chat counts no offsets."""
        del offset
        return {**_delta(choice, {"content": piece.text}), "logprobs": self._logprobs([piece])}

    def finish(self, choice: Choice) -> dict[str, Any]:
        """The end of a choice's stream."""
        return {
            **_delta(choice, {}),
            "finish_reason": choice.finish_reason,
            "stop_reason": choice.stop_reason,
        }

    @property
    def _reasoning_field(self) -> str:
        """Where every name is taken, vLLM's present one."""
        return "reasoning" if self.dialect.reasoning_field == ANY else self.dialect.reasoning_field

    def _logprobs(self, pieces: Sequence[Piece]) -> dict[str, Any] | None:
        wanted = self.parameters.logprobs
        return None if wanted is None else chat_logprobs(pieces, wanted)


@dataclass(frozen=True, slots=True)
class CompletionShape:
    """The choices of `text_completion` objects, which have no reasoning."""

    parameters: Parameters
    dialect: Dialect
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


def _text(choice: Choice, text: str) -> dict[str, Any]:
    return {"index": choice.index, "text": text, "logprobs": None, "finish_reason": None}
