"""`pair.*`: the streamed and the whole form of one request say the same, as far as the model says the same twice."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from streamgauge.conformance.assembly import Answer, Choice
from streamgauge.conformance.check import Case, Departure, Judge, check
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.pairing import Floor, Group, Groups, Verdict, names_of, verdict
from streamgauge.conformance.predicates import is_chat
from streamgauge.conformance.questions import Question, first_of, questions
from streamgauge.contract.contract import Contract, Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.text import one_line
from streamgauge.wire.exchange import Evidence

_STREAM = "/requestBody/content/application~1json/schema/properties/stream"
_REQUIREMENT = "stream: Answer with server-sent events, not in one piece."
_SHOWN = 120

Concerns = Callable[[Operation, Contract], bool]

LOGPROB_TOLERANCE = 0.01
"""What log-probabilities may differ by where whole answers do not: what 16-bit arithmetic leaves in another batch."""

_SPREADS = 3
"""So many times the greatest difference between whole answers is no fault of the streams'."""


@dataclass(frozen=True, slots=True)
class _Part:
    """
    A part of an answer that is compared.

    Attributes:
        noun: what it is.
        value: it, as an answer tells it; None where the answer does not tell it, and so does not count.
        shows: whether an answer has anything of the kind: a question without such an answer is not judged.
    """

    noun: str
    value: Callable[[Answer], Hashable]
    shows: Callable[[Answer], bool]

    def group(self, question: Question, tolerance: float) -> Group | None:
        """A question's answers as numbers; None where it is not judged."""
        whole = [answer for answer in question.whole if self.value(answer) is not None]
        streamed = [answer for answer in question.streamed if self.value(answer) is not None]
        if not whole or not streamed or not any(map(self.shows, (*whole, *streamed))):
            return None
        answers = [*whole, *streamed]
        names = names_of([self.value(answer) for answer in answers], lambda a, b: _close(a, b, tolerance))
        apart = tuple(names[: len(whole)]), tuple(names[len(whole) :])
        odd = [answer for name, answer in zip(apart[1], streamed, strict=True) if name not in apart[0]]
        damaged = any(_related(_generated(one), _generated(other)) for one in odd for other in whole)
        return Group(*apart, damaged=damaged)


def _generated(answer: Answer) -> str:
    return "\n".join(choice.generated for choice in answer.choices.values())


def _related(one: str, other: str) -> bool:
    """Whether they are equal, or one is the other with characters left out."""
    shorter, longer = sorted((one, other), key=len)
    rest = iter(longer)
    return all(character in rest for character in shorter)


