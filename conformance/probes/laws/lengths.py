"""Limits of prompt and answer."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.probes.laws.stop import streamed, telling_ids
from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe, worst_case_tokens
from streamgauge.conformance.told_ids import ids_of
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["lengths"]

_TOKENS = 16
_LIMIT = 8
_BEYOND_END = 16
"""More tokens than a short answer has."""

_KEPT = 4
"""Tokens of the prompt that truncation lets stand: fewer than any prompt has."""

_BRIEF = "Answer with one word: yes."
"""The answer ends by itself, long before its limit."""

_REPEATED = "go " * 11 + "go"
"""A model goes on like that, if its template lets it."""

_DETECTIONS: dict[str, dict[str, int]] = {
    "short": {"max_pattern_size": 1, "min_count": 4},
    "long": {"max_pattern_size": 3, "min_pattern_size": 3, "min_count": 2},
    "off": {"max_pattern_size": 0, "min_count": 0},
}
_CONTRADICTIONS: dict[str, dict[str, int]] = {
    "sizes": {"max_pattern_size": 1, "min_pattern_size": 2, "min_count": 2},
    "once": {"max_pattern_size": 2, "min_count": 1},
    "count-missing": {"max_pattern_size": 2},
}


def lengths(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """Those of the properties that the document has."""
    known = operation.properties
    plain = plain_request(operation, model, max_tokens=_LIMIT)
    unlimited = {name: value for name, value in plain.items() if name != "max_tokens"}
    if "max_completion_tokens" in known:
        limited = {**unlimited, "max_completion_tokens": _LIMIT}
        yield Probe("law.lengths.successor", limited)
        yield Probe("law.lengths.successor-stream", streamed(operation, limited))
        if "reasoning_effort" in known:
            yield Probe("law.lengths.successor-reasoning", {**limited, "reasoning_effort": "low"})
    if operation.schemas.resolved(known.get("max_tokens")).get("default"):
        yield Probe("law.lengths.no-limit", unlimited)
    yield from _ends(operation, {**plain, **prompt_member(operation, _BRIEF), "max_tokens": _BEYOND_END})
    if "min_tokens" in known and "stop" in known:
        yield from _held_stop(operation, {**plain, "max_tokens": _TOKENS})
    yield from _truncations(operation, plain)
    yield from _repetitions(operation, {**plain, **prompt_member(operation, _REPEATED), "max_tokens": _TOKENS})


def _ends(operation: Operation, brief: dict[str, Any]) -> Iterator[Probe]:
    """A short answer as it is, and made longer."""
    longer: dict[str, Any] = {"min_tokens": _BEYOND_END, "ignore_eos": True}
    longer = {name: value for name, value in longer.items() if name in operation.properties}
    if longer:
        yield Probe("law.lengths.brief", brief)
    for name, value in longer.items():
        yield Probe(f"law.lengths.{name.replace('_', '-')}", {**brief, name: value})


def _held_stop(operation: Operation, plain: dict[str, Any]) -> Iterator[FollowUp]:
    """A stop string that comes up at once, alone and with a least number of tokens."""

    def early(answered: Answered) -> str:
        exchange = answered.get("law.stop.text")
        choices = answer_in(exchange).choices if exchange is not None else {}
        text = choices[0].text.strip() if 0 in choices else ""
        return text[:2] if len(text) >= 8 else ""

    def alone(answered: Answered) -> dict[str, Any] | str:
        stop = early(answered)
        return {**plain, "stop": stop} if stop else "no text to take a stop string from"

    def held(answered: Answered) -> dict[str, Any] | str:
        body = alone(answered)
        return body if isinstance(body, str) else {**body, "min_tokens": _LIMIT}

    yield FollowUp("law.lengths.early-stop", worst_case_tokens(plain), alone)
    yield FollowUp("law.lengths.held-stop", worst_case_tokens(plain), held)
    if operation.streams:

        def held_stream(answered: Answered) -> dict[str, Any] | str:
            body = held(answered)
            return body if isinstance(body, str) else streamed(operation, body)

        yield FollowUp("law.lengths.held-stop-stream", worst_case_tokens(plain), held_stream)


def _truncations(operation: Operation, plain: dict[str, Any]) -> Iterator[Probe]:
    known = operation.properties
    if "truncate_prompt_tokens" not in known:
        return
    yield Probe("law.lengths.truncated", {**plain, "truncate_prompt_tokens": _KEPT})
    body = telling_ids(operation, plain)
    if "truncation_side" in known and body:
        yield Probe("law.lengths.prompt-ids", body)
        for side in ("left", "right"):
            yield Probe(
                f"law.lengths.truncated-{side}", {**body, "truncate_prompt_tokens": _KEPT, "truncation_side": side}
            )


def _repetitions(operation: Operation, plain: dict[str, Any]) -> Iterator[Probe | FollowUp]:
    """What repeats itself, as often as it likes and no more; then one token forced, whatever the model likes."""
    if "repetition_detection" not in operation.properties:
        return
    body = telling_ids(operation, plain) or plain
    yield from [Probe("law.lengths.repeated", body)] * 2
    for name, given in _DETECTIONS.items():
        yield Probe(f"law.lengths.repeated-{name}", {**body, "repetition_detection": given})
    for name, given in _CONTRADICTIONS.items():
        yield Probe(f"law.lengths.repetition-{name}", {**plain, "repetition_detection": given}, free=True)

    def forced(answered: Answered) -> dict[str, Any] | str:
        exchange = answered.get("law.lengths.repeated")
        ids = (ids_of(exchange, 0) if exchange is not None else None) or ()
        if not ids:
            return "no token to force"
        return {**body, "allowed_token_ids": [ids[0]], "repetition_detection": _DETECTIONS["short"]}

    if "allowed_token_ids" in operation.properties:
        yield FollowUp("law.lengths.repeated-forced", worst_case_tokens(body), forced)
