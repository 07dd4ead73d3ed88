"""Times and numbers as people write them in flags and scenario files, and back."""

import re
from decimal import Decimal

from streamgauge.errors import UsageError

__all__ = ["decimal", "seconds", "time_text", "whole_number", "whole_seconds", "written"]

_TIME = re.compile(
    r"(?=.)(?:(?P<h>\d{1,6})h)?(?:(?P<m>\d{1,6})m(?!s))?(?:(?P<s>\d{1,9}(?:\.\d+)?)s?)?|(?P<ms>\d{1,9})ms",
    re.ASCII,
)
_WHOLE = re.compile(r"\d{1,16}", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d+)?", re.ASCII)


def seconds(text: str) -> float:
    """
    A length of time in seconds, from `90`, `20s`, `1.5s`, `250ms`, `2m`, `1h` or `1m30s`.

    Raises:
        UsageError: it is none of these.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no length of time", hint="Write 500ms, 20s, 2m, 1h or 1m30s.")
    if found["ms"]:
        return int(found["ms"]) / 1000
    return 3600 * int(found["h"] or 0) + 60 * int(found["m"] or 0) + float(found["s"] or 0)


def whole_seconds(text: str, *, least: int = 1) -> int:
    """
    A length of time in whole seconds.

    Raises:
        UsageError: it is no time, no whole second (Locust counts no parts of one), or below `least`.
    """
    found = seconds(text)
    if found < least or found != int(found):
        raise UsageError(f"{text!r} is no time in whole seconds, at least {least}", hint="Write 20s, 2m, 1h or 1m30s.")
    return int(found)


def decimal(text: str, what: str) -> float:
    """
    A number that is not negative.

    Args:
        text: as a person writes it.
        what: what it is, for the message.

    Raises:
        UsageError: it is none.
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise UsageError(f"{text!r} is no {what}", hint="Write a number such as 5 or 0.5.")
    return float(text)


def whole_number(text: str, *, least: int = 1, most: int = 10**15) -> int:
    """
    A whole number.

    Raises:
        UsageError: it is none, or out of bounds.
    """
    if not _WHOLE.fullmatch(text.strip()) or not least <= int(text) <= most:
        bounds = f"at least {least}" if most == 10**15 else f"{least} to {most}"
        raise UsageError(f"{text!r} is no whole number, {bounds}")
    return int(text)


def written(number: float) -> str:
    """The shortest text, without an exponent, that reads back as this number."""
    return str(int(number)) if number == int(number) else format(Decimal(repr(number)), "f")


def time_text(seconds: float) -> str:
    """The shortest text that reads back as this time."""
    return f"{written(seconds)}s"
