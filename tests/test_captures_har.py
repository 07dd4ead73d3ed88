"""HAR 1.2 files of browsers, proxies and test tools."""

import base64
import json
from typing import Any

import pytest

from streamgauge.captures.capture import Capture, NotJudged
from streamgauge.captures.har import har_entries, read_har
from streamgauge.wire.exchange import Credential, Ending, Evidence

KEY = "sk-very-secret-key"
ANSWER = '{"object": "chat.completion"}'


def entry(
    *,
    headers: dict[str, str] | None = None,
    status: int = 200,
    content: dict[str, Any] | None = None,
    answer_headers: dict[str, str] | None = None,
    method: str = "POST",
    version: str = "HTTP/1.1",
    posted: dict[str, Any] | None = None,
    url: str = "https://api.example/v1/chat/completions",
    **more: Any,
) -> dict[str, Any]:
    """One entry of a log."""
    return {
        "startedDateTime": "2026-11-29T13:51:37.250+01:00",
        "request": {
            "method": method,
            "url": url,
            "headers": _fields(headers or {}),
            "postData": {"text": '{"model": "m"}'} if posted is None else posted,
        },
        "response": {
            "status": status,
            "statusText": "OK",
            "httpVersion": version,
            "headers": _fields(answer_headers or {"content-type": "application/json"}),
            "content": {"text": ANSWER, "size": len(ANSWER)} if content is None else content,
        },
        **more,
    }


def _fields(headers: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers.items()]


def _read(*entries: Any) -> list[Capture | NotJudged]:
    return list(read_har(list(entries), "a.har", "Authorization"))


def _one(*entries: Any) -> Capture:
    first = _read(*entries)[0]
    assert isinstance(first, Capture), first
    return first


@pytest.mark.parametrize(
    ("content", "body", "exact"),
    [
        ({"text": "é", "size": 2}, "é".encode(), False),
        ({"text": base64.b64encode(b"\xff").decode(), "encoding": "base64"}, b"\xff", True),
        ({"size": 0}, b"", True),
        ({"text": "", "size": 0}, b"", False),
    ],
)
def test_only_base64_holds_the_bytes(content: dict[str, Any], body: bytes, exact: bool) -> None:
    """`content.text` without an encoding is decoded text (HAR 1.2, content): a BOM or a bad byte is lost in it."""
    capture = _one(entry(content=content))
    exchange = capture.exchange("1", target="t", operation="o", method="POST")

    assert (exchange.response.body, Evidence.BYTES in capture.holds) == (body, exact)
    assert Evidence.FRAMING not in capture.holds
    assert Evidence.TIMES not in capture.holds


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry(content={"size": 5}), "no body of the answer"),
        (entry(content={"text": "%", "encoding": "base64"}), "no body of the answer"),
        (entry(status=0, content={}, _error="net::ERR_ABORTED"), "ERR_ABORTED"),
        ({}, "no entry"),
        (7, "no entry"),
    ],
)
def test_what_cannot_be_judged_says_why(bad: Any, reason: str) -> None:
    """A body that was left out, a request that the user cancelled, and no HAR entry at all."""
    (found,) = _read(bad)

    assert isinstance(found, NotJudged)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("more", "ending", "held"),
    [
        ({}, Ending.COMPLETE, False),
        ({"answer_headers": {"Content-Length": str(len(ANSWER))}}, Ending.COMPLETE, True),
        ({"answer_headers": {"Content-Length": "9999"}}, Ending.COMPLETE, False),
        ({"_error": "net::ERR_INCOMPLETE_CHUNKED_ENCODING"}, Ending.CLOSED, True),
        ({"status": 0, "content": {}, "_error": "net::ERR_CONNECTION_REFUSED"}, Ending.REFUSED, True),
    ],
)
def test_end_is_told_by_length_or_by_the_browsers_error(more: dict[str, Any], ending: Ending, held: bool) -> None:
    """HAR has no member for it; a stream that a user stopped looks like one that ended."""
    capture = _one(entry(**more))

    assert (capture.ending, Evidence.ENDING in capture.holds) == (ending, held)


