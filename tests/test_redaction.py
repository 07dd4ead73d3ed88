"""Secrets are blotted out wherever they stand, and everything else keeps its place."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.errors import ConfigError
from streamgauge.redaction import FILLER, Redactor

SECRET = "sk-5ecret/+key"
VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x17F, exclude_characters="\x7f*"), min_size=8)


def chunked(body: bytes, size: int, *, extension: bytes = b"") -> bytes:
    """The body in chunks of that size."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("secret", ["", "a", "1234567"])
def test_short_secrets_are_refused(secret: str) -> None:
    """What is shorter than 8 characters is refused, without being printed."""
    with pytest.raises(ConfigError) as caught:
        Redactor([secret])
    assert len(secret) < 2 or secret not in str(caught.value)


def test_without_secrets_nothing_changes() -> None:
    """No secret, no change."""
    assert (Redactor().text(SECRET), Redactor().wire(b"abc")) == (SECRET, (b"abc", []))


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        SECRET.replace("/", "\\/"),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
    ],
    ids=["raw", "json", "json-slash", "percent", "percent-all", "percent-lower-case", "form"],
)
def test_forms(form: str) -> None:
    """Raw, JSON-escaped and percent-encoded, the secret is replaced by filler of that form's length."""
    assert Redactor([SECRET]).text(f"<{form}>") == f"<{FILLER * len(form)}>"
    wire, spans = Redactor([SECRET]).wire(f"<{form}>".encode())
    assert (wire, spans) == (f"<{FILLER * len(form)}>".encode(), [(1, 1 + len(form))])


def test_longer_secret_wins() -> None:
    """Where one secret begins another, no tail of the longer one is left over."""
    assert Redactor(["abcdefgh", "abcdefgh-and-more"]).text("abcdefgh-and-more") == FILLER * 17


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("extension", [b"", b";x=1"], ids=["plain", "extension"])
def test_chunk_framing_in_between(size: int, extension: bytes) -> None:
    """A secret cut by chunk framing is blotted out, and the framing stays."""
    redactor = Redactor([SECRET])
    wire, spans = redactor.wire(chunked(b"a " + SECRET.encode() + b" z", size, extension=extension))
    assert wire == chunked(b"a " + FILLER.encode() * len(SECRET) + b" z", size, extension=extension)
    assert len(spans) == 1


@given(VISIBLE, st.lists(st.text(max_size=20)))
def test_text_keeps_length_and_the_rest(secret: str, around: list[str]) -> None:
    """Lengths stay, every place is blotted out, and text without the secret stays as it is."""
    redactor = Redactor([secret])
    text = secret.join(around)
    found = redactor.text(text)
    assert len(found) == len(text)
    assert secret not in found
    assert all(new in (old, FILLER) for old, new in zip(text, found, strict=True))


@given(VISIBLE, st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_spans_are_true(secret: str, around: list[bytes], size: int) -> None:
    """Bytes differ inside of the spans only, and only by filler; lengths stay."""
    assume(not any(FILLER.encode() in part for part in around))
    body = secret.encode().join(around)
    for wire in (body, chunked(body, size)):
        found, spans = Redactor([secret]).wire(wire)
        assert len(found) == len(wire)
        assert secret.encode() not in found
        changed = [place for place, (old, new) in enumerate(zip(wire, found, strict=True)) if old != new]
        assert all(any(start <= place < end for start, end in spans) for place in changed)
        assert all(found[place : place + 1] == FILLER.encode() for place in changed)
