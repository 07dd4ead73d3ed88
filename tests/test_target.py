"""Addresses and signatures of requests."""

import contextlib
import functools
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import ConfigError, StreamgaugeError
from streamgauge.signing import WRONG_KEY
from streamgauge.target import Target, join_url, merged_headers
from streamgauge.wire.exchange import Credential

KEY = "sk-5ecret-0123456789"
SEGMENTS = st.lists(st.text("ab1-", min_size=1, max_size=3), max_size=4)
OTHERS = st.lists(st.text("xyz", min_size=1, max_size=3), max_size=4)


@functools.cache
def contract(spec: str) -> Contract:
    """The compiled contract of a bundled document."""
    return load_contracts([spec])[0]


def target(spec: str = "seekr-chat", **more: Any) -> Target:
    """A target on loopback."""
    return Target("t", **{"base_url": "http://127.0.0.1:8000", "contract": contract(spec), **more})


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://h", "/v1/completions", "http://h/v1/completions"),
        ("http://h/", "/v1/completions", "http://h/v1/completions"),
        ("http://h/v1", "/v1/completions", "http://h/v1/completions"),
        ("http://h/v1/", "/v1/completions", "http://h/v1/completions"),
        ("http://h/v1/openai", "/v1/completions", "http://h/v1/openai/v1/completions"),
        ("http://h/v1/inference", "/v1/inference/completions", "http://h/v1/inference/completions"),
        ("http://h/a/v1", "/v1/inference/completions", "http://h/a/v1/inference/completions"),
        ("http://h/v1/v1", "/v1/completions", "http://h/v1/v1/completions"),
        ("http://h/xv1", "/v1/completions", "http://h/xv1/v1/completions"),
        ("http://h/v1/completions", "/v1/completions", "http://h/v1/completions"),
        ("https://h:8443/v1", "/v1/completions", "https://h:8443/v1/completions"),
        ("http://[::1]:8000/v1", "/v1/completions", "http://[::1]:8000/v1/completions"),
        ("http://h", "/v1/completions/", "http://h/v1/completions/"),
        ("http://h", "/x?api-version=1", "http://h/x?api-version=1"),
    ],
)
def test_join(base: str, path: str, url: str) -> None:
    """The longest overlap of whole segments is taken out once."""
    assert join_url(base, path) == url


@given(OTHERS, SEGMENTS, SEGMENTS)
def test_overlap_is_understood(before: list[str], shared: list[str], after: list[str]) -> None:
    """A base that already ends in the path's beginning gives the address of a base that does not."""
    joined = join_url("http://h/" + "/".join(before + shared), "/" + "/".join(shared + after))
    assert joined == "http://h/" + "/".join(before + shared + after)


@pytest.mark.parametrize(
    "base",
    [
        "",
        "h",
        "h:8000",
        "127.0.0.1:8000/v1",
        "ftp://h",
        "file:///etc/passwd",
        "http://",
        "http:///v1",
        "http://[::1",
        "http://h:99999",
        "http://h:port",
        "http://h:0",
        "http://a..b",
        f"http://{'a' * 64}.example",
        "http://h h/",
        "http://h/\n",
        "http://h/ü",
        "http://h?x=1",
        "http://h#x",
        f"http://user:{KEY}@h",
        f"http://user:{KEY}@",
        f"http://user:{KEY}/x@h",
        f"http://{KEY}@h/v1",
        f"http://:{KEY}@h",
        f"user:{KEY}@h",
        f"htp://user:{KEY}@h/v1",
        f"http://h/?key={KEY}",
        "http://@h",
    ],
)
def test_refused_bases(base: str) -> None:
    """What is no plain http or https address is refused with a hint, and no password is printed."""
    with pytest.raises(ConfigError) as caught:
        join_url(base, "/v1")
    assert caught.value.hint
    assert KEY not in "".join(traceback.format_exception(caught.value)).replace(repr(base), "")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "paths", "url"),
    [
        ("http://h", {}, "http://h/v1/completions"),
        ("http://h/", {}, "http://h/v1/completions"),
        ("http://h/v1", {}, "http://h/v1/completions"),
        ("http://h/v1/openai", {}, "http://h/v1/openai/completions"),
        ("http://h/v1/openai/", {}, "http://h/v1/openai/completions"),
        ("http://h:1/x/v1/openai", {}, "http://h:1/x/v1/openai/completions"),
        ("http://h/openai", {}, "http://h/openai/v1/completions"),
        ("http://v1/", {}, "http://v1/v1/completions"),
        ("http://h/v1/openai", {"deepinfra-completions": "/v1/mine"}, "http://h/v1/openai/v1/mine"),
        ("http://h", {"deepinfra-completions": "/mine"}, "http://h/mine"),
        ("", {}, "/v1/completions"),
    ],
)
def test_paths_of_the_profile(base: str, paths: dict[str, str], url: str) -> None:
    """Of DeepInfra's two paths the one that fits the base URL's end is taken, the first one on a tie; the user's wins."""
    made = target("deepinfra-completions", base_url=base, paths=paths)
    assert made.url(made.contract.operations[0]) == url