@pytest.mark.parametrize(
    ("posted", "method", "body", "held"),
    [
        ({"text": '{"a": 1}'}, "POST", b'{"a": 1}', True),
        ({"text": base64.b64encode(b"{").decode(), "encoding": "base64"}, "POST", b"{", True),
        ({"text": "\ufffd"}, "POST", "\ufffd".encode(), False),
        ({}, "POST", b"", False),
        ({}, "GET", b"", True),
    ],
)
def test_request_body(posted: dict[str, Any], method: str, body: bytes, held: bool) -> None:
    """A body that the file leaves out, or that lost bytes in decoding, is not held."""
    capture = _one(entry(posted=posted, method=method))

    assert (capture.body, Evidence.REQUEST in capture.holds) == (body, held)


@pytest.mark.parametrize(
    ("first", "status", "others", "credential"),
    [
        ({"authorization": f"Bearer {KEY}"}, 200, False, Credential.VALID),
        ({"authorization": f"Bearer {KEY}"}, 401, False, Credential.UNKNOWN),
        ({}, 401, False, Credential.UNKNOWN),
        ({}, 401, True, Credential.NONE),
    ],
)
def test_credential(first: dict[str, str], status: int, others: bool, credential: Credential) -> None:
    """Browsers leave keys out of an export: a missing one is missing only where others of the file have theirs."""
    rest = [entry(headers={"Authorization": f"Bearer {KEY}"})] if others else []
    capture = _one(entry(headers=first, status=status), *rest)

    assert capture.credential is credential
    assert (Evidence.CREDENTIAL in capture.holds) == (credential is not Credential.UNKNOWN)


def test_http_2() -> None:
    """Pseudo-header fields are no header fields (RFC 9113, 8.3); `h2` is a version; joined fields are parted again."""
    capture = _one(
        entry(version="h2", headers={":path": "/", "accept": "*/*"}, answer_headers={":status": "200", "x": "1\n2"})
    )
    response = capture.exchange("1", target="t", operation="o", method="POST").response

    assert (response.http_version, response.status) == ("2", 200)
    assert [value for name, value in response.headers if name == "x"] == ["1", "2"]
    assert capture.headers == (("accept", "*/*"),)
    assert capture.started == "2026-11-29T12:51:37.250Z"


def test_secrets_stay_out() -> None:
    """Keys, cookies and query parameters are in the clear in a HAR, and in nothing that is made of it."""
    secrets = {
        "authorization": f"Bearer {KEY}",
        "cookie": "sid=session-cookie-value; a=b",
        "x-api-key": "other-secret-key",
    }
    capture = _one(
        entry(
            headers=secrets,
            url="https://user:password@api.example/v1/chat/completions?key=query-secret-key",
            content={"text": f"{KEY} session-cookie-value other-secret-key query-secret-key"},
            answer_headers={"set-cookie": "new=fresh-cookie-value"},
        )
    )
    exchange = capture.exchange("1", target="t", operation="o", method="POST")
    stored = repr(exchange)

    for secret in (KEY, "session-cookie", "other-secret", "query-secret", "fresh-cookie", "password@"):
        assert secret not in stored
    assert Evidence.CREDENTIAL not in exchange.holds


def test_echoed_key_is_known_for_one() -> None:
    """Where nothing but the key is blotted out, `auth.key-echoed` can be judged."""
    exchange = _one(entry(headers={"authorization": f"Bearer {KEY}"}, content={"text": f"{KEY}!"})).exchange(
        "1", target="t", operation="o", method="POST"
    )

    assert (Evidence.CREDENTIAL in exchange.holds, len(exchange.redacted)) == (True, 1)


def test_other_json_is_no_har() -> None:
    """A HAR file is recognised by its log's entries; a byte order mark may stand before it."""
    assert har_entries(b'{"log": {"entries": []}}') == []
    assert har_entries(b"\xef\xbb\xbf" + json.dumps({"log": {"entries": [1]}}).encode()) == [1]
    for other in (b"", b"[]", b'{"log": 1}', b'{"log": {"entries": 1}}', b"\xff"):
        assert har_entries(other) is None
