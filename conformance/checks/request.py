"""`request.*`: what the endpoint has to take."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.errorbodies import error_within
from streamgauge.conformance.once import once
from streamgauge.conformance.posting import judged_by_body, not_plain, posted, said, shown, unknown_members
from streamgauge.conformance.predicates import used_features, valid_request
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.features import FEATURES
from streamgauge.contract.profile import SUPPORTED
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Credential, Evidence

_BODY = "/requestBody/content/application~1json/schema"
_OPTIONAL = "x_"
"""How the members begin that a sender adds of its own: nobody has to know them."""


def _refused(case: Case) -> bool:
    return 400 <= case.exchange.status < 500


_FILTERED = ("content_filter", "content_policy_violation")
"""The code of an error that a filter of contents gives its reason (Azure, OpenAI)."""


def _allowed(case: Case) -> bool:
    """A posted request that the document allows, and that neither the caller's balance nor a filter of contents stopped."""
    stopped = case.exchange.status == 402 or error_within(case.exchange).get("code") in _FILTERED
    return posted(case) and valid_request(case) and not stopped


_PLAINEST = {"model", "messages", "prompt", "max_tokens", "max_completion_tokens"}


def _has_text(case: Case) -> bool:
    """There is something to answer, whether the document requires it or not."""
    return any(case.exchange.sent.get(name) is not None for name in ("messages", "prompt"))


def _plainest(case: Case) -> bool:
    """A model, a text and at most a limit: no sampling, which models that think refuse, no stream, and no null."""
    if not _allowed(case):
        return False
    said = {name for name, value in case.exchange.sent.items() if value is not False}
    return said <= _PLAINEST and None not in case.exchange.sent.values() and _has_text(case) and not not_plain(case)


@check(
    "request.plain-accepted",
    Level.MUST,
    "The plainest request is answered: a model and a text, at most a limit",
    requirement="'200': description: Successful response.",
    source="/responses/200",
    applies=_plainest,
    needs=(Evidence.REQUEST,),
)
def plain_accepted(case: Case) -> Iterator[Departure]:
    """There is nothing in it that could be an optional feature. Asked last, it also shows that the server still works."""
    if _refused(case):
        yield Departure("2xx", f"{shown(case)}: {said(case)}")


@once
def _statuses(case: Case) -> dict[tuple[str, Credential], list[int]]:
    """How each body was answered that is an object, with each form of the key."""
    found: dict[tuple[str, Credential], list[int]] = {}
    for other in case.others:
        if isinstance(other.sent, dict):
            key = json.dumps(other.sent, sort_keys=True), other.request.credential
            found.setdefault(key, []).append(other.status)
    return found


def _asked_otherwise(case: Case, body: Any) -> list[int]:
    """The statuses of another request of the same credential, where it was sent: that without something, for instance."""
    return _statuses(case).get((json.dumps(body, sort_keys=True), case.exchange.request.credential), [])


def _answered_without(case: Case, bare: Callable[[Any], Any]) -> bool:
    """Whether the same request without something was answered: then nothing else in it can be the reason of a refusal."""
    return any(200 <= status < 300 for status in _asked_otherwise(case, bare(case.exchange.sent)))


def _refused_without(case: Case, names: Iterable[str]) -> bool:
    """Whether the same request without these properties was refused as well: then they are not the reason."""
    left = {name: value for name, value in case.exchange.sent.items() if name not in set(names)}
    return any(400 <= status < 500 for status in _asked_otherwise(case, left))


