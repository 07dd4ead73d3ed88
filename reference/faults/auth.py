"""`auth.*`: who gets in and who does not."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from urllib.parse import parse_qsl

from streamgauge.contract.widening import key_needed
from streamgauge.reference.auth import require_key
from streamgauge.reference.drafts import Draft
from streamgauge.reference.errors import Kind, Refusal, body_of
from streamgauge.reference.faults.fault import Stage, fault

_PREFIX = 16
"""Characters of a key; the made-up one shares fewer with the built-in one."""

_OTHER_HEADERS = ("x-api-key", "api-key", "xi-api-key")


def _place(draft: Draft) -> str:
    assert draft.contract is not None
    return draft.contract.profile.auth.header.lower()


def _scheme(draft: Draft) -> str:
    assert draft.contract is not None
    return draft.contract.profile.auth.scheme


def _fields(draft: Draft) -> list[str]:
    """The values of the field in which the key belongs."""
    return [value for name, value in draft.request.headers if name == _place(draft)]


def _opens(draft: Draft) -> bool:
    """Whether the request carries the right key in the right form."""
    assert draft.contract is not None
    assert draft.operation is not None
    try:
        require_key(draft.contract, draft.operation, draft.request.headers, draft.key)
    except Refusal:
        return False
    return True


def _carry(draft: Draft, values: Iterable[str]) -> None:
    """Let the field in which the key belongs stand once for each value."""
    others = [field for field in draft.request.headers if field[0] != _place(draft)]
    headers = (*others, *((_place(draft), value) for value in values))
    draft.request = replace(draft.request, headers=headers)


def _let_in(draft: Draft) -> None:
    assert draft.contract is not None
    _carry(draft, [draft.contract.profile.auth.value(draft.key)])


def _guarded(draft: Draft) -> bool:
    """A request at a path that wants a key."""
    if draft.operation is None or draft.contract is None:
        return False
    return draft.request.method == draft.operation.method and key_needed(draft.operation, draft.contract)


def _stranger(draft: Draft) -> bool:
    """A request that is refused for its key."""
    return _guarded(draft) and not _opens(draft)


def _keyless(draft: Draft) -> bool:
    """A request without anything where the key belongs."""
    return _stranger(draft) and not any(_fields(draft))


def _unauthenticated(draft: Draft) -> bool:
    """The refusal of a request for its key."""
    return draft.refusal is not None and draft.refusal.kind is Kind.AUTHENTICATION and draft.operation is not None


def _with_header(*names: str) -> Callable[[Draft], bool]:
    """A request that carries the right key alone in a field of one of these names."""
    return lambda draft: _stranger(draft) and any((name, draft.key) in draft.request.headers for name in names)


@fault(
    "auth.missing-accepted",
    "a request without a key is answered",
    caught_by="auth.missing",
    stage=Stage.REQUEST,
    concerns=_keyless,
    seen=("pollinations/pollinations#13371",),
)
def _missing_accepted(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.empty-accepted",
    "an empty header field passes for a key",
    caught_by="auth.missing",
    stage=Stage.REQUEST,
    concerns=lambda draft: _keyless(draft) and _fields(draft) == [""],
)
def _empty_accepted(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.streams-unguarded",
    "streams are answered without a key",
    caught_by="auth.missing",
    stage=Stage.REQUEST,
    concerns=lambda draft: _keyless(draft) and draft.asked.get("stream") is True,
)
def _streams_unguarded(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.wrong-accepted",
    "any key in the right form is taken for the right one",
    caught_by="auth.wrong",
    stage=Stage.REQUEST,
    concerns=lambda draft: _stranger(draft) and any(_fields(draft)),
    seen=("diegosouzapw/OmniRoute#2257",),
)
def _wrong_accepted(draft: Draft) -> None:
    _let_in(draft)


def _begins_like_the_key(draft: Draft) -> bool:
    assert draft.contract is not None
    start = draft.contract.profile.auth.value(draft.key[:_PREFIX])
    return len(_fields(draft)) == 1 and _fields(draft)[0].startswith(start)


@fault(
    "auth.prefix-compared",
    "only the key's first characters are compared",
    caught_by="auth.wrong",
    stage=Stage.REQUEST,
    concerns=lambda draft: _stranger(draft) and _begins_like_the_key(draft),
)
def _prefix_compared(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.cached-before-auth",
    "what was answered once is answered again without a look at the key",
    caught_by="auth.cached-prompt",
    stage=Stage.REQUEST,
    concerns=_guarded,
    seen=("pollinations/pollinations#13371",),
)
def _cached_before_auth(draft: Draft) -> None:
    answered = draft.memory.setdefault("answered", set())
    if _opens(draft):
        answered.add(draft.request.body)
    elif draft.request.body in answered:
        _let_in(draft)


@fault(
    "auth.any-header-accepted",
    "the key opens from whatever header field it stands in",
    caught_by=("auth.other-place", "auth.further-place"),
    stage=Stage.REQUEST,
    concerns=_with_header(*_OTHER_HEADERS),
)
def _any_header_accepted(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.x-api-key-accepted",
    "the key opens from x-api-key, which is documented nowhere",
    caught_by=("auth.other-place", "auth.further-place"),
    stage=Stage.REQUEST,
    concerns=_with_header("x-api-key"),
    seen=("diegosouzapw/OmniRoute#2257", "discourse/discourse#40409"),
)
def _x_api_key_accepted(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.query-accepted",
    "the key opens from the URL",
    caught_by="auth.query",
    stage=Stage.REQUEST,
    concerns=lambda draft: (
        _stranger(draft) and ("api_key", draft.key) in parse_qsl(draft.request.target.partition("?")[2])
    ),
)
def _query_accepted(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.scheme-ignored",
    "the key opens with or without a word before it",
    caught_by="auth.other-scheme",
    stage=Stage.REQUEST,
    concerns=lambda draft: _stranger(draft) and _fields(draft) in ([draft.key], [f"Bearer {draft.key}"]),
)
def _scheme_ignored(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.first-of-two-counts",
    "of two keys the first one counts",
    caught_by="auth.two-headers",
    stage=Stage.REQUEST,
    concerns=lambda draft: _guarded(draft) and len(_fields(draft)) > 1,
)
def _first_of_two_counts(draft: Draft) -> None:
    _carry(draft, _fields(draft)[:1])


@fault(
    "auth.scheme-case-sensitive",
    "the word before the key counts in one case only",
    caught_by="auth.scheme-case",
    stage=Stage.REQUEST,
    concerns=lambda draft: (
        _guarded(draft)
        and _scheme(draft) != "raw"
        and not any(f"{_scheme(draft)} " in value for value in _fields(draft))
    ),
    seen=("SamSaffron/term-llm#414", "oomol-lab/open-connector#188", "joshrotenberg/tower-mcp#1289"),
)
def _scheme_case_sensitive(draft: Draft) -> None:
    _carry(draft, [])


@fault(
    "auth.one-space-only",
    "a second space before the key counts as part of it",
    caught_by="auth.white-space",
    stage=Stage.REQUEST,
    concerns=lambda draft: _guarded(draft) and any("  " in value for value in _fields(draft)),
)
def _one_space_only(draft: Draft) -> None:
    _carry(draft, [])


@fault(
    "auth.right-key-refused",
    "the right key is refused",
    caught_by="auth.accepted",
    stage=Stage.REQUEST,
    concerns=lambda draft: _guarded(draft) and _opens(draft),
)
def _right_key_refused(draft: Draft) -> None:
    _carry(draft, [])


@fault(
    "auth.after-body",
    "the key is looked at after the body",
    caught_by="auth.before-body",
    stage=Stage.REQUEST,
    concerns=lambda draft: _stranger(draft) and not draft.asked,
)
def _after_body(draft: Draft) -> None:
    _let_in(draft)


@fault(
    "auth.500",
    "the refusal of a key gets lost on the way and comes as an internal error",
    caught_by=("auth.missing", "auth.wrong"),
    stage=Stage.ANSWER,
    concerns=_unauthenticated,
    seen=("ogx-ai/ogx#2990",),
)
def _internal_error(draft: Draft) -> None:
    draft.status, draft.body = 500, {"detail": "Internal server error"}


def _refuse_with(draft: Draft, status: int) -> None:
    assert draft.contract is not None
    assert draft.refusal is not None
    draft.status = status
    draft.body = body_of(draft.refusal, status, draft.contract.profile.dialect, draft.operation)


@fault(
    "auth.400",
    "a missing or wrong key is called a bad request",
    caught_by=("auth.missing", "auth.wrong"),
    stage=Stage.ANSWER,
    concerns=_unauthenticated,
    seen=("i-am-bee/beeai-framework#447",),
)
def _bad_request(draft: Draft) -> None:
    _refuse_with(draft, 400)


@fault(
    "auth.403",
    "a missing or wrong key is forbidden what only its right would be",
    caught_by=("auth.missing", "auth.wrong"),
    stage=Stage.ANSWER,
    concerns=lambda draft: _unauthenticated(draft) and draft.operation is not None and 401 in draft.operation.statuses,
)
def _forbidden(draft: Draft) -> None:
    _refuse_with(draft, 403)


@fault(
    "auth.no-challenge",
    "a 401 does not say how to authenticate",
    caught_by="auth.challenge",
    stage=Stage.HEAD,
    concerns=_unauthenticated,
)
def _no_challenge(draft: Draft) -> None:
    draft.headers = [(name, value) for name, value in draft.headers if name != "WWW-Authenticate"]


def _say_behind(draft: Draft, more: str) -> None:
    """Lengthen the message of a refusal."""
    assert draft.refusal is not None
    told = json.dumps(draft.refusal.message)[1:-1].encode()
    draft.text = draft.text.replace(told, told + json.dumps(more)[1:-1].encode(), 1)


@fault(
    "auth.key-echoed",
    "the text of an error repeats the key",
    caught_by="auth.key-echoed",
    stage=Stage.TEXT,
    concerns=lambda draft: draft.refusal is not None and _guarded(draft) and _opens(draft),
)
def _key_echoed(draft: Draft) -> None:
    _say_behind(draft, f" (key {draft.key})")


@fault(
    "auth.wrong-key-echoed",
    "the refusal of a key repeats it",
    caught_by="auth.key-echoed",
    stage=Stage.TEXT,
    concerns=lambda draft: _unauthenticated(draft) and _guarded(draft) and any(_fields(draft)),
)
def _wrong_key_echoed(draft: Draft) -> None:
    _say_behind(draft, f" Given: {_fields(draft)[0]}")
