"""Times and numbers as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import UsageError
from streamgauge.load.texts import decimal, seconds, time_text, whole_number, whole_seconds, written

TIMES = [
    ("90", 90),
    ("20s", 20),
    ("2m", 120),
    ("1h", 3600),
    ("1m30s", 90),
    ("1h2m3", 3723),
    ("1.5s", 1.5),
    ("250ms", 0.25),
    (" 5s ", 5),
    ("0s", 0),
]


@pytest.mark.parametrize(("text", "value"), TIMES)
def test_times(text: str, value: float) -> None:
    """Hours, minutes, seconds and parts of one."""
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", " ", "soon", "-1s", "1s2m", "1.5m", "1e3", "5 s", "ms", "1m5ms", "٣s"])
def test_what_is_no_time(text: str) -> None:
    """Everything else is refused, with the forms that there are."""
    with pytest.raises(UsageError, match="1m30s"):
        seconds(text)


@pytest.mark.parametrize("text", ["0s", "1.5s", "500ms", "x"])
def test_whole_seconds_are_at_least_one(text: str) -> None:
    """Locust counts no parts of a second."""
    with pytest.raises(UsageError):
        whole_seconds(text)
    assert whole_seconds("0s", least=0) == 0


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", "1_000", "٣"])
def test_what_is_no_whole_number(text: str) -> None:
    """Digits alone, and not below the least."""
    with pytest.raises(UsageError, match="at least 1"):
        whole_number(text)
    assert whole_number("0", least=0) == 0


@pytest.mark.parametrize("text", ["-1", "1e3", "nan", "inf", "x", "", "1."])
def test_what_is_no_decimal(text: str) -> None:
    """Digits with or without a point; the message says what it should be."""
    with pytest.raises(UsageError, match="no rate"):
        decimal(text, "rate")


@given(st.floats(0, 1e8, allow_subnormal=False).filter(lambda value: value == 0 or value > 1e-9))
def test_numbers_and_times_read_back(number: float) -> None:
    """What is written means the same number, to the last bit."""
    assert decimal(written(number), "number") == number
    assert seconds(time_text(number)) == number
