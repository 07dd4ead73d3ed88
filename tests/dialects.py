"""Profiles with one switch turned, what the reference endpoint says under them, and which checks have to depart."""

import dataclasses
import functools
import itertools
from typing import Any

from in_memory import send_all

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import Finding, cases_of, judge
from streamgauge.conformance.plan import Planned, plan
from streamgauge.contract.contract import CHAT, JSON, Contract, Operation, load_contracts
from streamgauge.contract.profile import ANY, Auth, Profile, load_profile
from streamgauge.contract.widening import key_needed
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.target import Target
from streamgauge.wire.exchange import Exchange

NOW = 1_800_000_000.0

JUDGED_BY: dict[str, tuple[str, ...]] = {
    "auth.header": ("auth.accepted",),
    "auth.scheme": ("auth.accepted",),
    "auth.required": ("auth.missing", "auth.wrong"),
    "dialect.malformed_status": ("request.malformed-status",),
    "dialect.unknown_model_status": ("request.model-unknown-status",),
    "dialect.error_envelope": ("error.envelope-undocumented",),
    "dialect.error_code": ("error.code-type",),
    "dialect.reasoning_field": ("response.reasoning-field", "chunk.reasoning-field"),
    "dialect.usage_chunk": ("usage.stream-place",),
    "allowed_statuses": ("error.status-documented",),
    "features": ("request.feature-supported",),
}
"""Switch → the checks that judge it, as `x-judged-by` of the profile's schema has them (but for 5xx, which is never spoken)."""

SPEAKS = {
    "error_envelope": "openai",
    "error_code": "string",
    "reasoning_field": "reasoning",
    "usage_chunk": "own-chunk",
}
"""What the reference endpoint says where the profile takes every form."""


def value_of(profile: Profile, switch: str) -> Any:
    """The value of a switch."""
    return functools.reduce(getattr, switch.split("."), profile)


def turned(profile: Profile, switch: str, value: Any) -> Profile:
    """The profile with another value of one switch."""
    part, _, name = switch.rpartition(".")
    if not part:
        return dataclasses.replace(profile, **{name: value})
    return dataclasses.replace(profile, **{part: dataclasses.replace(getattr(profile, part), **{name: value})})


@functools.cache
def operations_of(name: str) -> tuple[Operation, ...]:
    """The operations of a bundled profile's documents."""
    (contract,) = load_contracts(load_profile(name).documents, name)
    return contract.operations


@functools.cache
def _planned(
    operation: Operation, profile_name: str, auth: Auth, features: tuple[tuple[str, str], ...]
) -> list[Planned]:
    profile = dataclasses.replace(load_profile(profile_name), auth=auth, features=dict(features))
    target = Target("t", "http://127.0.0.1", Contract(profile, (operation,)), model=DEFAULT_MODEL, key=DEFAULT_KEY)
    return plan([target], select=("form", "refusal", "auth")).planned


def exchanges_of(spoken: Contract, judged: Profile) -> list[Exchange]:
    """What the endpoint that speaks one profile answers to the probes that are planned and signed under another."""
    numbers = itertools.count()
    responder = Responder(Settings(), contracts=[spoken], now=lambda: NOW, unique=lambda: f"u{next(numbers)}")
    found = []
    for operation in spoken.operations:
        contract = Contract(judged, (operation,))
        target = Target("t", "http://127.0.0.1", contract, model=DEFAULT_MODEL, key=DEFAULT_KEY)
        planned = _planned(operation, judged.name, judged.auth, tuple(judged.features.items()))
        found += send_all(responder, [dataclasses.replace(item, target=target) for item in planned], NOW)
    return found


def findings_of(exchanges: list[Exchange], operation: Operation, judged: Profile) -> list[Finding]:
    """What every check says of an operation's exchanges under a profile."""
    contract = Contract(judged, (operation,))
    cases = cases_of(exchanges, operation, contract, target="t", model=DEFAULT_MODEL)
    return [judge(check, cases, operation, contract, "t") for check in CHECKS.values()]


