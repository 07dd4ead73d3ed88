"""`sampling.*-penalty`: are tokens that came already less likely to come again?"""

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.bare import steady_exchange
from streamgauge.conformance.check import Case, Departure
from streamgauge.conformance.law import BESIDE, given, ignored, law
from streamgauge.conformance.logprobs import Entry, entries_of, is_partial, is_special
from streamgauge.conformance.samples import is_greedy, number
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Exchange
from streamgauge.wire.json import is_number

__all__: list[str] = []

_MARGIN = 0.2
"""Nats that rounding and batching may move a log-probability."""

_CLOSE = 1.0
"""Nats: so close a rival overtakes a token whose logit is divided by a large number, unless that logit is near 0."""

_LOGITS = 3
"""Places at which no logit of a real model is near 0 each time."""

_MOST = 2.0
"""What most documents allow; where one allows more, servers may take so much of it."""

_WINDOW = 64
"""Tokens: some servers penalise only what came among the last ones."""

_LARGE = 4.0
"""A repetition penalty that overtakes by more than a close lead; usual ones, of 1.1 or so, do not."""

_TEMPLATE = "system user assistant"
"""Words of most chat templates: where servers count the prompt's tokens, these have come already."""

Weight = Callable[[Mapping[str, Any], int], float]
"""What a penalty takes off the logit of a token that came so many times."""


def _said(exchange: Exchange) -> str:
    return "".join(choice.generated for choice in answer_in(exchange).choices.values())


def _entries(exchange: Exchange) -> tuple[Entry, ...]:
    """The tokens; none where they are told without the space before them, so that different ones look alike."""
    choice = answer_in(exchange).choices.get(0)
    entries = entries_of(choice) if choice else ()
    spaces = sum(entry.text.count(" ") for entry in entries)
    return entries if choice and spaces >= choice.text.strip().count(" ") else ()


def _asked_text(asked: Mapping[str, Any]) -> str:
    return f"{asked.get('messages', '')}{asked.get('prompt', '')}{_TEMPLATE}".lower()


def _lead(entry: Entry, before: Set[str], prompt: str) -> float | None:
    """By how much a token that came already leads over the best one that came nowhere; None where that is not told."""
    mine = entry.number
    rivals = [
        float(value)
        for text, value in entry.top
        if is_number(value) and text not in before and text.strip() and text.strip().lower() not in prompt
        if not is_special(text) and not is_partial(text)
    ]
    return mine - max(rivals) if mine is not None and rivals else None


def _repeats(plain: tuple[Entry, ...], penalised: tuple[Entry, ...], prompt: str) -> Iterator[tuple[Entry, int, float]]:
    """The tokens that came already and come again in both answers, as long as these are alike: how often before, lead."""
    before: list[str] = []
    ever: set[str] = set()
    for one, other in zip(plain, penalised, strict=False):
        if one.text != other.text:
            return
        lead, times = _lead(one, ever, prompt), before[-_WINDOW:].count(one.text)
        if times and lead is not None and one.text.strip() and not is_partial(one.text):
            yield one, times, lead
        before.append(one.text)
        ever.add(one.text)


def _penalty(
    id: str, level: Level, name: str, least: float, weight: Weight, places: int, requirement: str, source: str
) -> None:
    """
    Declare the law about a penalty.

    Without it, the log-probabilities tell by how much a token that came already leads over one that did not. Where that
    is less than what the penalty takes away, the token cannot come again: unless the penalty is ignored. What the
    penalised answer reports as log-probabilities does not matter: servers differ in whether penalties are in them. It has
    to be seen at so many `places`, of a penalty above the `least`.
    """

    @law(
        id,
        level,
        f"{name} keeps close rivals of what was said from staying behind",
        properties=name,
        requirement=requirement,
        source=source,
        asks=lambda asked: number(asked, name) > least and is_greedy(asked) and bool(asked.get("logprobs")),
        beside=BESIDE - {"echo"},
        absent="no request asked for it at temperature 0 with log-probabilities",
    )
    def penalised(case: Case) -> Iterator[Departure]:
        """The same question has to be asked without the penalty, more than once and answered alike."""
        asked, twin = given(case), steady_exchange(case, name)
        expected = f"something else than without {name} {asked[name]}"
        if twin is None:
            yield Departure(expected, "no steady answer without it", outcome=Outcome.INCONCLUSIVE)
            return
        plain, own = _entries(twin), _entries(case.exchange)
        shown = [
            (entry, times, lead)
            for entry, times, lead in _repeats(plain, own, _asked_text(asked))
            if lead < weight(asked, times) - _MARGIN
        ]
        if len(shown) >= places:
            entry, times, lead = shown[places - 1]
            came = f"{entry.text!r} again, after {times}, though it led by {lead:.2f} nats only without the penalty"
            yield ignored(expected, came)
        elif _said(twin) == _said(case.exchange):
            told = "the same text, in which it need not show" if plain else "the same text, and no log-probabilities"
            yield Departure(expected, told, outcome=Outcome.INCONCLUSIVE)


_penalty(
    "sampling.presence-penalty",
    Level.MUST,
    "presence_penalty",
    1,
    lambda asked, times: min(number(asked, "presence_penalty"), _MOST),
    1,
    "Positive values discourage tokens that already occur in the text.",
    "OpenAI, create chat completion: presence_penalty",
)
_penalty(
    "sampling.frequency-penalty",
    Level.MUST,
    "frequency_penalty",
    1,
    lambda asked, times: min(number(asked, "frequency_penalty"), _MOST) * times,
    1,
    "Positive values discourage tokens in proportion to how often they occur in the text.",
    "OpenAI, create chat completion: frequency_penalty",
)
_penalty(
    "sampling.repetition-penalty",
    Level.SHOULD,
    "repetition_penalty",
    _LARGE,
    lambda asked, times: _CLOSE + _MARGIN,
    _LOGITS,
    "Multiplicative penalty of repetition: above 1 discourages, below 1 encourages.",
    "DeepInfra, completions: repetition_penalty",
)