def _close(one: Hashable, other: Hashable, tolerance: float) -> bool:
    """Whether two values are equal, numbers within the tolerance."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_close(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= tolerance
    return one == other


@once
def _tolerance(case: Case) -> float:
    """For log-probabilities: what those of whole answers with the same tokens differ by, with a margin."""
    spread = 0.0
    for question in questions(case).values():
        known: dict[tuple[str, ...], list[tuple[float, ...]]] = {}
        for choice in (choice for answer in question.whole for choice in answer.choices.values()):
            tokens = choice.tokens or ()
            numbers = tuple(token.logprob or 0.0 for token in tokens)
            known.setdefault(tuple(token.text for token in tokens), []).append(numbers)
        for alike in known.values():
            spread = max([spread, *(max(column) - min(column) for column in zip(*alike, strict=True))])
    return max(LOGPROB_TOLERANCE, _SPREADS * spread)


@once
def _named_groups(case: Case, part: _Part) -> dict[Asked, Group]:
    """The questions that are judged, with their answers as numbers."""
    tolerance = _tolerance(case)
    groups = {key: part.group(question, tolerance) for key, question in questions(case).items()}
    return {key: group for key, group in groups.items() if group}


@once
def _groups(case: Case, part: _Part) -> Groups:
    return Groups(_named_groups(case, part).values())


def _compares(part: _Part) -> Callable[[Case], bool]:
    return lambda case: first_of(case) and asked(case.exchange) in _named_groups(case, part)


def _judges(part: _Part) -> Judge:
    def judge(case: Case) -> Iterator[Departure]:
        key, groups = asked(case.exchange), _groups(case, part)
        group = _named_groups(case, part)[key]
        found = verdict(group, groups)
        if found is Verdict.DIFFERENT or found is Verdict.UNCLEAR:
            yield _departure(part, group, groups.floor, questions(case)[key], unclear=found is Verdict.UNCLEAR)

    return judge


def _departure(part: _Part, group: Group, floor: Floor, question: Question, *, unclear: bool) -> Departure:
    stray = sum(each not in group.streamed for each in group.whole)
    counts = f"{group.odd} of {len(group.streamed)} streamed answers and {stray} of {len(group.whole)} whole ones"
    noise = (
        f"answers of one form differ in {floor.differ} of {floor.pairs} pairs"
        if floor.pairs
        else "nothing was repeated"
    )
    advice = "; --detect-rate asks more often" if unclear else ""
    whole, streamed = _excerpts(part, question)
    return Departure(
        f"the same {part.noun} in both forms: {whole}",
        f"{streamed}; {counts} have {part.noun} that the other form never has; {noise}{advice}",
        outcome=Outcome.INCONCLUSIVE if unclear else None,
    )


def _excerpts(part: _Part, question: Question) -> tuple[str, str]:
    """A whole answer's value and one of a streamed answer that differs, from shortly before the difference."""
    wholes = [_shown(part.value(answer)) for answer in question.whole]
    streams = [_shown(part.value(answer)) for answer in question.streamed]
    whole = wholes[0]
    streamed = next((each for each in streams if each not in wholes), streams[0])
    pairs = enumerate(zip(whole, streamed, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(whole), len(streamed)))
    start = max(0, at - _SHOWN // 3)
    return one_line(whole[start : start + _SHOWN], _SHOWN), one_line(streamed[start : start + _SHOWN], _SHOWN)


def _shown(value: Hashable) -> str:
    """The value as it is written; of a single choice without the tuple around it."""
    return repr(value[0] if isinstance(value, tuple) and len(value) == 1 else value)


def _each(answer: Answer, value: Callable[[Choice], Hashable]) -> Hashable:
    """A value of every choice, in the order of their indexes; whether these begin at 0 is `chunk.choice-indexes`'."""
    return tuple(value(choice) for choice in answer.choices.values())


def _any(answer: Answer, holds: Callable[[Choice], object]) -> bool:
    return any(holds(choice) for choice in answer.choices.values())


def _finish(answer: Answer) -> Hashable:
    """None where a choice has no finish reason: `finish.*` judges that."""
    return None if _any(answer, lambda choice: not choice.finish) else _each(answer, lambda choice: choice.finish)


def _logprobs(answer: Answer) -> Hashable:
    """None where a choice has none: `logprobs.given` judges that."""
    if _any(answer, lambda choice: choice.tokens is None):
        return None
    return _each(answer, lambda choice: tuple((token.text, token.logprob) for token in choice.tokens or ()))


def _always(answer: Answer) -> bool:
    return True


def _anywhere(operation: Operation, contract: Contract) -> bool:
    return True


_TEXT = _Part(
    "text",
    value=lambda answer: _each(answer, lambda choice: choice.text),
    shows=lambda answer: _any(answer, lambda choice: choice.text),
)
_FINISH = _Part("finish reason", value=_finish, shows=_always)
_USAGE = _Part("number of completion tokens", value=lambda answer: answer.completion_tokens, shows=_always)
_CALLS = _Part(
    "tool calls",
    value=lambda answer: _each(answer, lambda choice: tuple(call.plain for call in choice.calls)),
    shows=lambda answer: _any(answer, lambda choice: choice.calls),
)
_LOGPROBS = _Part(
    "log-probabilities",
    value=_logprobs,
    shows=lambda answer: _any(answer, lambda choice: choice.tokens),
)
_REASONING = _Part(
    "presence of reasoning",
    value=lambda answer: _each(answer, lambda choice: bool(choice.reasoning)),
    shows=lambda answer: _any(answer, lambda choice: choice.reasoning),
)


def _declare(id_: str, level: Level, title: str, part: _Part, concerns: Concerns = _anywhere) -> None:
    check(
        id_,
        level,
        title,
        requirement=_REQUIREMENT,
        source=_STREAM,
        applies=_compares(part),
        concerns=concerns,
        absent=f"no question with temperature 0 or a seed was answered in both forms, to the end and with {part.noun}",
        needs=(Evidence.REQUEST,),
    )(_judges(part))


_declare("pair.text", Level.MUST, "A stream's pieces make the text of the whole form", _TEXT)
# Agents go on or stop by it: whoever reads the stream takes another way. So it is as binding as the text.
_declare("pair.finish", Level.MUST, "Both forms end for the same reason", _FINISH)
# As binding as `usage.pair`, which compares the other half of the bill.
_declare("pair.usage", Level.SHOULD, "Both forms cost the same completion tokens", _USAGE)
_declare("pair.tool-calls", Level.MUST, "Both forms call the same tools with the same arguments", _CALLS, is_chat)
_declare("pair.logprobs", Level.MUST, "Both forms tell the same tokens and log-probabilities", _LOGPROBS)
_declare("pair.reasoning", Level.MUST, "Reasoning is told in both forms or in none", _REASONING, is_chat)
