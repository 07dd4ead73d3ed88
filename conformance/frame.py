"""What frames every answer and chunk: when it was made, and by which model."""

import re
from datetime import datetime
from typing import Any

from streamgauge.wire.json import JsonText

__all__ = ["far_from", "names_model", "not_an_integer"]

_DAY = 86_400.0
_BEYOND = 10**18
"""Seconds beyond any date; an integer may be too large for a float."""

_VERSION = re.compile(r"-(\d{4}|\d{8}|\d{4}-\d{2}-\d{2})")
"""What OpenAI adds to the name of a model to tell its version: `-0613`, `-20240806`, `-2024-08-06`."""


def not_an_integer(text: JsonText) -> str:
    """`created` as it was written, where it is no integer or is written as a fraction; else empty."""
    value = text.value.get("created")
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return "" if is_integer else text.floats.get("/created", repr(value))


def far_from(started: str, created: float) -> tuple[str, str] | None:
    """What `created` should be and what it is, where it is more than a day from the exchange (ISO 8601); else None."""
    begun = datetime.fromisoformat(started).timestamp()
    moment = float(min(max(created, -_BEYOND), _BEYOND))
    return (f"within a day of {begun:.0f}", f"{moment:.0f}") if not abs(moment - begun) <= _DAY else None


def names_model(given: Any, asked: str) -> bool:
    """Whether an answer names the model that was asked for, or a dated version of it."""
    if not isinstance(given, str) or not given.startswith(asked):
        return False
    return given == asked or _VERSION.fullmatch(given[len(asked) :]) is not None
