"""`sampling.*`: do the sampling parameters and the number of choices have their effect?"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.law import BESIDE, given, ignored, law, refuses
from streamgauge.conformance.logprobs import is_partial
from streamgauge.conformance.others import asked
from streamgauge.conformance.posting import not_plain, shown
from streamgauge.conformance.predicates import count_of_choices, valid_request
from streamgauge.conformance.questions import answer_of
from streamgauge.conformance.samples import MOST, NARROWING, greedy_texts, hot_texts, is_greedy, is_hot, number, samples
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.json import is_number

__all__: list[str] = []

_ENOUGH = 3
"""Answers that all differ where all should be alike: less may be noise, which real servers have even without sampling."""

_LONG = 24
"""Characters: a shorter text may be the only one that a model has."""

_BEGINNING = 64
"""Characters: noise makes any two long answers part, but hardly so early."""

_BESIDE = BESIDE - {"echo"}
"""The prompt is nothing that was drawn."""


def _unclear(expected: str, actual: str) -> Departure:
    return Departure(expected, actual, outcome=Outcome.INCONCLUSIVE)


def _beginnings(texts: Iterable[str]) -> list[str]:
    return [text[:_BEGINNING] for text in texts]


def _one_prompt(case: Case) -> bool:
    return not isinstance(given(case).get("prompt"), list)


@law(
    "sampling.n",
    Level.MUST,
    "As many choices come as were asked for",
    properties="n",
    requirement="How many choices to return.",
    source="OpenAI, create chat completion: n",
    asks=lambda asked: number(asked, "n", 1) > 1,
    beside=BESIDE | {"prompt"},
)
def count(case: Case) -> Iterator[Departure]:
    """
    Temperature 0 is no excuse: OpenAI answers with choices that are alike.

    Choices are counted by how they end, in case several have one index: that, and an answer with none, other checks judge.
    """
    wanted = count_of_choices(case)
    came = sum(max(1, len(choice.ends)) for choice in answer_in(case.exchange).choices.values())
    if wanted is None or came in (0, wanted):
        return
    told = f"{came} choice{'' if came == 1 else 's'}"
    yield (
        ignored(f"{wanted} choices", told)
        if came * given(case)["n"] == wanted
        else Departure(f"{wanted} choices", told)
    )


@check(
    "sampling.n-below-one",
    Level.SHOULD,
    "Fewer choices than one are refused",
    requirement="n: how many choices to return; minimum 1.",
    source=CLIENTS,
    applies=lambda case: (
        valid_request(case)
        and number(given(case), "n", 1) < 1
        and not_plain(case) == {"n"}
        and (case.exchange.status == 200 or refuses(case))
    ),
    concerns=lambda operation, contract: "n" in operation.properties,
    absent="no request asked for less than one choice where its document lets it",
    needs=(Evidence.REQUEST,),
)
def below_one(case: Case) -> Iterator[Departure]:
    """Where the schema has no minimum, the meaning has one: whoever reads the first choice of none fails."""
    if case.exchange.status == 200:
        yield Departure("a 4xx", shown(case))


def _alike_at_zero(case: Case) -> tuple[str, ...]:
    """What has to be the same: the choices of one answer, or the answers to one question that was asked several times."""
    group = case.others.groups.get(asked(case.exchange), ())[:MOST]
    answers = [answer for each in group if (answer := answer_of(case, each))]
    own = [choice.generated.strip() for choice in answer_in(case.exchange).choices.values()]
    if len(own) < _ENOUGH:
        own = [choice.generated.strip() for answer in answers for choice in answer.choices.values()]
    return tuple(_beginnings(filter(None, own)))


@law(
    "sampling.greedy",
    Level.SHOULD,
    "Temperature 0 says the same each time",
    properties="temperature",
    requirement="0 takes the likeliest token.",
    source="OpenAI, create chat completion: temperature",
    asks=is_greedy,
    applies=lambda case: _one_prompt(case) and len(_alike_at_zero(case)) >= _ENOUGH,
    beside=_BESIDE,
    absent="nothing was asked three times at temperature 0",
)
def greedy(case: Case) -> Iterator[Departure]:
    """
    The likeliest token is the same each time, but for what batching does to the last bits of a sum: that makes answers
    part late and seldom. Where no two of three answers or more agree, the tokens are drawn.
    """
    texts = _alike_at_zero(case)
    if len(set(texts)) == len(texts):
        yield ignored("answers that are alike", f"{len(texts)} different ones, as {texts[0]!r} and {texts[1]!r}")
    elif len(set(texts)) > 1:
        yield _unclear("answers that are alike", f"{len(set(texts))} different texts in {len(texts)} answers")


@law(
    "sampling.temperature",
    Level.SHOULD,
    "A high temperature changes what is said",
    properties="temperature",
    requirement="Sampling temperature.",
    source="OpenAI, create chat completion: temperature",
    asks=is_hot,
    applies=lambda case: _one_prompt(case) and bool(greedy_texts(case)),
    beside=_BESIDE,
    absent="nothing was asked at temperature 0 and at 1.5 or more",
)
def temperature(case: Case) -> Iterator[Departure]:
    """
    At temperature 2 odds of 9 to 1 become 3 to 1, and the tail of a vocabulary weighs more than that.

    A text of several words, on a question that leaves them open, comes out as the greedy one with every single draw only
    where no draw is made; three draws are asked for. A model that is sure of all its words would look the same, so this is
    no MUST.
    """
    hot, cold = hot_texts(case), set(greedy_texts(case))
    if not set(hot) <= cold:
        return
    expected = "answers that differ from those at temperature 0"
    if len(set(hot)) == 1 and len(hot) >= _ENOUGH and len(hot[0]) >= _LONG:
        yield ignored(expected, f"{len(hot)} answers, all {hot[0]!r} as at temperature 0")
    else:
        yield _unclear(expected, f"{len(hot)} answers, each as at temperature 0: too few or too short to tell")


def _own_texts(case: Case) -> list[str]:
    return [choice.generated.strip() for choice in answer_in(case.exchange).choices.values()]


def _other_texts(case: Case) -> set[str]:
    """What was said to the question otherwise, at a high temperature or at 0."""
    return {*hot_texts(case), *greedy_texts(case)} - set(_own_texts(case))


@law(
    "sampling.n-drawn",
    Level.SHOULD,
    "Each choice of a high temperature is drawn for itself",
    properties="n",
    requirement="How many choices to return; sampling temperature.",
    source="OpenAI, create chat completion: n, temperature",
    asks=lambda asked: number(asked, "n", 1) >= _ENOUGH and is_hot(asked) and asked.get("seed") is None,
    applies=lambda case: _one_prompt(case) and len(_own_texts(case)) >= _ENOUGH and bool(_other_texts(case)),
    beside=_BESIDE,
    absent="no request asked for three choices at a high temperature, of a question that was answered in several ways",
)
def drawn(case: Case) -> Iterator[Departure]:
    """
    Copies of one text cost as much as choices, and are none.

    That the question has other answers shows that the model is not sure of this one; a seed may be that of each choice.
    """
    texts = _own_texts(case)
    if len(set(texts)) > 1:
        return
    if len(texts[0]) >= _LONG:
        yield Departure("texts that differ", f"{len(texts)} choices, all {texts[0]!r}")
    else:
        yield _unclear("texts that differ", "texts that are too short to tell")


def _narrowing(id: str, name: str, narrow: Callable[[Any], bool], *, title: str, requirement: str, source: str) -> None:
    """Declare that a property which leaves one token only makes any temperature as good as 0."""

    @law(
        id,
        Level.MUST,
        title,
        properties=name,
        requirement=requirement,
        source=source,
        asks=lambda asked: is_hot(asked) and narrow(asked.get(name)),
        applies=_one_prompt,
        beside=_BESIDE,
    )
    def narrowed(case: Case) -> Iterator[Departure]:
        """
        Whatever the temperature, the likeliest token stays the likeliest.

        Two answers that differ from each other and from all those at temperature 0 are drawn. One alone, or some, may
        have parted from them by noise.
        """
        value = given(case)[name]
        told, cold = _beginnings(hot_texts(case, **{name: value})), set(_beginnings(greedy_texts(case)))
        expected = f"the answer at temperature 0, since {name} {value} leaves no other token"
        if cold & set(told):
            if set(_beginnings(hot_texts(case))) <= cold:
                yield _unclear(expected, "that answer, but a high temperature alone gives it as well")
        elif cold and len(set(told)) > 1:
            yield ignored(expected, f"{len(set(told))} other answers, as {told[0]!r}")
        else:
            yield _unclear(expected, "another answer, but no second one" if told and cold else "nothing to compare")


_narrowing(
    "sampling.top-k",
    "top_k",
    lambda value: value == 1,
    title="top_k 1 leaves the likeliest token",
    requirement="Sample from this many of the likeliest tokens.",
    source="DeepInfra, completions: top_k",
)
_narrowing(
    "sampling.top-p",
    "top_p",
    lambda value: is_number(value) and 0 < value <= 1e-5,
    title="A tiny top_p leaves the likeliest token",
    requirement="Nucleus sampling, as the probability mass that is kept.",
    source="OpenAI, create chat completion: top_p",
)
_narrowing(
    "sampling.min-p",
    "min_p",
    lambda value: value == 1,
    title="min_p 1 leaves the likeliest token",
    requirement="Least probability of a token, relative to the likeliest one.",
    source="DeepInfra, completions: min_p",
)


def _is_off(asked: Any, name: str) -> bool:
    return is_hot(asked) and number(asked, name, 1) == 0 and not any(asked.get(other) for other in NARROWING)


@law(
    "sampling.zero-is-off",
    Level.MUST,
    "top_k 0 and min_p 0 narrow nothing",
    properties=("top_k", "min_p"),
    requirement="0 turns it off.",
    source="DeepInfra, completions: top_k, min_p",
    asks=lambda asked: _is_off(asked, "top_k") or _is_off(asked, "min_p"),
    applies=lambda case: _one_prompt(case) and bool(greedy_texts(case)),
    beside=_BESIDE,
)
def zero_is_off(case: Case) -> Iterator[Departure]:
    """
    Taken as a number of tokens, 0 leaves one: then what a high temperature changes is gone again.

    Where a high temperature leaves some answers as they are, three that stay may be chance.
    """
    off = {name: value for name, value in given(case).items() if name in NARROWING}
    told, cold = hot_texts(case, **off), set(greedy_texts(case))
    if not set(told) <= cold:
        return
    names = " and ".join(f"{name} 0" for name in off)
    expected = f"answers that differ from those at temperature 0, as without {names}"
    hot = hot_texts(case)
    if len(told) >= _ENOUGH and len(hot) >= _ENOUGH and not set(hot) & cold:
        yield Departure(expected, f"{len(told)} answers, all {told[0]!r} as at temperature 0")
    else:
        yield _unclear(expected, f"{len(told)} answers as at temperature 0")


def _seeded(case: Case) -> dict[int, list[str]]:
    """What was said at a high temperature, one choice each, by seed."""
    found: dict[int, list[str]] = {}
    for each in samples(case):
        seed = each.asked.get("seed")
        alone = number(each.asked, "n", 1) == 1 and not NARROWING & each.asked.keys()
        if is_number(seed) and alone and is_hot(each.asked):
            found.setdefault(int(seed), []).extend(each.texts)
    return found


def _of_seed(case: Case) -> list[str]:
    return _seeded(case).get(int(given(case)["seed"]), [])


@law(
    "sampling.seed",
    Level.MAY,
    "The same seed says the same, and another one something else",
    properties="seed",
    requirement="the same seed with the same request should give the same answer",
    source="OpenAI, create chat completion: seed",
    asks=lambda asked: is_hot(asked) and is_number(asked.get("seed")),
    applies=lambda case: _one_prompt(case) and number(given(case), "n", 1) == 1 and len(_of_seed(case)) > 1,
    beside=_BESIDE,
    absent="no request with a seed and a high temperature was answered twice",
)
def seed(case: Case) -> Iterator[Departure]:
    """No document promises it ("should"; "No determinism is promised"): reported, never judged."""
    seeded = _seeded(case)
    own = _of_seed(case)
    every = [text for texts in seeded.values() for text in texts]
    expected = "one text for one seed, and others for other seeds"
    if len(own) >= _ENOUGH and len(set(own)) == len(own):
        yield ignored(expected, f"{len(own)} different texts for one seed, as {own[0]!r} and {own[1]!r}")
    elif len(seeded) >= _ENOUGH and len(set(every)) == 1:
        if set(every) <= set(greedy_texts(case)):
            yield _unclear(expected, "the text of temperature 0: nothing is drawn")
        else:
            yield ignored(expected, f"{every[0]!r} for each of {len(seeded)} seeds")
    elif len(set(own)) > 1 or len(seeded) < 2:
        yield _unclear(expected, f"{len(set(own))} texts in {len(own)} answers of one seed")


@law(
    "sampling.beams",
    Level.MUST,
    "The choices of a beam search differ",
    properties="use_beam_search",
    requirement="Use Beam Search",
    source="Seekr, create chat completion: use_beam_search",
    asks=lambda asked: bool(asked.get("use_beam_search")) and number(asked, "n", 1) >= _ENOUGH,
    applies=lambda case: _one_prompt(case) and len(answer_in(case.exchange).choices) >= _ENOUGH,
    beside=_BESIDE,
    absent="no request asked for a beam search with three choices",
)
def beams(case: Case) -> Iterator[Departure]:
    """Beams are different sequences; without a search, the choices of temperature 0 are alike."""
    texts = [choice.generated for choice in answer_in(case.exchange).choices.values()]
    if len(set(texts)) > 1:
        return
    if texts[0].strip() and not is_partial(texts[0]):
        yield ignored("different texts", f"{len(texts)} choices, all {texts[0].strip()!r}")
    else:
        yield _unclear("different texts", "no text that could show it")
