"""Strict reading of JSON: the value, and what a strict reader objects to."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.wire.json import MOST_DEPTH, MOST_DIGITS, Defect, JsonText, read_json

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
    "trailing-bytes": (b"{} {}", False, ["trailing"]),
    "trailing-nul": (b"{}\x00", False, ["trailing"]),
    "single-quotes": (b"{'a': 1}", False, ["syntax"]),
    "comment": (b"{} // no", False, ["trailing"]),
    "leading-zero": (b"01", False, ["trailing"]),
    "leading-plus": (b"+1", False, ["syntax"]),
    "bare-point": (b"1.", False, ["trailing"]),
    "raw-control-character": (b'"a\nb"', False, ["syntax"]),
    "bad-escape": (b'"\\x41"', False, ["syntax"]),
    "no-break-space": ("{}\u00a0".encode(), False, ["trailing"]),
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


@pytest.mark.parametrize(
    ("text", "large"),
    [
        (b"[9007199254740991, -9007199254740991]", {}),
        (b"[9007199254740992]", {"/0": "9007199254740992"}),
        (b'{"a": -9007199254740992}', {"/a": "-9007199254740992"}),
        (b'{"seed": 9223372036854775808}', {"/seed": "9223372036854775808"}),
        (b"12345678901234567890123", {"": "12345678901234567890123"}),
    ],
    ids=["safe", "2**53", "negative", "beyond-int64", "at-the-top"],
)
def test_integers_that_are_not_the_same_everywhere(text: bytes, large: dict[str, str]) -> None:
    """Integers beyond 2**53-1 are kept as written (RFC 8259, section 6); they are right all the same."""
    found = read_json(text)
    assert (found.valid, found.defects, found.large) == (True, [], large)


def test_numbers_beyond_a_double() -> None:
    """What a double cannot hold is infinite to Python, and noted with its lexeme (RFC 8259, section 6)."""
    found = read_json(b'{"a": [1e400, -1E+999, 1e308]}')
    assert found.infinite == {"/a/0": "1e400", "/a/1": "-1E+999"}
    assert found.value["a"][:2] == [float("inf"), float("-inf")]


@pytest.mark.parametrize(
    ("text", "detail", "offset"),
    [
        (b"{} {}", "'{' stands behind the value", 3),
        (b"\xef\xbb\xbf[1]\n\x00", r"'\x00' stands behind the value", 7),
        ('"é"x'.encode(), "'x' stands behind the value", 4),
        (b'"\xff" x', "'x' stands behind the value", -1),
    ],
    ids=["value", "nul-behind-bom", "letter", "unknown-in-broken-utf8"],
)
def test_trailing_bytes(text: bytes, detail: str, offset: int) -> None:
    """What stands behind the value has a kind of its own, and the offset of its first byte (RFC 8259, section 2)."""
    assert read_json(text).defects[-1] == Defect("trailing", detail, offset)


@pytest.mark.parametrize(
    ("text", "kind", "pointer"),
    [
        (b'{"a": 1, "a": 2}', "duplicate-key", ""),
        (b'{"x/": [0, {"a": 1, "a": 2}]}', "duplicate-key", "/x~1/1"),
        (b'{"x": ["\\udc00"]}', "surrogate", "/x/0"),
    ],
)
def test_defects_name_their_place(text: bytes, kind: str, pointer: str) -> None:
    """A defect within the value has a JSON pointer (RFC 6901)."""
    (defect,) = read_json(text).defects
    assert (defect.kind, defect.pointer) == (kind, pointer)


@pytest.mark.parametrize("lexeme", ["1.0", "-0.0", "3e0", "1E2"])
def test_one_integral_lexeme_is_enough(lexeme: str) -> None:
    """A text with nothing else to report keeps it all the same."""
    assert read_json(f'{{"a": [{lexeme}]}}').floats == {"/a/0": lexeme}


def test_last_duplicate_wins() -> None:
    """The value is that of a lenient reader: of two equal keys the last counts, and the defect names the key once."""
    found = read_json(b'{"a": 1, "a": 2, "a": 3, "b": 0}')
    assert (found.value, found.defects[0].detail) == ({"a": 3, "b": 0}, "a")


@pytest.mark.parametrize("depth", [201, 400, 990, 5_000, 100_000])
@pytest.mark.parametrize("shape", [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_depth_never_raises(depth: int, shape: tuple[bytes, bytes]) -> None:
    """A text nested too deeply to be read is a defect, not an exception."""
    opening, closing = shape
    found = read_json(opening * depth + (b"1" if opening != b"[" else b"") + closing * depth)
    assert (found.valid, [defect.kind for defect in found.defects]) == (False, ["limit"])
    assert found.beyond_limit == f"deeper than MOST_DEPTH ({MOST_DEPTH})"


@pytest.mark.parametrize("shape", [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
@pytest.mark.parametrize("end", [b"1", b"1.0"], ids=["quick", "thorough"])
def test_depth_at_the_limit_is_read(shape: tuple[bytes, bytes], end: bytes) -> None:
    """A text that nests as deep as the limit says is read by both readings (RFC 8259, section 9)."""
    opening, closing = shape
    found = read_json(opening * MOST_DEPTH + end + closing * MOST_DEPTH)
    assert (found.valid, found.beyond_limit) == (True, "")


def test_brackets_side_by_side_or_in_strings_are_no_depth() -> None:
    """Only nesting counts, not how many brackets there are."""
    text = json.dumps([[], {"[" * 500: '{["' * 500}] * 500)
    assert read_json(text).value == json.loads(text)


@pytest.mark.parametrize("digits", [4_300, 4_301, 100_000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_long_integers_never_raise(digits: int, sign: str) -> None:
    """An integer that Python refuses to read is beyond a limit: no exception, and no fault of the text's."""
    found = read_json(f'{{"n": {sign}{"7" * digits}}}')
    assert found.valid == (digits <= MOST_DIGITS)
    assert [defect.kind for defect in found.defects] == ([] if found.valid else ["limit"])


