"""
What in a capture is secret, though nobody names the key.

Header fields, query parameters and JSON members carry credentials under names that tell it. Their values are blotted out where
they stand, and, when long enough to be told from innocent text, wherever else they appear.
"""

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

from streamgauge.redaction import FILLER, MINIMUM_SECRET_LENGTH, Redactor

__all__ = [
    "blot_head",
    "redact_query",
    "redact_text",
    "redactor_of",
    "secrets_of_body",
    "secrets_of_query",
    "values_of",
]

_SECRET_ANSWER = re.compile(r"^(set-cookie2?|authorization|.*(api-?key|secret|access-token|session).*)$", re.I)
_SECRET_PARAMETER = re.compile(
    r"^(key|.*(api[-_]?key|access[-_]?key|subscription[-_]key)|.*token|.*secret|.*password|sig|signature|code)$", re.I
)
_SECRET_MEMBER = re.compile(
    r"^(.*(api|access|subscription)[-_]?key|.*(access|auth|bearer)[-_]?token|.*secret|password)$", re.I
)

_MEMBER = re.compile(rb'"([A-Za-z_-]{1,40})"\s*:\s*"((?:[^"\\]|\\.)*)"')
_QUERY = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s]*)")
_HEADER = re.compile(rb"(?m)^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(:[ \t]*)([^\r\n]*)")
_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|gsk|hf|xai|ghp|nvapi)[-_][A-Za-z0-9_-]{12,}")


def values_of(value: str) -> list[str]:
    """A header's value and its parts that are long enough to be looked for elsewhere: the words, and each cookie's value."""
    parts = {value, value.rpartition(" ")[2], *(pair.strip().partition("=")[2] for pair in value.split(";"))}
    return sorted((part for part in parts if len(part) >= MINIMUM_SECRET_LENGTH), key=len, reverse=True)


def secrets_of_query(url: str) -> list[str]:
    """The values of query parameters that carry a credential."""
    pairs = parse_qsl(urlsplit(url).query)
    return [value for name, value in pairs if _is_parameter(name) and len(value) >= MINIMUM_SECRET_LENGTH]


def secrets_of_body(body: bytes) -> list[str]:
    """The texts of JSON members that carry a credential."""
    found = ((name.decode(), value.decode("utf-8", "replace")) for name, value in _MEMBER.findall(body))
    return [value for name, value in found if _SECRET_MEMBER.match(name) and len(value) >= MINIMUM_SECRET_LENGTH]


def redact_query(url: str) -> str:
    """The URL with credentials in its query, and before its host, blotted out."""
    url = re.sub(r"(?<=://)[^/@\s]+(?=@)", lambda match: FILLER * len(match.group()), url)
    return _QUERY.sub(
        lambda match: f"{match[1]}={FILLER * len(match[2])}" if _is_parameter(match[1]) else match.group(), url
    )


def redact_text(text: str) -> str:
    """A text, such as a file's name, without what looks like a key."""
    return _LIKE_A_KEY.sub(lambda match: FILLER * len(match.group()), text)


def blot_head(head: bytes) -> tuple[bytes, list[str]]:
    """The head of an answer with the values of fields that carry a credential blotted out, and those values."""
    found: list[str] = []

    def blot(match: re.Match[bytes]) -> bytes:
        name, colon, value = match.groups()
        if not _SECRET_ANSWER.match(name.decode("ascii")):
            return match.group()
        found.extend(values_of(value.decode("latin-1").partition(";")[0]))
        return name + colon + FILLER.encode() * len(value)

    return _HEADER.sub(blot, head), found


def redactor_of(secrets: Iterable[str]) -> Redactor:
    """A redactor of those that are long enough; shorter ones are blotted out only where they stand."""
    return Redactor(dict.fromkeys(secret for secret in secrets if len(secret) >= MINIMUM_SECRET_LENGTH))


def _is_parameter(name: str) -> bool:
    return bool(_SECRET_PARAMETER.match(name))
