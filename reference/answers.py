"""A valid request's answer as payloads with the times at which they are due."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from streamgauge.contract.profile import Dialect
from streamgauge.reference.costs import metrics, tier, usage
from streamgauge.reference.model import Choice, Piece, generate
from streamgauge.reference.parameters import Parameters
from streamgauge.reference.settings import Settings
from streamgauge.reference.shapes import FAMILIES, ChatShape, CompletionShape

__all__ = ["Answer", "Payload", "to_json"]


def to_json(value: Any) -> bytes:
    """JSON with its text as UTF-8 and without white space."""
    return orjson.dumps(value)


@dataclass(frozen=True, slots=True)
class Payload:
    """
    A part of an answer.

    Attributes:
        due_ms: milliseconds from the answer's beginning to its writing, at the earliest. Behind an accelerator the answer's own
            clock counts: see `Accelerator.due`.
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
        self.choices: list[Choice]
        self.choices, self._unshown = generate(parameters, unique)
        self._settings = settings
        self._shape = FAMILIES[parameters.family](parameters, dialect, parameters.request_id or unique)
        self._usage_apart = parameters.include_usage and dialect.usage_chunk != "last-choice"
        self._usage_beside = parameters.include_usage and dialect.usage_chunk == "last-choice"
        self._frame = {
            "id": self._shape.id_prefix + (parameters.request_id or unique),
            "created": created,
            "model": parameters.model,
            **tier(parameters.service_tier, parameters.described),
        }

    @property
    def completion_tokens(self) -> int:
        """Tokens generated over all choices, those that `best_of` left out included."""
        return sum(choice.generated for choice in self.choices) + self._unshown

    @property
    def steps(self) -> int:
        """How many steps generate it: each makes a token of every choice that is not finished."""
        return max(1, *(choice.generated for choice in self.choices))

    def whole(self) -> Payload:
        """The answer in one piece, due when its last token is."""
        body = {
            **self._frame,
            "object": self._shape.whole_object,
            "choices": [self._shape.whole(choice) for choice in self.choices],
            "usage": self._usage(self.completion_tokens),
            **self._shape.beside(),
            **metrics(self._settings, self.steps, self.parameters.described),
        }
        return Payload(self._due(self.steps - 1), body, self.completion_tokens)

    def chunks(self) -> Iterator[Payload]:
        """The answer as the chunks of a stream: at each token step, one for each choice that is not finished."""
        tellings = [_Telling(choice, self._shape, self._told(choice)) for choice in self.choices]
        last = max(self.choices, key=lambda choice: (choice.generated, choice.index))
        done = 0
        first = True
        for due, telling, part, ids in self._parts(tellings):
            choice = telling.choice
            done += len(ids)
            if self.parameters.tells_ids:
                part |= {"token_ids": list(ids), **self._shape.of_prompt(choice, first=telling.first)}
            telling.first = False
            beside = self._usage_beside and choice is last and part["finish_reason"] is not None
            yield self._chunk(due, part, done, tokens=len(ids), usage_too=beside, first=first)
            first = False
        if self._usage_apart:
            yield self._chunk(self._due(self.steps - 1), None, done)
        yield Payload(self._due(self.steps - 1), None)

    def _parts(self, tellings: "list[_Telling]") -> "Iterator[tuple[float, _Telling, dict[str, Any], Sequence[int]]]":
        """When each part of a choice is due, whose it is, and the tokens that it brings."""
        for telling in tellings:
            for opening in self._shape.opening(telling.choice):
                yield 0, telling, opening, ()
        for telling in tellings:
            for prefix in self._shape.prefix(telling.choice):
                telling.offset = len(self.parameters.prefixes[telling.choice.prompt])
                yield self._due(0), telling, prefix, ()
        for step in range(self.steps):
            due = self._due(step)
            for telling in tellings:
                for part, ids in telling.at(step):
                    yield due, telling, part, ids
        for telling in tellings:
            if not telling.choice.generated:
                yield self._due(0), telling, self._shape.finish(telling.choice), ()

    def _usage(self, done: int) -> dict[str, Any]:
        """The cost when `done` tokens are generated; every choice thinks first."""
        reasoning = min(done, sum(len(choice.reasoning) for choice in self.choices))
        return usage(self.parameters.prompt_tokens, done, reasoning=reasoning, told=self.parameters.described)

    def _told(self, choice: Choice) -> tuple[Piece, ...]:
        """The reasoning, if it is to be shown."""
        return choice.reasoning if self.parameters.shows_reasoning else ()

    def _due(self, step: int) -> float:
        if self._settings.accelerated:
            return step + 1
        return self._settings.ttft_ms + step * self._settings.itl_ms

    def _chunk(
        self,
        due: float,
        choice: dict[str, Any] | None,
        done: int,
        *,
        tokens: int = 0,
        usage_too: bool = False,
        first: bool = False,
    ) -> Payload:
        """One chunk with one choice; with none it is the chunk that brings the usage."""
        body: dict[str, Any] = {
            **self._frame,
            "object": self._shape.chunk_object,
            "choices": [] if choice is None else [choice],
            **self._shape.beside(first=first, streamed=True),
        }
        if choice is None or usage_too or self.parameters.continuous_usage:
            body["usage"] = self._usage(done)
        if choice is None:
            body |= metrics(self._settings, self.steps, self.parameters.described)
        return Payload(due, body, tokens)


class _Telling:
    """How far one choice has been told in a stream."""

    def __init__(self, choice: Choice, shape: ChatShape | CompletionShape, told: Sequence[Piece]) -> None:
        self.choice = choice
        self.offset = 0
        self.first = True
        self._shape = shape
        self._following = iter((*told, *choice.pieces))
        self._piece = next(self._following, None)
        self._sent = 0
        self._begun = 0

    def at(self, step: int) -> Iterator[tuple[dict[str, Any], Sequence[int]]]:
        """What the token of this step brings, with all tokens that nothing has told of."""
        choice, piece = self.choice, self._piece
        if step >= choice.generated:
            return
        if piece is not None and piece.step == step:
            if step < len(choice.reasoning):
                yield self._shape.thought(choice, piece), self._ids(step)
            else:
                while choice.calls and self._begun <= piece.call:
                    yield self._shape.calling(choice, self._begun), ()
                    self._begun += 1
                yield self._shape.token(choice, piece, self.offset), self._ids(step)
                self.offset += len(piece.text)
            self._piece = next(self._following, None)
        if step == choice.generated - 1:
            yield self._shape.finish(choice), self._ids(step)

    def _ids(self, step: int) -> Sequence[int]:
        ids = self.choice.tokens[self._sent : step + 1]
        self._sent = step + 1
        return ids
