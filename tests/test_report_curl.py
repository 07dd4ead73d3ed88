"""Curl lines, run by a real shell: what reaches curl is what was sent."""

import shutil
import subprocess
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.contract.profile import Auth
from streamgauge.redaction import Redactor
from streamgauge.reports.curl import KEY_VARIABLE, LONGEST_BODY, curl_line
from streamgauge.signing import altered, sign
from streamgauge.wire.exchange import Credential, SentRequest

KEY = "sk-not-a-real-key"
SHELL = shutil.which("sh") or "sh"
FAKE_CURL = """curl() { for word; do printf '%s\\000' "$word"; done; printf 'STDIN'; cat; }\n"""


def request(body: bytes = b"{}", **fields: Any) -> SentRequest:
    """A signed JSON request, as a bundle holds it: the key is filler."""
    base: dict[str, Any] = {
        "method": "POST",
        "url": "http://127.0.0.1:9/v1/chat/completions",
        "headers": (
            ("host", "127.0.0.1:9"),
            ("accept", "*/*"),
            ("user-agent", "streamgauge/0"),
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("authorization", "*" * len(KEY)),
        ),
        "credential": Credential.VALID,
    }
    return SentRequest(body=body, **{**base, **fields})


def run(line: str) -> tuple[list[bytes], bytes]:
    """The words that a shell hands to curl, and what it would read."""
    done = subprocess.run(
        [SHELL, "-c", FAKE_CURL + line],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        env={KEY_VARIABLE: KEY, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"},
    )
    assert done.stderr == b""
    words, _, stdin = done.stdout.partition(b"STDIN")
    return words.split(b"\0")[:-1], stdin


def body_of(words: list[bytes], stdin: bytes) -> bytes:
    """The body that curl would send."""
    if b"--data-raw" in words:
        return words[words.index(b"--data-raw") + 1]
    return stdin if b"--data-binary" in words else b""


def headers_of(words: list[bytes]) -> list[bytes]:
    """The values of -H."""
    return [after for before, after in pairwise(words) if before == b"-H"]


BODIES = [
    b'{"a": "it\'s"}',
    b"$HOME `id` $(id) \\ \" ' ! *",
    b"@/etc/passwd",
    b"-n -e",
    b"\x00\xff%s %d%%\\n",
    b"line\nline\r\n\ttab\n\n",
    "שלום \u202e \u2028 é 😀".encode(),
    b"''''",
    b"\n",
    b"-x\x00",
    b"\xe9\x31\x32",
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_hostile_bodies_survive(body: bytes) -> None:
    """Every byte of the body reaches curl, and no part of it is taken for a command."""
    line = curl_line(request(body), {})
    assert line is not None
    words, stdin = run(line)
    assert body_of(words, stdin) == body
    assert words[-1] == b"http://127.0.0.1:9/v1/chat/completions"


@settings(deadline=None, max_examples=60)
@given(
    st.binary(min_size=1, max_size=80)
    | st.text(min_size=1, max_size=40).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_body_survives(body: bytes) -> None:
    """What holds for the table holds for any bytes."""
    line = curl_line(request(body), {})
    assert line is not None
    assert body_of(*run(line)) == body


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_line_can_be_copied(body: bytes) -> None:
    """A line holds only characters that are seen, so that copying it from a page changes nothing."""
    line = curl_line(request(body), {}) or ""
    assert all(character.isprintable() or character == "\n" for character in line)


@pytest.mark.parametrize(
    ("auth", "name", "sent"),
    [
        ({"header": "Authorization", "scheme": "raw"}, "authorization", f"authorization: {KEY}"),
        ({"header": "Authorization", "scheme": "Bearer"}, "authorization", f"authorization: Bearer {KEY}"),
        ({"header": "X-API-Key", "scheme": "raw"}, "x-api-key", f"x-api-key: {KEY}"),
    ],
)
def test_key_comes_from_the_environment(auth: dict[str, str], name: str, sent: str) -> None:
    """The key stands in the form that the target wants, and never in the line."""
    line = curl_line(request(headers=((name, "*" * 20),)), {"auth": auth})
    assert line is not None
    assert KEY not in line
    assert "**" not in line
    assert f'"${KEY_VARIABLE}"' in line
    assert sent.encode() in headers_of(run(line)[0])


@pytest.mark.parametrize("scheme", ["raw", "Bearer"])
@pytest.mark.parametrize("credential", list(Credential))
def test_each_form_of_the_key_is_repeated(credential: Credential, scheme: str) -> None:
    """Whatever was tried out with the key is tried out again, the key from the environment."""
    how = Auth("Authorization", scheme, required=True)
    signature = sign(credential, how, KEY)
    hide = Redactor([KEY, altered(KEY)]).text
    url = f"http://127.0.0.1:9/v1{'?' * bool(signature.query)}{signature.query}"
    fields = tuple((name.lower(), hide(value)) for name, value in signature.headers)

    line = curl_line(
        request(url=hide(url), headers=fields, credential=credential),
        {"auth": {"header": how.header, "scheme": scheme}},
    )

    assert line is not None
    assert not any(hidden in line for hidden in (KEY, altered(KEY), "**"))
    words = run(line)[0]
    assert words[-1] == url.encode()
    expected = [f"{name}: {value}" if value else f"{name};" for name, value in signature.headers]
    sent = [word for word in headers_of(words) if not word.endswith(b":")]
    assert [word.lower() for word in sent] == [word.lower().encode() for word in expected]


def test_wrong_key_is_sent_as_it_was() -> None:
    """A probe with a made-up key is repeated with that key."""
    line = curl_line(request(headers=(("authorization", "wrong-key"),), credential=Credential.WRONG), {})
    assert line is not None
    assert b"authorization: wrong-key" in headers_of(run(line)[0])


def test_headers_are_those_that_were_sent() -> None:
    """What curl adds by itself is left out where it is the same, and suppressed where it was not sent."""
    line = curl_line(
        request(headers=(("x-empty", ""), ("content-length", "99"), ("x-odd", "a\x07'b"), ("x-lone", "\ud800"))), {}
    )
    assert line is not None
    assert headers_of(run(line)[0]) == [
        b"x-empty;",
        b"content-length: 99",
        b"x-odd: a\x07'b",
        b"x-lone: \\ud800",
        b"Accept:",
        b"User-Agent:",
        b"Content-Type:",
    ]


@pytest.mark.parametrize(("insecure", "count"), [(False, 0), (True, 1)])
def test_unverified_tls(insecure: bool, count: int) -> None:
    """A target whose certificate went unverified needs the same of curl."""
    line = curl_line(request(), {"insecure": insecure})
    assert line is not None
    assert run(line)[0].count(b"-k") == count


def test_url_with_shell_and_glob_characters() -> None:
    """The URL is one word, and curl does not expand it."""
    url = "http://127.0.0.1:9/v1/x?a=[1-3]&b={c,d}&e='f'"
    line = curl_line(request(url=url, body=b""), {})
    assert line is not None
    words, stdin = run(line)
    assert words[-1] == url.encode()
    assert b"-g" in words
    assert stdin == b""


def test_too_long_a_body_has_no_line() -> None:
    """A body that nobody would paste gets no line."""
    assert curl_line(request(b"x" * (LONGEST_BODY + 1)), {}) is None
