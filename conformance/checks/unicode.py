"""`utf8.*`: text beyond ASCII. Lone surrogates are judged by `*.interoperable-json`, lost characters by `pair.text`."""

from collections.abc import Iterator

from streamgauge.conformance.assembly import Answer
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.questions import answer_of, same_twice
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence

_REPLACEMENT = "\ufffd"


def _replaced(answer: Answer) -> bool:
    """Whether a text has U+FFFD; not at its end, where the limit may have cut a character's tokens."""
    texts = [text for choice in answer.choices.values() for text in (choice.text, choice.reasoning)]
    return any(_REPLACEMENT in text.rstrip(_REPLACEMENT) for text in texts)


def _breaks_off(answer: Answer, wholes: list[Answer]) -> bool:
    """Whether up to its first U+FFFD a text is that of a whole answer: then nothing but the character is another."""
    for index, choice in answer.choices.items():
        others = [whole.choices[index] for whole in wholes if index in whole.choices]
        for text, known in (
            (choice.text, [other.text for other in others]),
            (choice.reasoning, [other.reasoning for other in others]),
        ):
            before, mark, _ = text.lstrip().partition(_REPLACEMENT)
            if mark and any(each.lstrip().startswith(before) for each in known):
                return True
    return False


def _is_utf8(body: bytes) -> bool:
    """Whether the bytes are text by themselves: in place of others our own reader puts U+FFFD, which `sse.*` judges."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@once
def _wholes_without(case: Case) -> dict[Asked, list[Answer]]:
    """The questions that were answered as a whole, never with U+FFFD, and these answers."""
    wholes = {
        key: [answer for each in group if not each.wants_stream and (answer := answer_of(case, each))]
        for key, group in same_twice(case).items()
    }
    return {key: answers for key, answers in wholes.items() if answers and not any(map(_replaced, answers))}


def _comparable(case: Case) -> bool:
    """
    An ended stream whose question was answered as a whole too, by a model that says no U+FFFD there.

    Not where the request lets the model say something else each time, nor where it did so before the first U+FFFD: models of
    chance weights do say it.
    """
    exchange = case.exchange
    own = answer_of(case, exchange) if exchange.wants_stream else None
    if own is None or not _is_utf8(exchange.response.body):
        return False
    wholes = _wholes_without(case).get(asked(exchange), [])
    return bool(wholes) and (not _replaced(own) or _breaks_off(own, wholes))


@check(
    "utf8.replacement-character",
    Level.MUST,
    "A stream has no U+FFFD where the whole form has none",
    requirement=(
        "U+FFFD REPLACEMENT CHARACTER: used to replace an incoming character whose value is unknown or unrepresentable "
        "in Unicode."
    ),
    source="The Unicode Standard, section 23.8 (Specials); /requestBody/content/application~1json/schema/properties/stream",
    applies=_comparable,
    absent="no question with temperature 0 or a seed was answered in both forms, the whole ones without U+FFFD",
    needs=(Evidence.REQUEST,),
)
def replacement_character(case: Case) -> Iterator[Departure]:
    """Whoever decodes token by token breaks each character of several tokens; nobody can mend it afterwards."""
    answer = answer_of(case, case.exchange)
    if answer is None or not _replaced(answer):
        return
    for chunk in case.exchange.stream.chunks:
        if _REPLACEMENT in chunk.event.data:
            yield Departure("the characters of the whole form", "U+FFFD", event=chunk.event)
            return
    yield Departure("the characters of the whole form", "U+FFFD")
