"""The forms of a key: how each is sent, and which differ at all."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import contract_of

from streamgauge.contract.contract import Contract
from streamgauge.contract.profile import Auth
from streamgauge.signing import WRONG_KEY, altered, forms_of, sign
from streamgauge.target import Target
from streamgauge.wire.exchange import Credential

KEY = "sk-not-a-real-key"
BEARER = Auth("Authorization", "Bearer", required=True)
RAW = Auth("Authorization", "raw", required=True)
OWN = Auth("X-API-Key", "raw", required=True)


@pytest.mark.parametrize(
    ("credential", "auth", "headers"),
    [
        (Credential.VALID, BEARER, [("Authorization", f"Bearer {KEY}")]),
        (Credential.VALID, RAW, [("Authorization", KEY)]),
        (Credential.NONE, BEARER, []),
        (Credential.UNCONFIGURED, BEARER, []),
        (Credential.UNKNOWN, BEARER, []),
        (Credential.EMPTY, BEARER, [("Authorization", "")]),
        (Credential.WRONG, RAW, [("Authorization", WRONG_KEY)]),
        (Credential.ALTERED, BEARER, [("Authorization", "Bearer sk-not-a-real-ke~")]),
        (Credential.LONGER, BEARER, [("Authorization", f"Bearer {KEY}~")]),
        (Credential.RAW, BEARER, [("Authorization", KEY)]),
        (Credential.BEARER, RAW, [("Authorization", f"Bearer {KEY}")]),
        (Credential.SCHEME_LOWER, BEARER, [("Authorization", f"bearer {KEY}")]),
        (Credential.SCHEME_UPPER, BEARER, [("Authorization", f"BEARER {KEY}")]),
        (Credential.SPACED, BEARER, [("Authorization", f"Bearer  {KEY}")]),
        (Credential.X_API_KEY, BEARER, [("x-api-key", KEY)]),
        (Credential.API_KEY, RAW, [("api-key", KEY)]),
        (Credential.XI_API_KEY, RAW, [("xi-api-key", KEY)]),
        (Credential.TWO_HEADERS, OWN, [("X-API-Key", KEY), ("X-API-Key", WRONG_KEY)]),
        (Credential.QUERY, BEARER, []),
    ],
)
def test_header_fields_of_each_form(credential: Credential, auth: Auth, headers: list[tuple[str, str]]) -> None:
    """Fault catalogue 3.2: the matrix of forms."""
    assert list(sign(credential, auth, KEY).headers) == headers


def test_key_in_the_url_is_encoded() -> None:
    """RFC 3986, section 2.1: what is no unreserved character is percent-encoded."""
    assert sign(Credential.QUERY, BEARER, "a/b+c=d e").query == "api_key=a%2Fb%2Bc%3Dd%20e"


@pytest.mark.parametrize(
    ("auth", "not_sent"),
    [
        (BEARER, {Credential.BEARER}),
        (RAW, {Credential.RAW, Credential.SCHEME_LOWER, Credential.SCHEME_UPPER, Credential.SPACED}),
        (OWN, {Credential.X_API_KEY, Credential.SCHEME_LOWER, Credential.SCHEME_UPPER, Credential.SPACED}),
    ],
)
def test_form_that_is_the_usual_one_is_not_sent_again(auth: Auth, not_sent: set[Credential]) -> None:
    """What the profile calls right is VALID already, whatever the case of the header's name."""
    assert set(Credential) - set(forms_of(auth)) - {each for each in Credential if each.usual} == not_sent


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8))
def test_altered_key_is_another_of_the_same_length(key: str) -> None:
    """Only the last character differs."""
    other = altered(key)
    assert other != key
    assert (len(other), other[:-1]) == (len(key), key[:-1])


@pytest.mark.parametrize("credential", list(Credential))
def test_no_form_shows_the_key_behind_the_redactor(credential: Credential) -> None:
    """What is sent as the key, or as nearly the key, is blotted out in URL and header fields."""
    target = Target("t", "http://h", contract_of("openai-chat")[0], key="k/ü +0123")
    url, fields = target.signed("http://h/v1", credential)
    shown = [target.redactor.text(text) for text in (url, *(value for _, value in fields))]

    assert not any("0123" in text or "012~" in text for text in shown)


def test_signed_url_keeps_its_own_query() -> None:
    """The key stands behind what is there."""
    target = Target("t", "http://h", contract_of("openai-chat")[0], key=KEY)

    assert target.signed("http://h/v1?a=b", Credential.QUERY)[0] == f"http://h/v1?a=b&api_key={KEY}"
    assert target.signed("http://h/v1", Credential.VALID)[0] == "http://h/v1"


def test_nothing_else_is_sent_where_the_key_belongs() -> None:
    """A request without the key is one, though the user's own header fields hold something there."""
    contract = contract_of("openai-chat")[0]
    own = {"authorization": "Basic dXNlcjpwYXNz", "x-team": "a"}

    def names(key: str | None, credential: Credential) -> list[str]:
        target = Target("t", "http://h", contract, key=key, headers=own)
        return [name.lower() for name, _ in target.signed("http://h", credential)[1]]

    assert "authorization" not in names(KEY, Credential.NONE)
    assert names(KEY, Credential.VALID).count("authorization") == 1
    assert names(KEY, Credential.TWO_HEADERS).count("authorization") == 2
    assert "authorization" in names(None, Credential.UNCONFIGURED)


def test_changes_replace_what_would_be_sent() -> None:
    """A probe's own fields stand in place of all others of their names, the key's included."""
    auth = Auth("X-Token", "raw", required=True)
    profile = dataclasses.replace(contract_of("openai-chat")[0].profile, auth=auth)
    contract = Contract(profile, contract_of("openai-chat")[0].operations)
    target = Target("t", "http://h", contract, key=KEY)

    _, fields = target.signed("http://h", Credential.VALID, [("Content-Type", None), ("X-TOKEN", "other")])

    assert [value for name, value in fields if name.lower() == "x-token"] == ["other"]
    assert "content-type" not in [name.lower() for name, _ in fields]
