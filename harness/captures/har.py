"""
Reads HAR 1.2 files (http://www.softwareishard.com/blog/har-12-spec/): browsers, mitmproxy, Schemathesis and others write them.

A HAR file holds no framing and no read times; a body that is given as text has been through a decoder, so that only one in
base64 has its bytes as sent. It does not say how a transfer ended, except where `_error` does or Content-Length tells that the
body is whole.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from streamgauge.captures.capture import Capture, NotJudged
from streamgauge.captures.secrets import (
    blot_head,
    secrets_of_body,
    secrets_of_query,
    values_of,
)
from streamgauge.redaction import FILLER, is_secret_name
from streamgauge.wire.exchange import Credential, Ending, Evidence

__all__ = ["har_entries", "read_har"]

_ERRORS: dict[str, Ending] = {
    "net::ERR_CONNECTION_REFUSED": Ending.REFUSED,
    "net::ERR_CONNECTION_RESET": Ending.RESET,
    "net::ERR_CONNECTION_CLOSED": Ending.CLOSED,
    "net::ERR_EMPTY_RESPONSE": Ending.CLOSED,
    "net::ERR_INCOMPLETE_CHUNKED_ENCODING": Ending.CLOSED,
    "net::ERR_CONTENT_LENGTH_MISMATCH": Ending.CLOSED,
    "net::ERR_NAME_NOT_RESOLVED": Ending.DNS,
    "net::ERR_HTTP2_PROTOCOL_ERROR": Ending.RESET,
}
"""What browsers say of an end that the server brought about; a cancelled request is not among them."""

_VERSIONS = {"h2": "HTTP/2", "http/2": "HTTP/2", "http/2.0": "HTTP/2", "h3": "HTTP/3", "http/3": "HTTP/3"}
_BODILESS = ("GET", "HEAD", "OPTIONS", "DELETE")


def har_entries(data: bytes) -> list[Any] | None:
    """The entries of a HAR file; None when the bytes are none."""
    try:
        log = json.loads(data.removeprefix(b"\xef\xbb\xbf"))["log"]["entries"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return log if isinstance(log, list) else None


def read_har(entries: list[Any], name: str, key_header: str) -> Iterator[Capture | NotJudged]:
    """
    The captures of a file.

    Args:
        entries: of the file.
        name: the file's.
        key_header: the header field that carries the key by the profile.
    """
    found = [_entry(entry, f"{name}#{number}", key_header.lower()) for number, entry in enumerate(entries, 1)]
    # Browsers leave credentials out of what they export, unless told otherwise: then nobody can say who sent one.
    told = any(isinstance(each, Capture) and _sends(each, key_header) for each in found)
    for each in found:
        yield _with_credential(each, key_header, told=told) if isinstance(each, Capture) else each


def _sends(capture: Capture, key_header: str) -> bool:
    return any(name.lower() == key_header.lower() for name, _ in capture.headers)


def _with_credential(capture: Capture, key_header: str, *, told: bool) -> Capture:
    """A key that was answered with 2xx was right; a missing one is missing where others of the file have theirs."""
    sent = _sends(capture, key_header)
    accepted = capture.wire.partition(b" ")[2][:1] == b"2"
    if sent and accepted:
        return replace(capture, credential=Credential.VALID, holds=capture.holds | {Evidence.CREDENTIAL})
    if told and not sent:
        return replace(capture, credential=Credential.NONE, holds=capture.holds | {Evidence.CREDENTIAL})
    return capture


def _entry(entry: Any, name: str, key_header: str) -> Capture | NotJudged:
    try:
        request, response = entry["request"], entry["response"]
        method, url = str(request["method"]).upper(), str(request["url"])
        headers, secrets = _request_fields(request, key_header)
        body, body_known = _request_body(request, method)
        answer, answer_holds = _response_body(response)
        wire, answer_secrets = _wire(response, answer)
    except (KeyError, TypeError, ValueError, AttributeError):
        return NotJudged(name, "no entry as HAR 1.2 describes it")
    error = str(entry.get("_error") or response.get("_error") or "")
    if answer is None and wire:
        return NotJudged(name, "the HAR file holds no body of the answer")
    holds = set(answer_holds)
    ending = _ERRORS.get(error.partition(" ")[0], Ending.COMPLETE)
    if ending is not Ending.COMPLETE or (not error and answer is not None and _announced(response) == len(answer)):
        holds.add(Evidence.ENDING)
    elif not wire:
        return NotJudged(name, f"no answer, and the file does not say why{f' ({error})' if error else ''}")
    if body_known:
        holds.add(Evidence.REQUEST)
    started = _started(entry)
    if started:
        holds.add(Evidence.CLOCK)
    secrets += [*secrets_of_query(url), *secrets_of_body(body), *answer_secrets]
    return Capture(
        name=name,
        wire=wire,
        holds=frozenset(holds),
        method=method,
        url=url,
        headers=headers,
        body=body,
        ending=ending,
        detail=error,
        started=started,
        secrets=tuple(dict.fromkeys(secrets)),
    )


def _fields(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = [(str(field["name"]), str(field["value"])) for field in message.get("headers", ())]
    return [(name, value) for name, value in pairs if not name.startswith(":")]  # HTTP/2's pseudo-header fields


def _request_fields(request: Mapping[str, Any], key_header: str) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """The fields, secret values blotted out; and those values, the key's first."""
    fields, keys, secrets, shown = _fields(request), list[str](), list[str](), list[tuple[str, str]]()
    for name, value in fields:
        is_key = name.lower() == key_header
        if is_key or is_secret_name(name):
            (keys if is_key else secrets).extend(reversed(values_of(value)) if is_key else values_of(value))
            shown.append((name, FILLER * len(value)))
        else:
            shown.append((name, value))
    secrets += [str(cookie.get("value", "")) for cookie in request.get("cookies", ()) if isinstance(cookie, dict)]
    return tuple(shown), keys + secrets


