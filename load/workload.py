"""What is asked: request bodies, each reproducible from a seed and the request's id."""

import json
import random
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import prompt_member

__all__ = ["LoadRequest", "Workload"]

_TEXT = (
    "river stone garden winter music paper window silver market bridge summer letter forest engine candle ocean "
    "valley ticket hammer orange doctor harbor basket mirror planet ribbon saddle temple umbrella village wagon "
    "yellow anchor butter copper dragon eagle farmer guitar hunter island jacket kitchen ladder meadow needle "
    "oyster pencil quarter rabbit"
)
_WORDS = _TEXT.split()
"""Common words: about one token each in most vocabularies."""

_INSTRUCTION = ("Tell", "a", "long", "story", "in", "which", "all", "of", "these", "words", "occur.")


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """
    One request, ready to be sent.

    Attributes:
        id: unique in the run.
        target: name of the target, for the record.
        operation: whose contract the answer is judged by.
        body: the JSON text.
        stream: whether it asks for a stream.
        max_tokens: how many tokens it asks for.
    """

    id: str
    target: str
    operation: Operation
    body: bytes
    stream: bool
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Workload:
    """
    Builds the requests of a run.

    Every prompt begins with a number of its own, so that no prefix cache can answer for the model, and goes on with
    words drawn at random. Where the document knows `ignore_eos`, it is set: answers are as long as their limit then, and
    runs can be compared. Temperature is left to the server, as most clients leave it.

    Attributes:
        target: name of the target, for the records.
        operation: what is asked.
        model: whom.
        prompt_tokens: words in the prompt, each about one token; the number in front takes some more.
        max_tokens: limit of each answer.
        stream: whether streams are asked for.
        seed: the same seed and id give the same body.
    """

    target: str
    operation: Operation
    model: str
    prompt_tokens: int
    max_tokens: int
    stream: bool
    seed: int

    def request(self, id: str) -> LoadRequest:
        """The request of this id."""
        body: dict[str, Any] = {"model": self.model, **prompt_member(self.operation, self._prompt(id))}
        body["max_tokens"] = self.max_tokens
        body |= self._if_known(ignore_eos=True)
        if self.stream:
            body["stream"] = True
            body |= self._if_known(stream_options={"include_usage": True})
        text = json.dumps(body, separators=(",", ":")).encode()
        return LoadRequest(id, self.target, self.operation, text, self.stream, self.max_tokens)

    def _prompt(self, id: str) -> str:
        source = random.Random(f"{self.seed}/{id}")  # noqa: S311 - reproducible words, no secret
        room = self.prompt_tokens - 1
        instruction = _INSTRUCTION if room >= 2 * len(_INSTRUCTION) else ()
        words = source.choices(_WORDS, k=max(room - len(instruction), 0))
        return " ".join([f"{source.getrandbits(48):012x}", *words, *instruction])

    def _if_known(self, **members: Any) -> dict[str, Any]:
        """Those members that the document knows: a server may refuse the others."""
        known = self.operation.properties
        return {name: value for name, value in members.items() if name in known or not known}