def _without_null(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _says_null(case: Case) -> bool:
    """A request with documented properties that are null, which was answered without them."""
    if not (judged_by_body(case) and valid_request(case)):
        return False
    sent = case.exchange.sent
    nulls = {name for name in case.operation.properties if name in sent and sent[name] is None}
    return bool(nulls) and _answered_without(case, _without_null)


@check(
    "request.valid",
    Level.SHOULD,
    "A request that the document allows is not refused",
    requirement="'200': description: Successful response.",
    source=_BODY,
    applies=lambda case: _allowed(case) and not _plainest(case) and not _says_null(case),
    needs=(Evidence.REQUEST,),
)
def valid(case: Case) -> Iterator[Departure]:
    """A documented 4xx for an optional feature is a refusal, and no fault by itself; there may be no such feature in it."""
    if not _refused(case):
        return
    profile, used = case.contract.profile, used_features(case)
    if lacking := profile.unsupported(used):
        told = f"{case.exchange.status}, expected by the profile {profile.name}: it has {', '.join(lacking)} as unsupported"
        yield Departure("2xx", told, outcome=Outcome.PASS)
        return
    plain = _has_text(case) and not used and not not_plain(case) and not unknown_members(case)
    yield Departure("2xx", f"{shown(case)}: {said(case)}", outcome=None if plain else Outcome.REFUSED)


def _asks_only_for_supported(case: Case) -> bool:
    """A plain request but for features that the profile calls supported: nothing else in it could be refused."""
    if not _allowed(case):
        return False
    used, said = used_features(case), case.contract.profile.features
    if not used or any(said.get(name) != SUPPORTED for name in used):
        return False
    return not_plain(case) <= {param for name in used for param in FEATURES[name].params}


@check(
    "request.feature-supported",
    Level.SHOULD,
    "A feature that the profile calls supported is not refused",
    requirement="features: NAME: supported",
    source="the profile's `features`, which quotes the vendor",
    applies=_asks_only_for_supported,
    concerns=lambda operation, contract: SUPPORTED in contract.profile.features.values(),
    absent="no plain request used a feature that the profile calls supported",
    needs=(Evidence.REQUEST,),
)
def feature_supported(case: Case) -> Iterator[Departure]:
    """What the vendor promises has to be there."""
    used = used_features(case)
    if _refused(case) and not _refused_without(case, [param for name in used for param in FEATURES[name].params]):
        yield Departure(f"2xx for {', '.join(sorted(used))}", shown(case))


def _only_adds_unknown(case: Case) -> bool:
    return judged_by_body(case) and valid_request(case) and bool(unknown_members(case)) and not not_plain(case)


def _takes_more(operation: Operation, contract: Contract) -> bool:
    """The document says outright that further properties are allowed."""
    return operation.schemas.resolved(operation.request_schema).get("additionalProperties") is True


@check(
    "request.extra-property",
    Level.MUST,
    "A property that the document does not know is accepted",
    requirement="additionalProperties: true",
    source=f"{_BODY}/additionalProperties",
    applies=_only_adds_unknown,
    concerns=_takes_more,
    needs=(Evidence.REQUEST,),
)
def extra_property(case: Case) -> Iterator[Departure]:
    """Clients send the properties of newer or other versions along."""
    about_a_feature = case.contract.profile.unsupported(used_features(case))
    if _refused(case) and (about_a_feature or _refused_without(case, unknown_members(case))):
        return  # the request without it tells
    if not 200 <= case.exchange.status < 300:
        yield Departure("2xx", f"{shown(case)} for {', '.join(sorted(unknown_members(case)))}")


def _without_optional(value: Any) -> Any:
    """The value without the members that the sender added of its own, however deep they stand."""
    if isinstance(value, dict):
        return {name: _without_optional(item) for name, item in value.items() if not name.startswith(_OPTIONAL)}
    return [_without_optional(item) for item in value] if isinstance(value, list) else value


def _adds_within(case: Case) -> bool:
    """A request that adds members below its own object, and was answered without them."""
    if not (judged_by_body(case) and valid_request(case)):
        return False
    sent = case.exchange.sent
    own = {name for name in sent if name.startswith(_OPTIONAL)}
    return not own and _without_optional(sent) != sent and _answered_without(case, _without_optional)


@check(
    "request.extra-nested",
    Level.SHOULD,
    "A member that the document does not know is accepted within a message or an option, too",
    requirement="Extra fields are permitted, so anything the upstream engine accepts still passes through.",
    source=CLIENTS,
    applies=_adds_within,
    concerns=_takes_more,
    absent="no request that was answered without such members",
    needs=(Evidence.REQUEST,),
)
def extra_nested(case: Case) -> Iterator[Departure]:
    """Clients send back messages as they got them, with whatever the server had put there."""
    if _refused(case):
        yield Departure("2xx, as without the further members", shown(case))


@check(
    "request.null-accepted",
    Level.MUST,
    "A property that is null, where the document allows it, is taken like one that is absent",
    requirement="anyOf: [..., type: 'null'], default: null",
    source=f"{_BODY}/properties",
    applies=_says_null,
    absent="no request that was answered without its nulls",
    needs=(Evidence.REQUEST,),
)
def null_accepted(case: Case) -> Iterator[Departure]:
    """Clients in typed languages send every property that they know."""
    if _refused(case):
        yield Departure("2xx, as without the nulls", f"{shown(case)}: {said(case)}")
