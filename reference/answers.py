"""A valid request's answer as payloads with the times at which they are due."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.profile import Dialect
from streamgauge.reference.costs import metrics, usage
from streamgauge.reference.model import Choice, Piece, generate
from streamgauge.reference.parameters import Parameters
from streamgauge.reference.settings import Settings
from streamgauge.reference.shapes import FAMILIES

__all__ = ["Answer", "Payload", "to_json"]


def to_json(value: Any) -> bytes:
    """JSON with its text as UTF-8 and without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


@dataclass(frozen=True, slots=True)
class Payload:
    """
    A part of an answer.

    Attributes:
        due_ms: milliseconds from the request to its writing, at the earliest.
        body: a whole body, or one chunk of a stream; None for the stream's `[DONE]`.
        tokens: generated tokens that it brings.
    """

    due_ms: float
    body: dict[str, Any] | None
    tokens: int = 0


class Answer:
    """
    What the pseudo-model answers to one request.

    Args:
        parameters: the request.
        dialect: in which form it is told.
        settings: for the pace.
        unique: makes the answer's id unique where the request gives none.
        created: Unix time in seconds.
    """

    def __init__(
        self, parameters: Parameters, dialect: Dialect, settings: Settings, *, unique: str, created: int
    ) -> None:
        self.parameters = parameters
        self.choices: list[Choice] = generate(parameters)
        self._settings = settings
        self._shape = FAMILIES[parameters.family](parameters, dialect, parameters.request_id or unique)
        self._usage_apart = parameters.include_usage and dialect.usage_chunk != "last-choice"
        self._usage_beside = parameters.include_usage and dialect.usage_chunk == "last-choice"
        self._frame = {
            "id": self._shape.id_prefix + (parameters.request_id or unique),
            "created": created,
            "model": parameters.model,
        }

    @property
    def completion_tokens(self) -> int:
        """Tokens generated over all choices."""
        return sum(choice.generated for choice in self.choices)

    def whole(self) -> Payload:
        """The answer in one piece, due when its last token is."""
        body = {
            **self._frame,
            "object": self._shape.whole_object,
            "choices": [self._shape.whole(choice) for choice in self.choices],
            "usage": self._usage(self.completion_tokens),
            **metrics(self._settings, self._steps, self.parameters.described),
        }
        return Payload(self._due(self._steps - 1), body, self.completion_tokens)

    def chunks(self) -> Iterator[Payload]:
        """The answer as the chunks of a stream: at each token step, one for each choice that is not finished."""
        done = 0
        offsets = [0] * len(self.choices)
        following = [iter((*self._told(choice), *choice.pieces)) for choice in self.choices]
        last = max(self.choices, key=lambda choice: (choice.generated, choice.index))
        upcoming = [next(pieces, None) for pieces in following]
        for choice in self.choices:
            for opening in self._shape.opening(choice):
                yield self._chunk(0, opening, done)
        for choice in self.choices:
            for prefix in self._shape.prefix(choice):
                offsets[choice.index] = len(self.parameters.prefixes[choice.prompt])
                yield self._chunk(self._due(0), prefix, done)
        for step in range(self._steps):
            due = self._due(step)
            for index, choice in enumerate(self.choices):
                if step >= choice.generated:
                    continue
                done += 1
                piece = upcoming[index]
                if piece is not None and piece.step == step:
                    if step < len(choice.reasoning):
                        yield self._chunk(due, self._shape.thought(choice, piece), done, tokens=1)
                    else:
                        if choice.call and step == len(choice.reasoning):
                            yield self._chunk(due, self._shape.calling(choice, choice.call), done)
                        yield self._chunk(due, self._shape.token(choice, piece, offsets[index]), done, tokens=1)
                        offsets[index] += len(piece.text)
                    upcoming[index] = next(following[index], None)
                if step == choice.generated - 1:
                    hidden = choice.generated - len(self._told(choice)) - len(choice.pieces)
                    beside = self._usage_beside and choice is last
                    yield self._chunk(due, self._shape.finish(choice), done, tokens=hidden, usage_too=beside)
        if self._usage_apart:
            yield self._chunk(self._due(self._steps - 1), None, done)
        yield Payload(self._due(self._steps - 1), None)

    def _usage(self, done: int) -> dict[str, Any]:
        """The cost when `done` tokens are generated; every choice thinks first."""
        reasoning = min(done, sum(len(choice.reasoning) for choice in self.choices))
        return usage(self.parameters.prompt_tokens, done, reasoning=reasoning, told=self.parameters.described)

    def _told(self, choice: Choice) -> tuple[Piece, ...]:
        """The reasoning, if it is to be shown."""
        return choice.reasoning if self.parameters.shows_reasoning else ()

    @property
    def _steps(self) -> int:
        return max(choice.generated for choice in self.choices)

    def _due(self, step: int) -> float:
        return self._settings.ttft_ms + step * self._settings.itl_ms

    def _chunk(
        self, due: float, choice: dict[str, Any] | None, done: int, *, tokens: int = 0, usage_too: bool = False
    ) -> Payload:
        """One chunk with one choice; with none it is the chunk that brings the usage."""
        body: dict[str, Any] = {
            **self._frame,
            "object": self._shape.chunk_object,
            "choices": [] if choice is None else [choice],
        }
        if choice is None or usage_too or self.parameters.continuous_usage:
            body["usage"] = self._usage(done)
        if choice is None:
            body |= metrics(self._settings, self._steps, self.parameters.described)
        return Payload(due, body, tokens)