def _request_body(request: Mapping[str, Any], method: str) -> tuple[bytes, bool]:
    """The body, and whether it is the one that was sent."""
    posted = request.get("postData")
    if isinstance(posted, dict) and isinstance(posted.get("text"), str):
        text: str = posted["text"]
        if posted.get("encoding") == "base64":
            return base64.b64decode(text), True
        return text.encode("utf-8", "surrogatepass"), "\ufffd" not in text
    return b"", request.get("bodySize") == 0 or method in _BODILESS


def _response_body(response: Mapping[str, Any]) -> tuple[bytes | None, Iterable[Evidence]]:
    """The body, None when the file does not hold it; and what is known of its bytes."""
    content = response.get("content") or {}
    text = content.get("text")
    if isinstance(text, str) and content.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=True), [Evidence.BYTES]
        except binascii.Error:
            return None, []
    if isinstance(text, str) and (text or not content.get("size")):
        return text.encode("utf-8", "surrogatepass"), []
    return (b"", [Evidence.BYTES]) if content.get("size") == 0 else (None, [])


def _wire(response: Mapping[str, Any], body: bytes | None) -> tuple[bytes, list[str]]:
    """Head and body, credentials in the head blotted out; empty when there was no answer."""
    status = int(response.get("status") or 0)
    if not 100 <= status <= 999:
        return b"", []
    given = str(response.get("httpVersion") or "").lower()
    version = _VERSIONS.get(given, given.upper() if given in ("http/1.0", "http/1.1") else "HTTP/1.1")
    lines = [f"{version} {status} {_line(response.get('statusText') or '')}"]
    for name, value in _fields(response):
        # Browsers join fields of one name by a line feed.
        lines += [f"{_line(name)}: {part.strip()}" for part in value.replace("\r", "").split("\n")]
    head, secrets = blot_head(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
    return head + (body or b""), secrets + secrets_of_body(body or b"")


def _line(text: Any) -> str:
    return " ".join(str(text).split())


def _announced(response: Mapping[str, Any]) -> int | None:
    fields = {name.lower(): value for name, value in _fields(response)}
    if "transfer-encoding" in fields or "content-encoding" in fields:
        return None
    announced = fields.get("content-length", "")
    return int(announced) if announced.isdigit() else None


def _started(entry: Mapping[str, Any]) -> str:
    """`startedDateTime` in UTC; empty when it is none."""
    try:
        moment = datetime.fromisoformat(str(entry.get("startedDateTime")))
    except ValueError:
        return ""
    moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
