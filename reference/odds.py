"""Pseudo-probabilities: how likely the pseudo-model finds each token at a place of its text."""

import functools
import math
from collections.abc import Iterable

from streamgauge.reference.tokens import END
from streamgauge.reference.words import VOCABULARY, sequence_class

__all__ = ["LIKELY", "Flow", "Odds", "expected", "word_odds"]

_WORDS = len(VOCABULARY)
LIKELY = _WORDS // 3
"""How many words share nearly all of the probability wherever free text goes on."""

_GAP = 0.6
"""From each likely word to the next one, as a difference of log-probabilities."""

_UNLIKELY = -30.0
_NO_END = -40.0
_FAR = -60.0
_SLACK = 1e-6
"""Taken off every log-probability: rounded ones must not add up to more than 1."""


class Odds:
    """
    The log-probabilities at one place; without any setting of the request, as `logprobs` reports them.

    Args:
        logits: of the tokens that are likely at all, by id.

    Attributes:
        ranked: these tokens with their log-probabilities, likeliest first.
    """

    __slots__ = ("_known", "ranked")

    def __init__(self, logits: Iterable[tuple[int, float]]) -> None:
        given = list(logits)
        most = max(logit for _, logit in given)
        total = most + math.log(sum(math.exp(logit - most) for _, logit in given))
        self.ranked = sorted(
            ((token, round(logit - total - _SLACK, 6)) for token, logit in given), key=lambda pair: -pair[1]
        )
        self._known = dict(self.ranked)

    def of(self, token: int) -> float:
        """The log-probability of any token."""
        known = self._known.get(token)
        return _FAR - token % 97 / 10 if known is None else known


@functools.lru_cache(maxsize=4096)
def word_odds(group: int, first: int, stride: int, *, ends: bool = False, again: int | None = None) -> Odds:
    """
    Odds in free text.

    Args:
        group: third of the vocabulary that the next word is from; see `words.sequence_class`.
        first: which of its words is the likeliest.
        stride: from each of its words to the next likely one; not 0.
        ends: whether the text is likelier to end here than to go on.
        again: a token that is likelier than all words, since the prompt repeated it.
    """
    logits = {3 * ((first + rank * stride) % LIKELY) + group: -_GAP * rank for rank in range(LIKELY)}
    others = [token for token in range(_WORDS) if token not in logits]
    logits |= {token: _UNLIKELY - rank / 10 for rank, token in enumerate(others)}
    logits[END] = 3.0 if ends else _NO_END
    if again is not None:
        logits[again] = 0.5
    return Odds(logits.items())


@functools.lru_cache(maxsize=4096)
def expected(token: int) -> Odds:
    """Odds where a certain token is due: in a prompt, in structured text, in a call."""
    others = ((other, -3.0 - rank / 2) for rank, other in enumerate(range(END + 1)) if other != token)
    return Odds([(token, token % 10 / 10), *others])


class Flow:
    """
    The odds along one free text: another start for another seed, and no block of words twice in a row.

    Args:
        seed: 64 bits.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed
        self._place = seed % 4096

    def next(self, *, ends: bool = False, again: int | None = None) -> Odds:
        """The odds of the next token; see :func:`word_odds`."""
        self._state = state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        group = sequence_class(self._place)
        self._place += 1
        first, stride = (state >> 33) % LIKELY, 1 + (state >> 45) % (LIKELY - 1)
        if ends or again is not None:
            return word_odds(group, first, stride, ends=ends, again=again)
        return word_odds(group, first, stride)
