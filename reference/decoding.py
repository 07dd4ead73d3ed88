"""How the next token is taken: biases, bans and penalties first, then the sampler."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from streamgauge.reference.odds import Odds
from streamgauge.reference.tokens import END, encode, text_of

__all__ = ["Decoding", "Taker"]

Scores = list[tuple[int, float]]
"""Tokens with their scores, greatest first."""

_CENTRE = 20.0
"""Log-probabilities become logits by this: then `repetition_penalty` has signs to tell apart."""

_FORBIDS = -100.0
"""A bias so low is a ban (OpenAI: "values like -100 or 100 should result in a ban or exclusive selection")."""

_LAST_RESORT = tuple(token for code in range(0x21, 0x7F) for token in encode(chr(code)))
"""Candidates where every word is forbidden."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """
    The settings of one request.

    Attributes:
        temperature: 0 takes the likeliest token.
        top_k: 0 for no such limit; so are 1 for `top_p` and 0 for `min_p`.
        beams: whether choices begin with different tokens and are greedy from there.
        bias: what is added to the logits of tokens.
        allowed: the only tokens there are; None for all.
        bad: texts that must not come about.
        presence, frequency: penalties of what was generated.
        repetition: factor for what was generated or stands in the prompt.
        held: tokens that wait for `min_tokens`; what stops the text.
        held_until: that number of tokens.
        endless: whether the text never ends by itself.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    beams: bool = False
    bias: tuple[tuple[int, float], ...] = ()
    allowed: tuple[int, ...] | None = None
    bad: tuple[str, ...] = ()
    presence: float = 0.0
    frequency: float = 0.0
    repetition: float = 1.0
    held: frozenset[int] = frozenset()
    held_until: int = 0
    endless: bool = False

    @property
    def plain(self) -> bool:
        """Whether the likeliest tokens are those of the odds."""
        return self.unbiased and not self.bad and not self.presence and not self.frequency and self.repetition == 1

    @property
    def unbiased(self) -> bool:
        """Whether no token is favoured or forbidden by its id."""
        return not self.bias and self.allowed is None

    @property
    def greedy(self) -> bool:
        """Whether chance has no part in it."""
        return self.temperature == 0 or self.beams or self.top_k == 1

    @property
    def can_end(self) -> bool:
        """Whether the end-of-sequence token can be taken at all."""
        allowed = self.allowed is None or END in self.allowed
        return allowed and not self.endless and dict(self.bias).get(END, 0) > _FORBIDS


class Taker:
    """
    Takes the tokens of one choice.

    Args:
        decoding: the settings.
        prompt: makes the prompt's tokens, for `repetition_penalty`.
        draw: a number from 0 to 1, another with each call.
        position: of the choice among its prompt's; what tells beams apart.
    """

    def __init__(
        self, decoding: Decoding, prompt: Callable[[], Iterable[int]], draw: Callable[[], float], position: int
    ) -> None:
        self._decoding = decoding
        self._draw = draw
        self._position = position if decoding.beams else 0
        self._bias = dict(decoding.bias)
        self._counts: Counter[int] = Counter()
        self._seen = set(prompt()) if decoding.repetition != 1 else set()
        self._taken = 0
        self._plain = decoding.plain
        # Nothing ends free text too early by itself, but any of its words may be one that stops it.
        self._waits_until = decoding.held_until if decoding.held - {END} else 0
        self._tail = ""
        self._longest = max(map(len, decoding.bad), default=0)

    def take(self, odds: Odds) -> int:
        """The token that comes next."""
        if self._plain and self._taken >= self._waits_until:
            scores: Scores = odds.ranked
        else:
            scores = sorted(self._scored(odds), key=lambda pair: -pair[1])
        first = self._taken == 0 and self._position
        if first:
            token = scores[min(self._position, len(scores) - 1)][0]
        else:
            token = scores[0][0] if self._decoding.greedy else self._sampled(scores)
        self._note(token)
        return token

    def _note(self, token: int) -> None:
        self._taken += 1
        if self._plain:
            return
        self._counts[token] += 1
        self._seen.add(token)
        if self._longest:
            self._tail = (self._tail + text_of(token))[-self._longest :]

    def _scored(self, odds: Odds) -> Iterator[tuple[int, float]]:
        """Every candidate with its logit; the end of the text where nothing else is left."""
        decoding = self._decoding
        candidates = self._candidates(odds)
        kept = [token for token in candidates if not self._forbidden(token)]
        if not kept or (kept == [END] and odds.ranked[0][0] != END):
            allowed = decoding.allowed is None
            kept = [token for token in _LAST_RESORT if allowed and not self._forbidden(token)] or kept
        for token in kept or [END]:
            score = odds.of(token) + _CENTRE
            if token in self._seen and decoding.repetition != 1:
                score = score / decoding.repetition if score > 0 else score * decoding.repetition
            times = self._counts[token]
            if times:
                score -= decoding.presence + decoding.frequency * times
            yield token, score + self._bias.get(token, 0.0)

    def _candidates(self, odds: Odds) -> list[int]:
        if self._decoding.allowed is not None:
            return list(self._decoding.allowed)
        known = [token for token, _ in odds.ranked]
        return known + [token for token in self._bias if token not in known]

    def _forbidden(self, token: int) -> bool:
        decoding = self._decoding
        if token == END and decoding.endless:
            return True
        if token in decoding.held and self._taken < decoding.held_until:
            return True
        if self._bias.get(token, 0.0) <= _FORBIDS:
            return True
        if not decoding.bad:
            return False
        text = self._tail + text_of(token)
        return any(bad in text[max(0, len(self._tail) - len(bad) + 1) :] for bad in decoding.bad)

    def _sampled(self, scores: Scores) -> int:
        """Temperature first, then `top_k`, `top_p` and `min_p`, as vLLM has it."""
        decoding = self._decoding
        most = scores[0][1]
        weights = [math.exp((score - most) / decoding.temperature) for _, score in scores]
        total = sum(weights)
        kept, mass = 0, 0.0
        for weight in weights:
            beyond = (0 < decoding.top_k <= kept) or mass >= decoding.top_p * total or weight < decoding.min_p
            if kept and beyond:
                break
            kept += 1
            mass += weight
        left = self._draw() * mass
        for (token, _), weight in zip(scores[:kept], weights, strict=False):
            left -= weight
            if left < 0:
                return token
        return scores[kept - 1][0]
