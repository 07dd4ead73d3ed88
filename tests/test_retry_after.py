"""Retry-After, as a number and as a date (RFC 9110, 10.2.3)."""

from datetime import UTC, datetime

import pytest

from streamgauge.wire.http import retry_after_s


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("7", 7.0),
        ("-1", None),
        ("Thu, 01 Jan 2026 00:00:09 GMT", 9.0),
        ("Thu, 01 Jan 2026 00:00:09", 9.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
    ],
)
def test_retry_after(value: str | None, expected: float | None) -> None:
    """Seconds and dates are understood; what has passed is no wait, what is unreadable is none."""
    assert retry_after_s(value, datetime(2026, 1, 1, tzinfo=UTC)) == expected