def departed(exchanges: list[Exchange], operation: Operation, judged: Profile) -> set[str]:
    """Ids of the checks that departed; a refusal of an optional feature is no departure."""
    wrong = (Outcome.ERROR, Outcome.FAIL, Outcome.IGNORED, Outcome.WARN)
    return {finding.check for finding in findings_of(exchanges, operation, judged) if finding.outcome in wrong}


def expected(spoken: Profile, judged: Profile, operation: Operation) -> set[str]:
    """The checks that have to depart: those of each switch whose spoken value the judging profile does not take."""
    return {check for switch in _not_taken(spoken, judged, operation) for check in JUDGED_BY[switch]}


def _not_taken(spoken: Profile, judged: Profile, operation: Operation) -> set[str]:
    said, heard = spoken.dialect, judged.dialect
    asks_key = key_needed(operation, Contract(spoken, (operation,)))
    wants_key = key_needed(operation, Contract(judged, (operation,)))
    found = set()
    if asks_key and (spoken.auth.header, spoken.auth.scheme) != (judged.auth.header, judged.auth.scheme):
        found.add("auth.scheme")
    if wants_key and not asks_key:
        found.add("auth.required")
    locked_out = "auth.scheme" in found
    if not _envelope_taken(said, heard, operation):
        found.add("dialect.error_envelope")
    if heard.error_code != ANY and _spoken(said, "error_code") != heard.error_code and _shows_code(said, operation):
        found.add("dialect.error_code")
    statuses = {401} if asks_key else set()
    if not locked_out:
        unable = 422 if 422 in operation.statuses else said.malformed_status[0]
        statuses |= {said.malformed_status[0], said.unknown_model_status[0], unable}
        found |= _not_taken_once_inside(spoken, judged, operation)
    beyond = statuses - set(operation.statuses) - set(judged.allowed_statuses) - ({401} if wants_key else set())
    return found | ({"allowed_statuses"} if beyond else set())


def _not_taken_once_inside(spoken: Profile, judged: Profile, operation: Operation) -> set[str]:
    """The switches that no request without the right key can show."""
    said, heard = spoken.dialect, judged.dialect
    found = set()
    for switch in ("malformed_status", "unknown_model_status"):
        if getattr(said, switch)[0] not in getattr(heard, switch):
            found.add(f"dialect.{switch}")
    if heard.usage_chunk not in (ANY, _spoken(said, "usage_chunk")):
        found.add("dialect.usage_chunk")
    thinks = operation.family == CHAT and "reasoning_effort" in operation.properties
    if thinks and heard.reasoning_field not in (ANY, _spoken(said, "reasoning_field")):
        found.add("dialect.reasoning_field")
    if any(spoken.features.get(name) == "unsupported" for name, said in judged.features.items() if said == "supported"):
        found.add("features")
    return found


def _spoken(dialect: Any, switch: str) -> str:
    value: str = getattr(dialect, switch)
    return SPEAKS[switch] if value == ANY else value


def _error(dialect: Any) -> dict[str, Any]:
    code: Any = 405 if dialect.error_code == "integer" else None
    usual: dict[str, Any] = {"error": {"message": "text", "type": "t", "code": code}}
    forms: dict[str, dict[str, Any]] = {"openai-or-string": {"error": "text"}, "detail": {"detail": "text"}}
    return forms.get(dialect.error_envelope, usual)


def _envelope_taken(said: Any, heard: Any, operation: Operation) -> bool:
    """By the profile; or by the document, whose other errors look like that."""
    taken = {
        "openai": {"openai"},
        "openai-or-string": {"openai", "openai-or-string"},
        "detail": {"detail"},
    }
    if heard.error_envelope == ANY or _spoken(said, "error_envelope") in taken[heard.error_envelope]:
        return True
    body = _error(said)
    documented = [status for status in operation.statuses if status >= 400 and operation.documents_body(status, JSON)]
    validators = [operation.response(status, JSON) for status in documented]
    return any(each.accepts(body) and not each.accepts(dict.fromkeys(body, 0)) for each in validators)


def _shows_code(said: Any, operation: Operation) -> bool:
    """Whether an error comes with a code whose type the document leaves open: always where it is told in an object."""
    return _spoken(said, "error_envelope") == "openai" or operation.name.startswith("openai")
