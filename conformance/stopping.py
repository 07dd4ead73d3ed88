"""Where stop strings end a text, and what an answer made of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.conformance.bare import steady
from streamgauge.conformance.check import Case
from streamgauge.contract.contract import COMPLETIONS, Operation

__all__ = ["Cut", "Stopped", "generated", "most_stop_strings", "stop_strings", "stopped"]

_PROPERTIES = ("stop", "include_stop_str_in_output")


def stop_strings(asked: Mapping[str, Any]) -> list[str]:
    """The stop strings of a request; empty ones stop nothing."""
    stop = asked.get("stop")
    given = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    return [text for text in given if isinstance(text, str) and text]


def most_stop_strings(operation: Operation) -> int | None:
    """As many as the document allows in one request; None where it sets no limit."""
    branches = operation.schemas.resolved(operation.properties.get("stop", {})).get("anyOf", ())
    limits = (operation.schemas.resolved(branch).get("maxItems") for branch in branches)
    return next((limit for limit in limits if isinstance(limit, int)), None)


def generated(case: Case, choice: Choice) -> str | None:
    """
    The text of a choice without the prompt that `echo` puts before it; None where nobody can tell them apart.

    Of chats only those whose last message is the user's are told apart: there `echo` changes nothing.
    """
    sent = case.exchange.sent
    if not sent.get("echo"):
        return choice.text
    if case.operation.family == COMPLETIONS:
        prompt = sent.get("prompt")
        return choice.text.removeprefix(prompt) if isinstance(prompt, str) and choice.text.startswith(prompt) else None
    last = sent["messages"][-1] if isinstance(sent.get("messages"), list) and sent["messages"] else None
    return choice.text if isinstance(last, dict) and last.get("role") == "user" else None


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where a stop string may end a text: the character at which it begins, and the string."""

    at: int
    stop: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """
    A choice to a question with stop strings, held against what the model says without them.

    Attributes:
        choice: the choice.
        said: its text.
        full: the text without stop strings.
        strings: the stop strings.
    """

    choice: Choice
    said: str
    full: str
    strings: Sequence[str]

    @property
    def cuts(self) -> list[Cut]:
        """
        Where the text may end, if they stop it at all: before one of them, with none in what is left.

        Several at once are right: of two that the same token completes, some engines take the one that is named first.
        """
        found = [Cut(at, stop) for stop in self.strings if (at := self.full.find(stop)) >= 0]
        return [cut for cut in found if not any(stop in self.full[: cut.at] for stop in self.strings)]

    @property
    def hit(self) -> list[Cut]:
        """Those of the cuts at which the answer ended, white space at its end aside."""
        return [cut for cut in self.cuts if self.said.rstrip() == self.full[: cut.at].rstrip()]

    @property
    def holds_one(self) -> bool:
        """Whether a stop string is in the answer's text."""
        return any(stop in self.said for stop in self.strings)

    @property
    def leaked(self) -> str:
        """The beginning of a stop string that stands behind the place where the text had to end; empty where none does."""
        for cut in self.cuts:
            rest = self.said[cut.at :]
            if (
                self.said.startswith(self.full[: cut.at])
                and rest.strip()
                and cut.stop.startswith(rest)
                and not self.hit
            ):
                return rest
        return ""

    @property
    def lacking(self) -> bool:
        """Whether the text is the beginning of what had to come, and a part is missing."""
        wanted = [self.full[: cut.at] for cut in self.cuts] or [self.full]
        return all(text.startswith(self.said) and self.said.rstrip() != text.rstrip() for text in wanted)

    @property
    def goes_on(self) -> bool:
        """Whether the stop string was left out and the text goes on behind it."""
        for cut in self.cuts:
            rest, told = self.full[cut.at + len(cut.stop) :].lstrip(), self.said[cut.at :].strip()
            if self.said.startswith(self.full[: cut.at]) and told and rest.startswith(told):
                return True
        return False


def stopped(case: Case) -> Iterator[Stopped]:
    """
    The choices of an answer to a question with stop strings, as far as it is known what the model says without them.

    Of a choice that thinks, stop strings within the thoughts may have ended it: it tells nothing.
    """
    exchange = case.exchange
    strings = stop_strings(exchange.sent)
    full = steady(case, *_PROPERTIES)
    for index, choice in answer_in(exchange).choices.items():
        twin = full.get(index)
        if twin is None or twin.reasoning or choice.reasoning or twin.calls or choice.calls:
            continue
        said, whole = generated(case, choice), generated(case, twin)
        if said is not None and whole:
            yield Stopped(choice, said, whole, strings)
