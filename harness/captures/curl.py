"""
Reads what `curl -i` printed.

::

    HTTP/1.1 200 OK                  the answer's head, after those of 1xx answers, redirects and a proxy's CONNECT
    content-type: ...

    {"id": ...}[curl exit 0]         the body, and how curl ended, where somebody noted it
                                     (empty line)
    [request] POST /v1/... {...}     method, path and body of the request, where somebody noted it

A body that was noted only as its first 600 bytes, or in prose, counts as unknown. Of an answer in which somebody left out a
part, what stands before the gap is judged; how it ended is then unknown.
"""

import re
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime

from streamgauge.captures.capture import Capture, NotJudged
from streamgauge.captures.secrets import blot_head, secrets_of_body, secrets_of_query
from streamgauge.wire.exchange import Ending, Evidence
from streamgauge.wire.json import read_json
from streamgauge.wire.unframed import Head, heads

__all__ = ["looks_like_curl", "read_curl", "time_of"]

_MARKER = re.compile(rb"\[curl exit (\d+)[^\]\r\n]*\] ?(?:curl: [^\r\n]*)?[ \t]*(?=\r?\n|\Z)")
_REQUEST = re.compile(rb"(?:^|(?<=\n))\[request\] ([A-Z]+) (/[^\s]*|https?://[^\s]*)(.*)\Z", re.DOTALL)
_NOTE = re.compile(rb"\r?\n\[[a-z]+\] .*\Z", re.DOTALL)
_EXCERPT = re.compile(rb"(?m)^\[(?:\.\.\.|\xe2\x80\xa6)[^\]\r\n]*\]\r?$")
"""A line such as `[...]` or `[... cut here ...]`, which people put where they left something out."""

_GZIP = b"\x1f\x8b"
_CUT = 600
"""From this size on a noted body may have been cut."""

_BODILESS = ("GET", "HEAD", "DELETE")
_JSON_BEGINS = b'{["0123456789-tfn'

_ENDINGS: dict[int, tuple[Ending, bool]] = {
    0: (Ending.COMPLETE, True),
    1: (Ending.MALFORMED_HTTP, True),
    6: (Ending.DNS, True),
    7: (Ending.REFUSED, True),
    8: (Ending.MALFORMED_HTTP, True),
    16: (Ending.MALFORMED_HTTP, True),
    18: (Ending.CLOSED, True),
    28: (Ending.TIMEOUT_TOTAL, False),
    35: (Ending.TLS, True),
    52: (Ending.CLOSED, True),
    55: (Ending.RESET, True),
    56: (Ending.RESET, True),
    60: (Ending.TLS, True),
    92: (Ending.RESET, True),
}
"""
Exit code of curl → the ending, and whether it is the server's.

28 is the patience of whoever took the capture, which nobody noted; 23 and all others are the capture's own end.
"""


def looks_like_curl(start: bytes) -> bool:
    """Whether a file that begins like this holds curl's output."""
    return start.startswith(b"HTTP/") or bool(_MARKER.match(start))


def read_curl(data: bytes, name: str) -> Capture | NotJudged:
    """The capture that a file holds, or why it holds none that can be judged."""
    data, asked = _split_request(data)
    data, ended = _split_marker(data)
    gap = _EXCERPT.search(data)
    if gap:
        data, ended = data[: gap.start()], None
    found = list(heads(data))
    if not found and (ended is None or data.strip()):
        return NotJudged(name, "no answer as `curl -i` prints it")
    if found and data[found[-1].end :].startswith(_GZIP):
        return NotJudged(name, "its body is compressed: curl --compressed unpacks it")
    holds, ending, detail = {Evidence.BYTES}, Ending.COMPLETE, ""
    if ended is not None:
        code = int(ended[1])
        ending, servers = _ENDINGS.get(code, (Ending.COMPLETE, False))
        detail = f"curl exit {code}" if code else ""
        holds |= {Evidence.ENDING} if servers else set()
    wire, secrets, started, redirected = b"", list[str](), "", False
    if found:
        head, body, whole = _answer(data, found)
        if whole and ended is None:
            holds.add(Evidence.ENDING)
        elif whole is False and ending is Ending.COMPLETE:  # curl would have noted 18: the body was changed afterwards
            holds -= {Evidence.BYTES, Evidence.ENDING}
        head, secrets = blot_head(head)
        secrets += secrets_of_body(body)
        wire = head + body
        started = next((time_of(value) for name, value in found[-1].headers if name == "date"), "")
        redirected = any(head.status // 100 == 3 for head in found[:-1])
    if started:
        holds.add(Evidence.CLOCK)
    capture = Capture(
        name, wire, frozenset(holds), ending=ending, detail=detail, started=started, secrets=tuple(secrets)
    )
    return _with_request(capture, asked, redirected=redirected) if asked else capture


def _split_request(data: bytes) -> tuple[bytes, re.Match[bytes] | None]:
    """What stands before the note of the request, and the note."""
    match = _REQUEST.search(data)
    return (data[: match.start()], match) if match else (data, None)


def _split_marker(data: bytes) -> tuple[bytes, re.Match[bytes] | None]:
    """What stands before the note of how curl ended, and the note: nothing but other notes may follow it."""
    for match in _MARKER.finditer(data):
        if all(not line.strip() or line.startswith(b"[") for line in data[match.end() :].splitlines()):
            return data[: match.start()], match
    return data, None


def _answer(data: bytes, found: list[Head]) -> tuple[bytes, bytes, bool | None]:
    """
    Head (1xx answers before it included) and body of the final answer, and whether the body has its announced length.

    None where no length of these bytes is announced: `curl --compressed` unpacks a body and leaves its fields as they were.
    """
    first = len(found) - 1
    while first and found[first - 1].informational:
        first -= 1
    final = found[-1]
    head, body = data[found[first].start : final.end], data[final.end :]
    fields = dict(final.headers)
    announced = fields.get("content-length", "")
    if not announced.isdigit() or not fields.keys().isdisjoint(("transfer-encoding", "content-encoding")):
        return head, body, None
    size = int(announced)
    if len(body) > size and not body[size:].strip():  # an editor, or whoever noted the end, added an empty line
        body = body[:size]
    return head, body, len(body) == size


def _with_request(capture: Capture, asked: re.Match[bytes], *, redirected: bool) -> Capture:
    """The capture with what was noted of its request."""
    method, url, rest = asked[1].decode("ascii"), asked[2].decode("utf-8", "replace"), asked[3]
    body = _NOTE.sub(b"", rest.removesuffix(b"\n").removesuffix(b"\r"))
    known = (body.startswith(b" ") and _is_body(body[1:])) or (not body and method in _BODILESS)
    secrets = (*secrets_of_query(url), *secrets_of_body(body), *capture.secrets)
    noted = replace(capture, method=method, url=url, secrets=secrets)
    if not body.strip() and capture.wire.partition(b" ")[2][:1] == b"2":
        known = method in _BODILESS  # nothing cannot be completed: whoever noted it left the body out
    if not known or redirected:  # a redirect may have changed the method and dropped the body
        return noted
    return replace(noted, body=body[1:], holds=capture.holds | {Evidence.REQUEST})


def _is_body(body: bytes) -> bool:
    """Whether this is the body as sent: no prose about it, and not the beginning of a longer one."""
    if not body:
        return True
    return body[0] in _JSON_BEGINS and (len(body) < _CUT or read_json(body).valid)


def time_of(date: str) -> str:
    """A date of HTTP (RFC 9110, section 5.6.7) in ISO 8601; empty when it is none."""
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return ""
    return (
        moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )
