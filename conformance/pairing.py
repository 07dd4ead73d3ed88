"""
Whether two forms of one answer say the same, where a model need not say the same twice.

The noise floor is how often answers of the *same* form differ among themselves. What differs between the forms counts as far
as that does not explain it. Pure functions over groups: one group for each question, which was asked several times in each
form.
"""

import enum
import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

__all__ = [
    "ALPHA",
    "Floor",
    "Group",
    "Groups",
    "Verdict",
    "chance_apart",
    "floor_of",
    "names_of",
    "p_apart",
    "p_streams",
    "verdict",
]

_Value = TypeVar("_Value", bound=Hashable)

ALPHA = 0.01
"""How often, at most, a right server may be called wrong: the sum over all tests of one verdict on one operation."""

EXACT = 20_000
"""Up to this product of names and labelings to go through, a distribution is reckoned exactly; beyond, it is drawn."""

DRAWS = 4_000
"""How many labelings are drawn, with a fixed seed."""

DOUBT = 0.05
"""From here on noise is a poor excuse for streams alone that differ."""


class Verdict(enum.Enum):
    """What a group says about the server."""

    SAME = enum.auto()
    """All answers say the same."""

    NOISE = enum.auto()
    """The answers differ as those of one form do."""

    UNCLEAR = enum.auto()
    """Too few answers to tell a fault from noise."""

    DIFFERENT = enum.auto()
    """The forms differ."""


@dataclass(frozen=True)
class Group:
    """
    The answers to one question. Equal numbers stand for answers that say the same.

    Attributes:
        whole, streamed: one number for each answer.
        damaged: a streamed answer that no whole one equals is yet no other text: a part of it is missing, or the text is
            the same. A model that says another thing at times does not explain that.
    """

    whole: tuple[int, ...]
    streamed: tuple[int, ...]
    damaged: bool = False

    @property
    def repeated(self) -> bool:
        """Whether each form has been seen often enough to differ from itself."""
        return len(self.whole) > 1 and len(self.streamed) > 1

    @property
    def overlaps(self) -> bool:
        """Whether some streamed answer equals some whole one."""
        return bool(set(self.whole) & set(self.streamed))

    @property
    def odd(self) -> int:
        """How many streamed answers no whole one equals."""
        return sum(each not in self.whole for each in self.streamed)

    @property
    def all(self) -> tuple[int, ...]:
        """Every answer."""
        return self.whole + self.streamed

    @cached_property
    def names(self) -> Counter[int]:
        """How often each thing is said."""
        return Counter(self.all)

    @property
    def usual(self) -> int | None:
        """What most of all answers say; None where several things are said equally often."""
        (first, most), *others = self.names.most_common(2)
        return None if others and others[0][1] == most else first


@dataclass(frozen=True, slots=True)
class Floor:
    """The noise: of `pairs` pairs of answers of the same form, `differ` do."""

    differ: int
    pairs: int

    @property
    def rate(self) -> float:
        """How often two answers of one form differ."""
        return self.differ / self.pairs if self.pairs else 0.0

    def without(self, part: "Floor") -> "Floor":
        """The floor of what is left when a part of the answers is taken out."""
        return Floor(self.differ - part.differ, self.pairs - part.pairs)


class Groups(tuple[Group, ...]):
    """The answers to all questions of an operation; what they say together is reckoned once for all verdicts."""

    @cached_property
    def floor(self) -> Floor:
        """How noisy the model is."""
        return floor_of(self)

    @cached_property
    def p_apart(self) -> float:
        """See :func:`p_apart`."""
        return p_apart(self)

    @cached_property
    def p_streams(self) -> float:
        """See :func:`p_streams`."""
        return p_streams(self)

    @cached_property
    def any_whole_differ(self) -> bool:
        """Whether the whole form of some question differs from itself."""
        return any(len(set(each.whole)) > 1 for each in self)

    @cached_property
    def any_overlaps(self) -> bool:
        """Whether the forms of some question have an answer in common."""
        return any(each.overlaps for each in self)


def names_of(values: Iterable[_Value], same: Callable[[_Value, _Value], bool]) -> list[int]:
    """A number for each value: that of the first one which is the same. Equal values are."""
    firsts: list[tuple[int, _Value]] = []
    known: dict[_Value, int] = {}
    names = []
    for position, value in enumerate(values):
        if value not in known:
            known[value] = next((name for name, first in firsts if same(first, value)), position)
            if known[value] == position:
                firsts.append((position, value))
        names.append(known[value])
    return names


def floor_of(groups: Iterable[Group]) -> Floor:
    """The floor over all questions."""
    differ = pairs = 0
    for answers in (each for group in groups for each in (group.whole, group.streamed)):
        count = math.comb(len(answers), 2)
        pairs += count
        differ += count - sum(math.comb(times, 2) for times in Counter(answers).values())
    return Floor(differ, pairs)


