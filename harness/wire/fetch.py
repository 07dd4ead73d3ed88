"""
Fetches one document from a URL that the user named.

No key and no header of the user's is ever sent. A redirect is followed on the same host only: the user named that one
and no other.
"""

import ssl
import time
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import httpx

import streamgauge
from streamgauge.errors import DocumentError
from streamgauge.text import one_line

__all__ = ["Trust", "fetch", "shown_url"]

LARGEST = 32 * 1024 * 1024
"""Bytes of the largest document that is read."""

PATIENCE_S = 60.0
"""Seconds that a transfer may take in all."""

_IDLE_S = 15.0
_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Trust:
    """
    Whose certificate is believed.

    Attributes:
        ca_file: PEM file of certificates to trust instead of the system's.
        insecure: leave certificates unverified.
    """

    ca_file: str | None = None
    insecure: bool = False


def fetch(url: str, trust: Trust | None = None, *, largest: int = LARGEST, patience_s: float = PATIENCE_S) -> bytes:
    """
    The bytes at an http or https URL.

    Raises:
        DocumentError: the URL cannot be used, nobody answers, the answer is no 200, or it is too large or too slow.
    """
    asked = _usable(url, url)
    over = time.monotonic() + patience_s
    try:
        with httpx.Client(
            verify=_tls(trust or Trust()), trust_env=False, timeout=_IDLE_S, follow_redirects=False
        ) as client:
            for _ in range(_REDIRECTS + 1):
                headers = {"accept-encoding": "identity", "user-agent": f"streamgauge/{streamgauge.__version__}"}
                with client.stream("GET", asked, headers=headers) as answer:
                    if not 300 <= answer.status_code < 400:
                        return _body(answer, url, largest, over)
                    asked = _usable(urljoin(asked, answer.headers.get("location", "")), url)
    except httpx.TimeoutException:
        raise DocumentError(f"no answer within {_IDLE_S:g} s", where=shown_url(url), hint=_HINT) from None
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        said = one_line(str(problem), 200) or type(problem).__name__
        raise DocumentError(f"cannot be fetched: {said}", where=shown_url(url), hint=_HINT) from None
    raise DocumentError(f"redirects more than {_REDIRECTS} times", where=shown_url(url), hint=_HINT)


_FORM = "Give it as http://host/path or https://host/path, without user and password."
_HINT = "Check the URL, or download the document and give its path."


def shown_url(url: str) -> str:
    """The URL as messages show it: without user, query and fragment, where secrets may stand."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _usable(url: str, named: str) -> str:
    """The URL, if it is one that may be asked: on the host that the user named, and not less safe than that."""
    try:
        parts, first = urlsplit(url), urlsplit(named)
        usable = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        )
    except ValueError:  # a broken IPv6 address, a port that is no number
        raise DocumentError("not a URL that can be fetched", where=shown_url(named), hint=_FORM) from None
    if not usable:
        raise DocumentError("not a URL that can be fetched", where=shown_url(named), hint=_FORM)
    if parts.hostname != first.hostname or (first.scheme == "https" and parts.scheme != "https"):
        hint = "If you trust that place, name it yourself."
        raise DocumentError(f"redirects to {shown_url(url)}", where=shown_url(named), hint=hint)
    return url


def _tls(trust: Trust) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=trust.ca_file)
    except (OSError, ssl.SSLError) as problem:
        raise DocumentError(f"cannot be used as CA file: {problem}", where=trust.ca_file or "") from None
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _body(answer: httpx.Response, url: str, largest: int, over: float) -> bytes:
    if answer.status_code != 200:
        said = f"{answer.status_code} {one_line(answer.reason_phrase, 80)}".strip()
        raise DocumentError(f"cannot be fetched: the server says {said}", where=shown_url(url), hint=_HINT)
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise DocumentError("comes in a content coding that was not asked for", where=shown_url(url), hint=_HINT)
    body = bytearray()
    for part in answer.iter_raw():
        body += part
        if len(body) > largest:
            raise DocumentError(
                f"is larger than {largest} bytes", where=shown_url(url), hint="Give a smaller document."
            )
        if time.monotonic() > over:
            raise DocumentError("takes too long to arrive", where=shown_url(url), hint=_HINT)
    return bytes(body)
