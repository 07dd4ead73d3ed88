"""Strict reading of JSON: the value, and what a strict reader objects to."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.wire.json import read_json

# name: (text, whether a lenient reader takes it, kinds of the defects)
CASES: dict[str, tuple[bytes, bool, list[str]]] = {
    "object": (b'{"a": [1, -2.5e3, true, false, null, "x"]}', True, []),
    "scalar": (b'"x"', True, []),
    "white-space": (b" \t\r\n{} \n", True, []),
    "escaped-pair": (b'"\\ud83c\\udf40"', True, []),
    "deep-but-sane": (b"[" * 100 + b"]" * 100, True, []),
    "huge-exponent": (b"1e400", True, []),
    "beyond-int64": (b"9223372036854775808", True, []),
    "empty": (b"", False, ["syntax"]),
    "white-space-only": (b"  ", False, ["syntax"]),
    "trailing-comma": (b"[1,]", False, ["syntax"]),
    "trailing-bytes": (b"{} {}", False, ["syntax"]),
    "trailing-nul": (b"{}\x00", False, ["syntax"]),
    "single-quotes": (b"{'a': 1}", False, ["syntax"]),
    "comment": (b"{} // no", False, ["syntax"]),
    "leading-zero": (b"01", False, ["syntax"]),
    "leading-plus": (b"+1", False, ["syntax"]),
    "bare-point": (b"1.", False, ["syntax"]),
    "raw-control-character": (b'"a\nb"', False, ["syntax"]),
    "bad-escape": (b'"\\x41"', False, ["syntax"]),
    "no-break-space": ("{}\u00a0".encode(), False, ["syntax"]),
    "html": (b"<html>", False, ["syntax"]),
    "cut-off": (b'{"a": "b', False, ["syntax"]),
    "python-literal": (b"None", False, ["syntax"]),
    "duplicate-key": (b'{"a": 1, "a": 1}', True, ["duplicate-key"]),
    "duplicate-by-escape": (b'{"a": 1, "\\u0061": 2}', True, ["duplicate-key"]),
    "duplicate-nested": (b'[{"x": {"a": 1, "b": 2, "a": 3}}]', True, ["duplicate-key"]),
    "nan": (b"[NaN]", True, ["not-a-number"]),
    "infinities": (b"[Infinity, -Infinity]", True, ["not-a-number", "not-a-number"]),
    "lone-high-surrogate": (b'"\\ud800"', True, ["surrogate"]),
    "lone-low-surrogate": (b'["\\udc00x"]', True, ["surrogate"]),
    "surrogate-in-key": (b'{"\\ud800": 1}', True, ["surrogate"]),
    "bom": (b"\xef\xbb\xbf{}", True, ["bom"]),
    "latin-1": (b'{"a": "\xe9"}', True, ["encoding"]),
    "utf-16": ('{"a": 1}'.encode("utf-16-le"), False, ["syntax"]),
    "encoded-surrogate": (b'"\xed\xa0\x80"', True, ["encoding"]),
}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@pytest.mark.parametrize(("text", "valid", "kinds"), CASES.values(), ids=CASES)
def test_defects(text: bytes, valid: bool, kinds: list[str]) -> None:
    """Each departure from RFC 8259 has its kind; what a lenient reader would take is valid all the same."""
    found = read_json(text)
    assert (found.valid, [defect.kind for defect in found.defects]) == (valid, kinds)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"[1, x]", 4),
        ('["é", x]'.encode(), 7),
        (b"\xef\xbb\xbf[x]", 4),
        (b"{}{}", 2),
        (b'["\xff\xff", x]', -1),
    ],
    ids=["ascii", "two-byte-letter", "behind-bom", "trailing", "unknown-in-broken-utf8"],
)
def test_offset_of_a_syntax_error(text: bytes, offset: int) -> None:
    """The offset counts bytes of the text as given; where that is unknown it is -1."""
    assert read_json(text).defects[-1].offset == offset


def test_offset_of_an_encoding_error() -> None:
    """The first byte that is no UTF-8 is named."""
    assert read_json(b'"ab\xff"').defects[0].offset == 3


def test_integral_lexemes() -> None:
    """Integral numbers written with a fraction or an exponent are kept by JSON pointer, as they were written."""
    found = read_json(b'{"a": 1.0, "b": [2, 3e0, 1.5, -0.0], "c/d~": {"": 1E2}, "e": 1e400}')
    assert found.floats == {"/a": "1.0", "/b/1": "3e0", "/b/3": "-0.0", "/c~1d~0/": "1E2"}
    assert found.value["a"] == 1


def test_last_duplicate_wins() -> None:
    """The value is that of a lenient reader: of two equal keys the last counts, and the defect names the key once."""
    found = read_json(b'{"a": 1, "a": 2, "a": 3, "b": 0}')
    assert (found.value, found.defects[0].detail) == ({"a": 3, "b": 0}, "a")


@pytest.mark.parametrize("depth", [400, 500, 700, 990, 5_000, 100_000])
@pytest.mark.parametrize("shape", [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_depth_never_raises(depth: int, shape: tuple[bytes, bytes]) -> None:
    """A text nested too deeply to be read is a defect, not an exception."""
    opening, closing = shape
    found = read_json(opening * depth + (b"1" if opening != b"[" else b"") + closing * depth)
    assert found.valid or [defect.kind for defect in found.defects] == ["depth"]


@pytest.mark.parametrize("digits", [4_000, 5_000, 100_000])
def test_long_integers_never_raise(digits: int) -> None:
    """An integer that Python refuses to read is a defect, not an exception."""
    found = read_json(b'{"n": ' + b"7" * digits + b"}")
    assert found.valid or [defect.kind for defect in found.defects] == ["depth"]


def test_many_keys_are_counted_quickly() -> None:
    """A hundred thousand keys with one of them twice are read in seconds (counting each by itself takes hours)."""
    text = "{" + ",".join(f'"k{number}":0' for number in range(100_000)) + ',"k7":1}'
    start = time.process_time()
    assert [defect.detail for defect in read_json(text).defects] == ["k7"]
    assert time.process_time() - start < 20


@given(VALUES, st.booleans())
def test_written_values_are_read_back(value: Any, ascii_only: bool) -> None:
    """What json.dumps writes is read back equal, and a strict reader has nothing to object to."""
    found = read_json(json.dumps(value, ensure_ascii=ascii_only).encode())
    assert (found.valid, found.value, found.defects) == (True, value, [])


@given(st.binary() | st.text() | st.text('[]{}",:\\ud80019.eE-NaInfty ', max_size=40))
def test_nothing_raises(text: bytes | str) -> None:
    """Any bytes and any text are read without an exception; without a value there is a defect."""
    found = read_json(text)
    assert found.valid or found.defects