def verdict(group: Group, groups: Groups) -> Verdict:
    """
    Judge one question's answers.

    Args:
        group: these.
        groups: those of all questions to the same operation, `group` included: they tell how noisy the model is.
    """
    if len(group.names) == 1:
        return Verdict.SAME
    if not group.repeated:
        return Verdict.UNCLEAR
    if _significant(group, groups):
        return Verdict.DIFFERENT
    if not group.overlaps and _agree(group.whole) and _agree(group.streamed):
        return Verdict.UNCLEAR
    if groups.any_whole_differ:
        return Verdict.NOISE if groups.any_overlaps else Verdict.UNCLEAR
    if group.damaged or not group.overlaps or groups.p_streams <= DOUBT:
        return Verdict.UNCLEAR
    return Verdict.NOISE


def _significant(group: Group, groups: Groups) -> bool:
    """Whether noise cannot be the reason: four tests, each with its share of :data:`ALPHA`."""
    share, own_share = ALPHA / 4, ALPHA / 4 / len(groups)
    if not group.overlaps:
        if _agree(group.whole) and _agree(group.streamed) and chance_apart(group, groups) <= own_share:
            return True
        if groups.p_apart <= share:
            return True
    return p_apart([group]) <= own_share or bool(group.odd and groups.p_streams <= share)


def _agree(answers: tuple[int, ...]) -> bool:
    return len(set(answers)) < len(answers)


def chance_apart(group: Group, groups: Groups) -> float:
    """
    How likely noise alone leaves a question's forms without an answer in common.

    One of them then has nothing of what the model mostly says. The floor, measured on this question and apart from it on the
    others, of which the higher one counts, tells how often it says something else: a rate e where answers of one form
    differ with the rate 2e(1 - e), which is so where the model says one of two things, and less than e elsewhere.
    """
    own = floor_of([group])
    rate = max(own.rate, groups.floor.without(own).rate)
    e = (1 - math.sqrt(1 - 2 * rate)) / 2 if rate < 0.5 else 0.5
    return float(e ** len(group.whole) + e ** len(group.streamed))


def p_apart(groups: Iterable[Group]) -> float:
    """
    How likely the forms agree as little as they do, if the form makes no difference.

    A permutation test, within each question, on the mismatches between the forms less those within them; as all of them
    together are given, that is a test on the matches between the forms.
    """
    observed = 0
    chances = {0: 1.0}
    for group in groups:
        observed += _matches(group.names, Counter(group.streamed))
        ways = _ways(group)
        total = sum(ways.values())
        following: dict[int, float] = {}
        for known, chance in chances.items():
            for matches, count in ways.items():
                following[known + matches] = following.get(known + matches, 0.0) + chance * count / total
        chances = following
    return min(1.0, math.fsum(chance for matches, chance in chances.items() if matches <= observed))


def _matches(names: Counter[int], streamed: Counter[int]) -> int:
    """Pairs of a whole and a streamed answer that say the same."""
    return sum((names[name] - count) * count for name, count in streamed.items())


def _ways(group: Group) -> Counter[int]:
    """Matches between the forms → in how many labelings of the group's answers there are so many."""
    size = len(group.streamed)
    if len(group.names) * size**2 > EXACT:
        return _drawn(group)
    found: Counter[tuple[int, int]] = Counter({(0, 0): 1})
    for each in group.names.values():
        following: Counter[tuple[int, int]] = Counter()
        for (taken, matches), count in found.items():
            for streamed in range(min(each, size - taken) + 1):
                key = (taken + streamed, matches + streamed * (each - streamed))
                following[key] += count * math.comb(each, streamed)
        found = following
    return Counter({matches: count for (taken, matches), count in found.items() if taken == size})


def _drawn(group: Group) -> Counter[int]:
    """The same of labelings that are drawn; the true one is among them, so that none is impossible."""
    draws = random.Random(0)  # noqa: S311 - no secret
    labelings = [group.streamed, *(draws.sample(group.all, len(group.streamed)) for _ in range(DRAWS))]
    return Counter(_matches(group.names, Counter(streamed)) for streamed in labelings)


def p_streams(groups: Iterable[Group]) -> float:
    """
    How likely so many of the unusual answers are streamed ones, if the form makes no difference: exact, over all questions.

    Each question's unusual answers fall upon the forms as in Fisher's exact test. A question whose usual answer is not
    plain says nothing.
    """
    observed = 0
    chances = [1.0]
    for group in groups:
        if group.usual is None:
            continue
        odd = sum(each != group.usual for each in group.all)
        observed += sum(each != group.usual for each in group.streamed)
        chances = _convolved(chances, _hypergeometric(odd, len(group.whole), len(group.streamed)))
    return min(1.0, math.fsum(chances[observed:]))


def _hypergeometric(odd: int, whole: int, streamed: int) -> list[float]:
    """The chance of 0, 1, ... `odd` of the odd answers being streamed ones."""
    ways = math.comb(whole + streamed, odd)
    return [math.comb(streamed, count) * math.comb(whole, odd - count) / ways for count in range(odd + 1)]


def _convolved(first: list[float], second: list[float]) -> list[float]:
    result = [0.0] * (len(first) + len(second) - 1)
    for at, one in enumerate(first):
        for behind, other in enumerate(second):
            result[at + behind] += one * other
    return result