@pytest.mark.parametrize("base", ["http://[::1", "h", "http://h:port"])
def test_paths_of_the_profile_with_no_base(base: str) -> None:
    """Choosing among paths breaks on no base URL: what is none is refused as such."""
    made = target("deepinfra-completions", base_url=base)
    with pytest.raises(ConfigError):
        made.url(made.contract.operations[0])


@given(st.text())
def test_any_base(base: str) -> None:
    """Any text is an address or is refused as none."""
    with contextlib.suppress(ConfigError):
        assert join_url(base, "/v1").lower().startswith(("http://", "https://"))


@pytest.mark.parametrize(
    ("base", "paths", "urls"),
    [
        ("http://h", {}, ("http://h/v1/inference/chat/models", "http://h/v1/inference/models", "http://h/v1/models")),
        ("http://h/v1", {"seekr-chat": "/v1/chat/completions"}, ("http://h/v1/models",)),
    ],
)
def test_models_urls(base: str, paths: dict[str, str], urls: tuple[str, ...]) -> None:
    """The list of models is looked for beside the operation and at /v1/models."""
    found = target(base_url=base, paths=paths).models_urls
    assert set(found) <= set(urls)
    assert found[-1] == urls[-1]


@pytest.mark.parametrize(
    ("spec", "credential", "value"),
    [
        ("seekr-chat", Credential.VALID, KEY),
        ("seekr-chat", Credential.WRONG, WRONG_KEY),
        ("seekr-chat", Credential.NONE, None),
        ("seekr-chat", Credential.UNCONFIGURED, None),
        ("deepinfra-completions", Credential.VALID, f"Bearer {KEY}"),
    ],
)
def test_signature(spec: str, credential: Credential, value: str | None) -> None:
    """The key goes where the profile says, in its form, or nowhere."""
    assert target(spec, key=KEY).request_headers(credential).get("Authorization") == value


def test_credential() -> None:
    """A target without a key sends none, and says so."""
    assert (target(key=KEY).credential, target().credential) == (Credential.VALID, Credential.UNCONFIGURED)
    assert "Authorization" not in target().request_headers(Credential.VALID)


def test_profile_headers_can_be_replaced() -> None:
    """The user's headers replace the profile's, the profile's the usual ones, however they are spelled."""
    made = target("deepinfra-completions", headers={"X-DeepInfra-Source": "me", "CONTENT-type": "x"})
    headers = made.request_headers(Credential.NONE)
    assert [value for name, value in headers.items() if name.lower() == "x-deepinfra-source"] == ["me"]
    assert [value for name, value in headers.items() if name.lower() == "content-type"] == ["x"]


def test_merging_headers() -> None:
    """A later layer replaces an earlier one by name, whatever the case; nothing goes out twice."""
    assert merged_headers({"a": "1", "B": "2"}, {}, {"A": "3"}) == {"A": "3", "B": "2"}


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "X-Auth-Token", "Cookie", "Client-Secret"])
def test_secret_headers_are_redacted(name: str) -> None:
    """The values of headers that carry credentials are secrets, with and without the word before them."""
    redactor = target(headers={name: f"Bearer {KEY}", "X-Team": "visible-team"}).redactor
    assert redactor.text(f"Bearer {KEY} {KEY} visible-team") == f"{'*' * 27} {'*' * 20} visible-team"


def test_key_is_never_shown() -> None:
    """Neither repr nor str of a target holds the key or a header's value."""
    made = target(key=KEY, headers={"X-Api-Key": KEY})
    assert KEY not in repr(made) + str(made)


@pytest.mark.parametrize("key", ["sh0rt", "1234567"])
def test_short_keys(key: str) -> None:
    """A key that cannot be hidden is refused without being shown."""
    with pytest.raises(StreamgaugeError) as caught:
        _ = target(key=key).redactor
    assert key not in str(caught.value) + repr(caught.value)
