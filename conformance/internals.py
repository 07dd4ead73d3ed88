"""What betrays a server's inside in a text: stack traces, source files, addresses behind a proxy."""

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["internals_in", "texts_of", "visible"]

_URL = re.compile(r"https?://\S+")
_MARKUP = re.compile(r"<script\b.*?</script>|<style\b.*?</style>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_FILE = "source file"

_SOURCE = r"(?:py|pyx|go|rs|c|cc|cpp|cu|cuh|h|hpp|cs|java|kt|scala|swift|rb|php|lua|ex|js|mjs|ts|tsx)"
_PRIVATE = r"(?:127\.\d+\.\d+\.\d+|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+|172\.(?:1[6-9]|2\d|3[01])\.\d+\.\d+)"

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("stack trace", re.compile(r"Traceback \(most recent call last\)")),
    ("stack trace", re.compile(r"\bFile \"[^\"\n]+\", line \d+")),  # Python
    ("stack trace", re.compile(r"\bat [\w$.<>]+\([\w$]+\.(?:java|kt|scala):\d+\)")),
    ("stack trace", re.compile(r"\bat [^\n]{0,120}?(?:\.[cm]?[jt]s|node:[\w/]+):\d+:\d+")),  # JavaScript
    ("stack trace", re.compile(r"\bgoroutine \d+ \[|\bthread '[^']*' panicked at")),  # Go, Rust
    (_FILE, re.compile(rf"(?:/[\w.@+-]+){{2,}}\.{_SOURCE}\b")),
    (_FILE, re.compile(rf"\b[A-Za-z]:\\+(?:[\w. -]+\\+)+[\w.-]+\.{_SOURCE}\b")),
    (_FILE, re.compile(r"\b(?:site|dist)-packages/")),
    (
        "address behind it",
        re.compile(
            rf"\bhttps?://(?:localhost|{_PRIVATE}|\[::1\]|[\w.-]+\.(?:internal|local|svc|lan))(?::\d+)?"
            # As proxies say it: `dial tcp 10.0.0.7:8000: connection refused`, `HTTPConnectionPool(host='10.0.0.7', port=8000)`.
            rf"|\b(?:localhost|{_PRIVATE}):\d{{2,5}}\b|\bhost='(?:localhost|{_PRIVATE})'"
        ),
    ),
)


def internals_in(text: str, known: str = "") -> list[tuple[str, str]]:
    """
    Every trace of the server's inside: what it is, and the text that shows it.

    Args:
        text: to search.
        known: what the reader knew before, such as the request: what stands there betrays nothing.
    """
    without_urls = _URL.sub(" ", text)  # a link to a page about the server's source is meant to be seen
    return [
        (what, match.group())
        for what, pattern in _PATTERNS
        for match in pattern.finditer(without_urls if what == _FILE else text)
        if match.group() not in known
    ]


def visible(page: str) -> str:
    """What a page of HTML shows: without its tags, and the addresses of scripts in them."""
    return _MARKUP.sub(" ", page)


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
