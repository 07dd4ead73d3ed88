"""No spelling of a secret that is promised to be found reaches the files of a bundle, and nothing else changes there."""

import itertools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import h11
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bundle.layout import exchange_from_line
from streamgauge.bundle.writer import ExchangeWriter
from streamgauge.redaction import FILLER, Redactor
from streamgauge.wire.exchange import Credential, Ending, Exchange, SentRequest
from streamgauge.wire.http import Read

INNER = st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters="*") | st.sampled_from("éß\u0161€😀")
"""Printable ASCII and some beyond it; the filler's own character would tell nothing."""

SECRETS = st.text(INNER, min_size=8, max_size=80).filter(lambda text: text.strip() == text and "\\" * 3 not in text)
"""As a header field carries them: no blanks at the ends (RFC 9110, section 5.5)."""


def every(character: str, form: str) -> str:
    """The character in one fixed spelling."""
    units = character.encode("utf-16-be").hex()
    match form:
        case "u-lower" | "u-upper":
            digits = units if form == "u-lower" else units.upper()
            return "".join("\\u" + digits[start : start + 4] for start in range(0, len(digits), 4))
        case "percent-lower" | "percent-upper":
            coded = "".join(f"%{byte:02x}" for byte in character.encode())
            return coded if form == "percent-lower" else coded.upper()
        case "slash":
            return "\\/" if character == "/" else json.dumps(character)[1:-1]
    return character


WHOLE: dict[str, Callable[[str], str]] = {
    "raw": str,
    "json": lambda secret: json.dumps(secret)[1:-1],
    "json-utf8": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "url": lambda secret: quote(secret, safe=""),
    "form": quote_plus,
    "repr": lambda secret: repr(secret)[1:-1],
    "repr-bytes": lambda secret: repr(secret.encode())[2:-1],
    "mojibake": lambda secret: secret.encode().decode("latin-1"),
    "mojibake-json": lambda secret: json.dumps(secret.encode().decode("latin-1"))[1:-1],
}
EACH = ("u-lower", "u-upper", "percent-lower", "percent-upper", "slash", "raw")


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, str]:
    """A secret, and one of the spellings that are promised to be found."""
    secret = draw(SECRETS)
    if draw(st.booleans()):
        return secret, WHOLE[draw(st.sampled_from(sorted(WHOLE)))](secret)
    form, other = draw(st.sampled_from(EACH)), draw(st.sampled_from(EACH))
    # A raw backslash is told from one that escapes only where one rule holds for the whole text.
    mixed = draw(st.integers(0)) if "\\" not in secret else 0
    return secret, "".join(every(c, other if mixed >> place & 1 else form) for place, c in enumerate(secret))


def cut_into_chunks(body: bytes, cuts: list[int]) -> bytes:
    """The body in the chunked coding, cut there (RFC 9112, section 7.1)."""
    places = sorted({cut % (len(body) + 1) for cut in cuts} | {0, len(body)})
    parts = [body[start:end] for start, end in itertools.pairwise(places)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def stored(exchange: Exchange) -> tuple[bytes, bytes, Exchange]:
    """The bytes of both files, and the exchange as it is read back."""
    with tempfile.TemporaryDirectory() as folder:
        writer = ExchangeWriter(Path(folder), "main")
        writer.write(exchange)
        writer.close()
        line = Path(folder, "exchanges-main.jsonl").read_bytes()
        blob = Path(folder, "blobs-main.bin").read_bytes()
    return line, blob, exchange_from_line(json.loads(line), blob)


def recorded(redactor: Redactor, wire: bytes, request: SentRequest, detail: str) -> Exchange:
    """An exchange, redacted as the recorder does it."""
    blotted, spans = redactor.wire(wire)
    return Exchange(
        id="main-t-00001",
        target="t",
        operation="o",
        probe="p",
        request=SentRequest(
            method=request.method,
            url=redactor.text(request.url),
            headers=tuple((name, redactor.text(value)) for name, value in request.headers),
            body=redactor.wire(request.body)[0],
            credential=request.credential,
        ),
        started="2026-01-01T00:00:00.000Z",
        wire=blotted,
        reads=(Read(0.1, len(wire)),),
        ending=Ending.COMPLETE,
        detail=redactor.text(detail),
        redacted=tuple(spans),
    )


@given(spelled(), st.lists(st.integers(0, 10_000), max_size=12), st.sampled_from([b"data: ", b'{"a": "', b""]))
def test_nothing_stored_holds_the_secret(given_: tuple[str, str], cuts: list[int], before: bytes) -> None:
    """
    In request and response, head, body, chunks, reason and exception: filler of the same length stands for the secret.

    DESIGN 10, redaction: lengths stay, and what is no secret stays byte for byte.
    """
    secret, written = given_
    form = written.encode()
    body = before + form + b'"}\n\n' + form
    wire = (
        b"HTTP/1.1 200 " + form + b"\r\nX-Echo: a" + form + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    ) + cut_into_chunks(body, cuts)
    request = SentRequest("POST", f"http://h/?k={written}", (("x-key", written),), body, Credential.VALID)
    detail = f"illegal header line: {written}"
    plain = recorded(Redactor(), wire, request, detail)

    line, blob, found = stored(recorded(Redactor([secret]), wire, request, detail))

    filler = FILLER * len(written)
    blotted = before + b"*" * len(form) + b'"}\n\n' + b"*" * len(form)
    assert (found.request.url, found.request.headers) == (f"http://h/?k={filler}", (("x-key", filler),))
    assert (found.request.body, found.detail) == (blotted, f"illegal header line: {filler}")
    assert found.wire == blob
    assert len(blob) == len(wire) == sum(read.size for read in found.reads)
    head = b"HTTP/1.1 200 " + b"*" * len(form) + b"\r\nX-Echo: a" + b"*" * len(form)
    assert blob == head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + cut_into_chunks(blotted, cuts)
    assert found.response.body == blotted
    assert [chunk.size for chunk in found.response.chunks] == [chunk.size for chunk in plain.response.chunks]
    assert form not in blob
    for spelling in (secret, json.dumps(secret)[1:-1], json.dumps(written)[1:-1]):
        assert spelling.encode() not in line


def test_the_words_of_an_exception_are_redacted() -> None:
    """h11 shows what it refuses as Python's repr of the bytes."""
    secret = "se'cr\"et-ü-0123"
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.receive_data(f"HTTP/1.1 200 OK\r\nA {secret}\r\n\r\n".encode())
    try:
        connection.next_event()
    except h11.RemoteProtocolError as problem:
        said = str(problem)
    assert "0123" in said
    assert "0123" not in Redactor([secret]).text(said)


def test_what_is_not_promised() -> None:
    """An event's end within the secret, and base64 of it, are left alone: the docstring says so."""
    for wire in (b"data: abcd\n\ndata: efgh\n\n", b"YWJjZGVmZ2g="):
        assert Redactor(["abcdefgh"]).wire(wire) == (wire, [])


def test_many_echoes_take_no_time_to_speak_of() -> None:
    """A flood of echoes is blotted out in one pass."""
    blotted, spans = Redactor(["abcdefgh"]).wire(b"abcdefgh\n" * 100_000)
    assert (blotted, len(spans)) == (b"********\n" * 100_000, 100_000)