def test_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of more bytes than the limit is not read, and not called wrong."""
    monkeypatch.setattr("streamgauge.wire.json.MOST_BYTES", 4)
    assert read_json(b"[12]").value == [12]
    found = read_json(b"[12] ")
    assert (found.valid, found.beyond_limit) == (False, "more than MOST_BYTES (4)")


def test_little_stack_left_is_a_limit() -> None:
    """Called from the depth of the stack, the reader says so instead of raising."""

    def descend() -> JsonText:
        try:
            return descend()
        except RecursionError:
            return read_json(b"[" * 199 + b"1.0" + b"]" * 199)

    found = descend()
    assert found.valid or found.beyond_limit


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


# --- both readings give the same --------------------------------------------------------------------------------------

NUMBERS = [
    "0",
    "-1",
    "1.0",
    "-0.0",
    "2.5",
    "1e2",
    "1E-3",
    "1e400",
    "9007199254740991",
    "9007199254740992",
    "-88888888888888888888",
]
OTHERS = ["NaN", "-Infinity", "true", "null", '"x"', '"é"', "01", "[", "}"]
ESCAPES = ['"\\ud83c\\udf40"', '"\\ud83c"', '"\\u00e9"', '"\\ud"']
LEXEMES = st.sampled_from(NUMBERS + OTHERS + ESCAPES)


def _written(items: list[str], keys: list[str]) -> st.SearchStrategy[str]:
    body = ",".join(f'"{key}":{item}' for key, item in zip(keys, items, strict=False))
    return st.sampled_from([f"[{','.join(items)}]", f"{{{body}}}", f" [ {' , '.join(items)} ]\n"])


TEXTS = st.recursive(
    LEXEMES,
    lambda children: st.tuples(
        st.lists(children, max_size=3), st.lists(st.sampled_from(["a", "b", "\\u0061", "\\ud800", "c/~"]), max_size=3)
    ).flatmap(lambda pair: _written(*pair)),
    max_leaves=12,
)


def simply(text: str) -> Any:
    """What a reader that knows no short cut finds: value, kinds, lexemes by pointer."""
    kinds: set[str] = set()
    lexemes: dict[str, str] = {}

    class Lexeme(str):
        __slots__ = ()

    class Pairs(list[Any]):
        pass

    def walk(value: Any, pointer: str) -> Any:
        if isinstance(value, Pairs):
            kinds.update({"duplicate-key"} if len({key for key, _ in value}) < len(value) else ())
            kinds.update({"surrogate"} if any(_is_lone(key) for key, _ in value) else ())
            return {
                key: walk(item, pointer + "/" + key.replace("~", "~0").replace("/", "~1"))
                for key, item in dict(value).items()
            }
        if isinstance(value, list):
            return [walk(item, f"{pointer}/{index}") for index, item in enumerate(value)]
        if isinstance(value, Lexeme):
            number: float = int(value) if value.lstrip("-").isdigit() else float(value)
            if (isinstance(number, int) and abs(number) >= 2**53) or (
                isinstance(number, float) and (number.is_integer() or number in (float("inf"), float("-inf")))
            ):
                lexemes[pointer] = str(value)
            return number
        kinds.update({"surrogate"} if isinstance(value, str) and _is_lone(value) else ())
        return value

    def constant(name: str) -> float:
        kinds.add("not-a-number")
        return float(name.replace("Infinity", "inf"))

    try:
        tree = json.loads(text, object_pairs_hook=Pairs, parse_int=Lexeme, parse_float=Lexeme, parse_constant=constant)
    except json.JSONDecodeError:
        return None
    return walk(tree, ""), kinds, lexemes


def _is_lone(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


@given(TEXTS, st.sampled_from(["", "", "", " ", "x", "{}"]))
def test_short_cuts_lose_no_evidence(text: str, rest: str) -> None:
    """Value, defects and lexemes are those of a reader without short cuts, for right texts and wrong ones."""
    found, expected = read_json(text + rest), simply(text + rest)
    assert found.valid == (expected is not None)
    if expected is None:
        assert {defect.kind for defect in found.defects} & {"syntax", "trailing"}
        return
    value, kinds, lexemes = expected
    assert repr(found.value) == repr(value)  # NaN is not equal to itself, and 1 is equal to 1.0
    assert {defect.kind for defect in found.defects} == kinds
    assert found.floats | found.large | found.infinite == lexemes


@given(st.binary() | st.text() | st.text('[]{}",:\\ud80019.eE-NaInfty ', max_size=40))
def test_nothing_raises(text: bytes | str) -> None:
    """Any bytes and any text are read without an exception; without a value there is a defect."""
    found = read_json(text)
    assert found.valid or found.defects
