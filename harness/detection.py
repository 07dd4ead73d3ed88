"""What n exchanges without a fault tell about rare faults, and how many tries it takes to see one."""

import math
from collections.abc import Mapping

from streamgauge.errors import UsageError
from streamgauge.outcomes import Outcome

__all__ = ["CONFIDENCE", "LEAST_RATE", "POWER", "excluded", "excluded_rate", "tally", "tries_for"]

CONFIDENCE = 0.95
"""How sure a pass is that the fault is rarer than the rate that it excludes."""

POWER = 0.99
"""How likely the tries for a rate show a fault of that rate at least once."""

LEAST_RATE = 0.001
"""The lowest rate to look for: 4603 tries of each probe. What is rarer shows under load, not in a check."""


def excluded_rate(n: int) -> float:
    """
    The lowest fault rate that n exchanges, all of them without the fault, exclude at 95 %.

    The upper end of the one-sided Clopper-Pearson interval for 0 of n (Biometrika 26, 1934, 404-413), the rate p with
    (1 - p)^n = 0.05; about 3/n for large n, the "rule of three" (Hanley and Lippman-Hand, JAMA 249, 1983, 1743-1745).

    Args:
        n: exchanges, independent of each other and alike; 1 or more.
    """
    return 1 - math.pow(1 - CONFIDENCE, 1 / n)


def tries_for(rate: float) -> int:
    """
    The least n with which a fault that strikes with this rate is seen at least once with 99 % power.

    That is the least n with (1 - rate)^n <= 0.01: 13 for a rate of 0.3.

    Raises:
        UsageError: the rate is not from 0.001 up to, and without, 1.
    """
    if not LEAST_RATE <= rate < 1:  # also refuses what is not a number
        hint = f"Give a number below 1, {LEAST_RATE} at least: 0.3 takes 13 tries of each probe, 0.1 takes 44."
        raise UsageError(f"{rate:g} is no rate of faults that tries can detect", where="--detect-rate", hint=hint)
    return math.ceil(math.log(1 - POWER) / math.log(1 - rate))


def excluded(n: int) -> str:
    """The rate that n passes exclude, in per cent and rounded up, so that it stays true: `21 %`."""
    rate = excluded_rate(n)
    steps = 100 if rate >= 0.1 else 1000
    return f"{math.ceil(rate * steps - 1e-9) / (steps / 100):g} %"


def tally(outcome: Outcome, counts: Mapping[Outcome, int] | Mapping[str, int]) -> str:
    """How many of the exchanges judged had the outcome, and what a pass excludes; empty when none was judged."""
    total = sum(counts.values())
    if not total:
        return ""
    told = f"{counts.get(outcome, 0)} of {total}"
    if outcome is not Outcome.PASS:
        return told
    return f"{told}; a fault in more than {excluded(total)} of such requests would have shown, at 95 %"
