"""The words of a verdict: levels, outcomes, exit codes, and the one table that joins them."""

import enum
from collections.abc import Iterable

__all__ = [
    "HONOUR_MEANING",
    "OUTCOME_MEANING",
    "ExitCode",
    "Honour",
    "Level",
    "Outcome",
    "exit_code_of",
    "fails_gate",
    "most_severe",
]


class Level(enum.StrEnum):
    """How binding a requirement is (the sense of RFC 2119)."""

    MUST = "MUST"
    """Said by the document, an RFC, the WHATWG, or the plain meaning of a documented parameter."""

    SHOULD = "SHOULD"
    """What most clients rely on, though no document says it."""

    MAY = "MAY"
    """Worth reporting, never judged."""


class Outcome(enum.StrEnum):
    """What one check found."""

    ERROR = "error"
    FAIL = "fail"
    IGNORED = "ignored"
    WARN = "warn"
    INCONCLUSIVE = "inconclusive"
    REFUSED = "refused"
    PASS = "pass"  # noqa: S105 - a verdict, no password
    NOT_APPLICABLE = "not-applicable"
    NOT_RUN = "not-run"


class ExitCode(enum.IntEnum):
    """What the process tells its caller."""

    PASS = 0
    GATE_FAILED = 1
    USAGE = 2
    CANNOT_TELL = 3
    INTERRUPTED = 130


class Honour(enum.StrEnum):
    """What a server does about one property of a request; where exchanges differ, the first of these stands for them."""

    SERVER_ERROR = "server error"
    IGNORED = "ignored"
    WRONG = "wrong"
    HONOURED = "honoured"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNCLEAR = "unclear"
    NOT_PROBED = "not probed"


HONOUR_MEANING: dict[Honour, str] = {
    Honour.SERVER_ERROR: "Whoever asks for it gets a failure of the server.",
    Honour.IGNORED: "Accepted, and an answer proves that it was not honoured.",
    Honour.WRONG: "Honoured, but not as it is meant.",
    Honour.HONOURED: "Accepted and honoured in every answer that can show it.",
    Honour.ACCEPTED: "Accepted; why nobody can see from outside whether it is honoured stands beside it.",
    Honour.REFUSED: "Refused with a status that the document knows.",
    Honour.UNCLEAR: "Accepted, and no answer shows whether it is honoured.",
    Honour.NOT_PROBED: "No request asked for it; the reason stands beside it.",
}


OUTCOME_MEANING: dict[Outcome, str] = {
    Outcome.ERROR: "The harness itself failed here; this says nothing about the server.",
    Outcome.FAIL: "The server broke a MUST.",
    Outcome.IGNORED: "The server accepted the request and silently did not honour it.",
    Outcome.WARN: "It works, but departs from a SHOULD (or from a MAY, which is only reported).",
    Outcome.INCONCLUSIVE: "The evidence allows no verdict, for instance because the server was limiting the rate.",
    Outcome.REFUSED: "The server refused an optional feature with a documented 4xx.",
    Outcome.PASS: "Every exchange that the check applies to met the requirement.",
    Outcome.NOT_APPLICABLE: "The requirement does not concern this operation or profile.",
    Outcome.NOT_RUN: "No exchange could show it; the reason stands beside it (budget, opt-in, configuration).",
}

SEVERITY: tuple[Outcome, ...] = tuple(Outcome)
"""Most severe first: the order in which `Outcome` declares its members."""

_EXIT: dict[tuple[Outcome, Level], ExitCode] = {
    **{(Outcome.ERROR, level): ExitCode.CANNOT_TELL for level in Level},
    (Outcome.FAIL, Level.MUST): ExitCode.GATE_FAILED,
    (Outcome.IGNORED, Level.MUST): ExitCode.GATE_FAILED,
    (Outcome.INCONCLUSIVE, Level.MUST): ExitCode.CANNOT_TELL,
}


def exit_code_of(outcome: Outcome, level: Level) -> ExitCode:
    """What one finding alone would make the gate return."""
    return _EXIT.get((outcome, level), ExitCode.PASS)


def fails_gate(outcome: Outcome, level: Level) -> bool:
    """Whether one finding alone, unless it is known, fails the gate."""
    return exit_code_of(outcome, level) is ExitCode.GATE_FAILED


def most_severe(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome that stands for all of them; `not-run` when there are none."""
    return min(outcomes, key=SEVERITY.index, default=Outcome.NOT_RUN)
