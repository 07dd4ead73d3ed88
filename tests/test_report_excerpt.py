"""Evidence as text: nothing invisible, nothing lost, the right range marked."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.reports.excerpt import CONTEXT, LONGEST_SPAN, excerpt_of, visible

CASES = [
    (b"plain <b>", "plain <b>"),
    (b"a\r\nb", "a\\r\\n\nb"),
    (b"\x00\x07\t\x7f", "\\x00\\x07\\t\\x7f"),
    (b"back\\slash", "back\\\\slash"),
    ("é\u2028\u202e😀".encode(), "\\u00e9\\u2028\\u202e\\U0001f600"),
    (b"\xff\xc3(\xe2\x82", "\\xff\\xc3(\\xe2\\x82"),
    (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
]


@pytest.mark.parametrize(("data", "text"), CASES)
def test_visible(data: bytes, text: str) -> None:
    """Each kind of byte has its visible form; what is not UTF-8 (surrogates included) is shown by bytes."""
    assert visible(data) == text


@given(st.binary(max_size=60))
def test_visible_loses_nothing(data: bytes) -> None:
    """The bytes can be told again from their visible form, which is printable ASCII and line breaks."""
    text = visible(data)
    assert all(" " <= character <= "~" or character == "\n" for character in text)
    back = re.sub(
        r"\\(\\|[rt]|n\n|x..|u....|U........)",
        lambda match: (
            {"\\": "\\", "r": "\r", "t": "\t", "n": "\n"}.get(match.group(1)[0])
            or (
                chr(int(match.group(1)[1:], 16))
                if match.group(1)[0] != "x"
                else chr(0xDC00 + int(match.group(1)[1:], 16))
            )
        ),
        text,
    )
    raw = back.encode("utf-8", "surrogatepass")
    lone = re.compile(b"\xed[\xb0-\xb3][\x80-\xbf]")
    assert lone.sub(lambda match: bytes([ord(match.group().decode("utf-8", "surrogatepass")) - 0xDC00]), raw) == data


def marked(data: bytes, span: tuple[int, int]) -> str:
    """The marked text."""
    return "".join(piece.text for piece in excerpt_of(data, span, "body").pieces if piece.marked)


@given(data=st.binary(max_size=50), start=st.integers(0, 50), length=st.integers(1, 50))
def test_mark_covers_the_span(data: bytes, start: int, length: int) -> None:
    """All pieces together are the excerpt's bytes; the mark holds at least the span's characters."""
    found = excerpt_of(data, (start, start + length), "body")
    assert found.span is not None
    text = "".join(piece.text for piece in found.pieces).replace("‸", "")
    assert text == visible(data[found.start : found.end])
    if data.isascii() and found.span[0] < found.span[1]:
        assert marked(data, (start, start + length)) == visible(data[slice(*found.span)])


@pytest.mark.parametrize(
    ("data", "span", "text"),
    [
        (b"abcdef", (2, 4), "cd"),
        (b"abcdef", (3, 3), "‸"),
        (b"abcdef", (6, 6), "‸"),
        (b"abcdef", (90, 99), "‸"),
        (b"", (0, 0), "‸"),
        ("aéb".encode(), (2, 3), "\\u00e9"),
        (b"a\n\nb", (1, 3), "\\n\n\\n\n"),
    ],
)
def test_marked(data: bytes, span: tuple[int, int], text: str) -> None:
    """The span is marked; an empty or impossible one by a caret, one inside a character by the whole of it."""
    assert marked(data, span) == text


def test_context_does_not_cut_characters() -> None:
    """Where the context begins or ends within a character, the character is not made to look broken."""
    data = "é".encode() * 500
    for shift in range(4):
        shown = "".join(piece.text for piece in excerpt_of(data, (500 + shift, 502 + shift), "body").pieces)
        assert "\\x" not in shown


def test_long_span_keeps_both_ends() -> None:
    """A span of any length takes bounded room and says how much is left out."""
    data = b"<" + b"a" * 100_000 + b">"
    found = excerpt_of(data, (0, len(data)), "body")
    text = "".join(piece.text for piece in found.pieces)
    assert text.startswith("<")
    assert text.endswith(">")
    assert f"{len(data) - LONGEST_SPAN} more bytes" in text
    assert len(text) < 2 * LONGEST_SPAN


def test_without_a_span_the_start_is_shown() -> None:
    """Evidence without a range shows where the bytes begin, and marks nothing."""
    found = excerpt_of(b"x" * 5000, None, "head")
    assert (found.start, found.end, found.size, found.part) == (0, 2 * CONTEXT, 5000, "head")
    assert not any(piece.marked for piece in found.pieces)
