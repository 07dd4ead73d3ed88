"""The curl line that sends an exchange's request again, its key taken from the environment."""

import re
from typing import Any
from urllib.parse import urlsplit

from streamgauge.contract.profile import Auth
from streamgauge.signing import Signature, sign
from streamgauge.wire.exchange import Credential, SentRequest

__all__ = ["KEY_VARIABLE", "LONGEST_BODY", "curl_line"]

KEY_VARIABLE = "STREAMGAUGE_API_KEY"

LONGEST_BODY = 32 * 1024
"""A longer body, in bytes, is not worth a command line."""

_SPELT_BY_CURL = {"connection", "transfer-encoding"}
_ADDED_BY_CURL = {"accept": "Accept", "user-agent": "User-Agent"}


_KEY, _ALTERED = "\0key\0", "\0altered\0"
_SPELT = {_KEY: f'"${KEY_VARIABLE}"', _ALTERED: f'"${{{KEY_VARIABLE}%?}}~"'}
"""What stands for a key until the line is made → how a shell spells it; the latter as `signing.altered` makes it."""


def curl_line(request: SentRequest, target: dict[str, Any]) -> str | None:
    """
    A command that sends the request again; None when its body is longer than :data:`LONGEST_BODY`.

    Args:
        request: what was sent; its secrets are filler already.
        target: the target's entry in meta.json: `auth` says where the key belongs, `insecure` adds `-k`.
    """
    if len(request.body) > LONGEST_BODY:
        return None
    options = [
        "curl -sS -i -N -g",
        *(["-k"] if target.get("insecure") else []),
        f"-X {_word(request.method)}",
    ]
    signature = _signature(request, target)
    options += [f"-H {word}" for word in _headers(request, signature)]
    before = ""
    if request.body:
        if _typeable(request.body):
            options.append(f"--data-raw {_quoted(request.body.decode())}")
        else:
            before = f"printf {_printf_format(request.body)} | "
            options.append("--data-binary @-")
    return before + " \\\n  ".join([*options, _url(request, signature)])


def _headers(request: SentRequest, signature: Signature) -> list[str]:
    keyed = [field for field in signature.headers if _has_key(field[1])]
    words = []
    for name, value in request.headers:
        lower = name.lower()
        if lower in _SPELT_BY_CURL or (lower, value) in _implied(request):
            continue
        signed = next((field for field in keyed if field[0].lower() == lower), None)
        if signed is not None:
            keyed.remove(signed)
            words.append(_with_key(f"{name}: {signed[1]}"))
        else:
            # curl takes `name;` for a field without a value, and `name:` for one to leave out.
            words.append(_word(f"{name}: {value}" if value else f"{name};"))
    sent = {name.lower() for name, _ in request.headers}
    added = {**_ADDED_BY_CURL, **({"content-type": "Content-Type"} if request.body else {})}
    return words + [_word(f"{title}:") for name, title in added.items() if name not in sent]


def _signature(request: SentRequest, target: dict[str, Any]) -> Signature:
    """How the request carried the key; of captures nobody knows it, and a field for the key held filler."""
    auth = target.get("auth", {})
    how = Auth(auth.get("header", "authorization"), auth.get("scheme", "Bearer"), required=True)
    usual = request.credential is Credential.UNKNOWN
    return sign(Credential.VALID if usual else request.credential, how, _KEY, almost=_ALTERED)


def _url(request: SentRequest, signature: Signature) -> str:
    """The URL; in a query the key takes the place of the filler that is as long."""
    before, found, _ = request.url.rpartition(signature.query.partition("=")[0] + "=")
    return _with_key(f"{before}{found}{_KEY}") if signature.query and found else _word(request.url)


def _has_key(text: str) -> bool:
    return any(stand_in in text for stand_in in _SPELT)


def _with_key(text: str) -> str:
    """One word of a shell command for a text in which a key is left open."""
    parts = re.split(f"({'|'.join(_SPELT)})", text)
    return "".join(_SPELT.get(part) or _word(part) for part in parts if part)


def _implied(request: SentRequest) -> set[tuple[str, str]]:
    """The header fields that curl computes to the same value."""
    return {("host", urlsplit(request.url).netloc), ("content-length", str(len(request.body)))}


def _typeable(data: bytes) -> bool:
    """Whether the bytes survive being shown, copied and pasted: printable text and line feeds."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character == "\n" for character in text)


def _word(text: str) -> str:
    """One word of a shell command that stands for `text`."""
    data = text.encode("utf-8", "backslashreplace")
    return _quoted(data.decode()) if _typeable(data) else f'"$(printf {_printf_format(data)})"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _printf_format(data: bytes) -> str:
    """A quoted format for the POSIX utility `printf` that prints exactly `data`."""
    # A leading hyphen would be an option.
    text = re.sub(rb"^-|[^ -~]|[\\']", lambda match: b"\\%03o" % match.group()[0], data).replace(b"%", b"%%")
    return f"'{text.decode('ascii')}'"
