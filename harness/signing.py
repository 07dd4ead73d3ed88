"""How a request carries the key: each form as data, so that whoever sends and whoever repeats a request agree."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from streamgauge.contract.profile import Auth
from streamgauge.wire.exchange import Credential

__all__ = ["IN_WORDS", "WRONG_KEY", "Signature", "altered", "forms_of", "sign"]

WRONG_KEY = "streamgauge-wrong-key-0000"
"""What is sent as the made-up key."""

_FORMS: dict[Credential, tuple[tuple[str, str], ...]] = {
    Credential.VALID: (("{header}", "{scheme}{key}"),),
    Credential.EMPTY: (("{header}", ""),),
    Credential.WRONG: (("{header}", "{scheme}{wrong}"),),
    Credential.ALTERED: (("{header}", "{scheme}{altered}"),),
    Credential.LONGER: (("{header}", "{scheme}{key}~"),),
    Credential.RAW: (("Authorization", "{key}"),),
    Credential.BEARER: (("Authorization", "Bearer {key}"),),
    Credential.SCHEME_LOWER: (("{header}", "{lower}{key}"),),
    Credential.SCHEME_UPPER: (("{header}", "{upper}{key}"),),
    Credential.SPACED: (("{header}", "{spaced}{key}"),),
    Credential.X_API_KEY: (("x-api-key", "{key}"),),
    Credential.API_KEY: (("api-key", "{key}"),),
    Credential.XI_API_KEY: (("xi-api-key", "{key}"),),
    Credential.TWO_HEADERS: (("{header}", "{scheme}{key}"), ("{header}", "{scheme}{wrong}")),
}
"""
Form → the header fields that it consists of.

`scheme` is the word before the key and its space, `spaced` the same with more space (RFC 9110, section 11.4: `1*SP`); space
around the whole value is no form, since h11 sends none (section 5.5: it is no part of the value).
"""

_QUERY = "api_key"

IN_WORDS: dict[Credential, str] = {
    Credential.NONE: "no key",
    Credential.EMPTY: "an empty header",
    Credential.WRONG: "a made-up key",
    Credential.ALTERED: "the key with another last character",
    Credential.LONGER: "the key with one more character",
    Credential.RAW: "the key alone in Authorization",
    Credential.BEARER: "the key as Authorization: Bearer",
    Credential.SCHEME_LOWER: "the scheme in lower case",
    Credential.SCHEME_UPPER: "the scheme in upper case",
    Credential.SPACED: "two spaces before the key",
    Credential.X_API_KEY: "the key in x-api-key",
    Credential.API_KEY: "the key in api-key",
    Credential.XI_API_KEY: "the key in xi-api-key",
    Credential.QUERY: "the key in the URL",
    Credential.TWO_HEADERS: "a right and a made-up key",
}
"""What every form but the usual one is called in findings and reports."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a form adds to a request: header fields, names as written, and a query without its `?`, both maybe empty."""

    headers: tuple[tuple[str, str], ...] = ()
    query: str = ""


def sign(credential: Credential, auth: Auth, key: str, *, almost: str | None = None) -> Signature:
    """
    The form of the key for one target.

    Args:
        credential: the form; one that carries nothing has an empty signature.
        auth: the profile's place and scheme.
        key: the right key.
        almost: what stands for the altered key; by default it is made from the right one.
    """
    if credential is Credential.QUERY:
        return Signature(query=f"{_QUERY}={quote(key, safe='')}")
    before = "" if auth.scheme == "raw" else f"{auth.scheme} "
    words = {
        "header": auth.header,
        "scheme": before,
        "lower": before.lower(),
        "upper": before.upper(),
        "spaced": before and f"{before} ",
        "key": key,
        "wrong": WRONG_KEY,
        "altered": altered(key) if almost is None else almost,
    }
    fields = _FORMS.get(credential, ())
    return Signature(tuple((name.format_map(words), value.format_map(words)) for name, value in fields))


def altered(key: str) -> str:
    """The key with another last character. It tells nearly all of the key, and is as secret."""
    return key[:-1] + ("!" if key.endswith("~") else "~")


def forms_of(auth: Auth) -> Iterator[Credential]:
    """The forms that differ from the usual one and from each other; an absent key is one of them."""
    seen = [_compared(Credential.VALID, auth)]
    for credential in (Credential.NONE, *_FORMS, Credential.QUERY):
        form = _compared(credential, auth)
        if form not in seen:
            seen.append(form)
            yield credential


def _compared(credential: Credential, auth: Auth) -> Signature:
    """The signature with names in lower case, which is all that a header field's name says."""
    made = sign(credential, auth, "key")
    return Signature(tuple((name.lower(), value) for name, value in made.headers), made.query)
