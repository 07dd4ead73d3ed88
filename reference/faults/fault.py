"""
What a fault is, and the table of all faults.

A fault is one thing that goes wrong in a reply. It is declared once, beside its code, named after what goes wrong, and says
which check has to catch it: together the faults are the proof that the checks see.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.reference.drafts import Draft

__all__ = [
    "FAULTS",
    "Fault",
    "Stage",
    "answers",
    "chat_streams",
    "fault",
    "refusals",
    "replies",
    "requests",
    "streams",
    "wholes",
]


class Stage(enum.Enum):
    """The step of the responder behind which a fault bends the draft, in the order of the steps."""

    REQUEST = "request"
    """The request has been read: what is changed here was never asked."""

    ANSWER = "answer"
    """`body` or `chunks` are there, `status` as well."""

    TEXT = "text"
    """`text` or `events` are there."""

    HEAD = "head"
    """`headers` are there."""

    WIRE = "wire"
    """`writes` are there."""


@dataclass(frozen=True, slots=True)
class Fault:
    """
    One thing that goes wrong.

    Attributes:
        name: `topic.what-goes-wrong`.
        title: what goes wrong, in a sentence.
        caught_by: ids of checks: wherever it shows, one of them has to depart.
        stage: when it strikes.
        concerns: which replies it can strike.
        seen: public reports of the like on real servers, `owner/repository#number`.
        bend: does it.
        proof: the test module that proves it, where the mutation matrix cannot: it shows over sockets only, or to probes that
            need the server for themselves.
    """

    name: str
    title: str
    caught_by: tuple[str, ...]
    stage: Stage
    concerns: Callable[[Draft], bool]
    seen: tuple[str, ...]
    bend: Callable[[Draft], None]
    proof: str = ""

    def declaration(self) -> dict[str, str]:
        """The fault as `streamgauge list faults` shows it."""
        return {
            "id": self.name,
            "title": self.title,
            "caught by": " or ".join(self.caught_by),
            "seen": ", ".join(self.seen) or "-",
        }


FAULTS: dict[str, Fault] = {}
"""Every fault by its name, in the order of declaration; filled by importing `streamgauge.reference.faults`."""


def fault(
    name: str,
    title: str,
    *,
    caught_by: str | tuple[str, ...],
    stage: Stage,
    concerns: Callable[[Draft], bool],
    seen: tuple[str, ...] = (),
    proof: str = "",
) -> Callable[[Callable[[Draft], None]], Callable[[Draft], None]]:
    """Declare the function below as a fault; see :class:`Fault` for the arguments."""

    def declare(bend: Callable[[Draft], None]) -> Callable[[Draft], None]:
        if name in FAULTS:
            raise ValueError(f"the fault {name} is declared twice")
        checks = (caught_by,) if isinstance(caught_by, str) else caught_by
        FAULTS[name] = Fault(name, title, checks, stage, concerns, seen, bend, proof)
        return bend

    return declare


def replies(draft: Draft) -> bool:
    """Every reply at an operation's path."""
    return draft.operation is not None


def requests(draft: Draft) -> bool:
    """Every request of an operation's own method whose body is a JSON object."""
    return draft.operation is not None and draft.request.method == draft.operation.method and bool(draft.asked)


def answers(draft: Draft) -> bool:
    """What the pseudo-model said."""
    return draft.answer is not None


def wholes(draft: Draft) -> bool:
    """An answer in one piece."""
    return draft.answer is not None and not draft.streamed


def streams(draft: Draft) -> bool:
    """A streamed answer."""
    return draft.answer is not None and draft.streamed


def chat_streams(draft: Draft) -> bool:
    """A streamed answer of a chat operation."""
    return streams(draft) and draft.chat


def refusals(draft: Draft) -> bool:
    """A refused request at an operation's path."""
    return draft.operation is not None and draft.refusal is not None
