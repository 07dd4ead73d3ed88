"""`utf8.*`: text beyond ASCII. Lone surrogates are judged by `*.interoperable-json`, lost characters by `pair.text`."""

from collections.abc import Iterator

from streamgauge.conformance.assembly import Answer
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.questions import answer_of, asks_same_twice
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence

_REPLACEMENT = "\ufffd"


def _replaced(answer: Answer) -> bool:
    """Whether a text has U+FFFD; not at its end, where the limit may have cut a character's tokens."""
    texts = [text for choice in answer.choices.values() for text in (choice.text, choice.reasoning)]
    return any(_REPLACEMENT in text.rstrip(_REPLACEMENT) for text in texts)


def _is_utf8(body: bytes) -> bool:
    """Whether the bytes are text by themselves: in place of others our own reader puts U+FFFD, which `sse.*` judges."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _comparable(case: Case) -> bool:
    """
    An ended stream whose question was answered as a whole too, by a model that says no U+FFFD there.

    Not where the request lets the model say something else each time: models of chance weights do say it.
    """
    exchange = case.exchange
    if not (exchange.wants_stream and asks_same_twice(exchange.sent, case.operation.properties)):
        return False
    if answer_of(case, exchange) is None or not _is_utf8(exchange.response.body):
        return False
    wholes = [answer for each in case.partners if not each.wants_stream and (answer := answer_of(case, each))]
    return bool(wholes) and not any(map(_replaced, wholes))


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
