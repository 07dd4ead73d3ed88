"""`limit.*`: requests that are too large, in tokens or in bytes, are refused, alike and in a way that a program understands."""

import re
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.errorbodies import error_within
from streamgauge.conformance.once import once
from streamgauge.conformance.others import Asked, asked
from streamgauge.conformance.posting import admitted, judged_by_body, posted, said, shown
from streamgauge.conformance.predicates import unknown_model
from streamgauge.conformance.prompt_reports import counts_prompts
from streamgauge.conformance.tokens import detail, final_usage
from streamgauge.contract.contract import CHAT
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence, Exchange
from streamgauge.wire.json import objects_in

_LEAST_DIGITS = 200
_DIGITS = re.compile(r"\d(?: \d)*")
_SHARE = 0.45
"""A tokenizer that takes digits together across blanks is not known; gateways that guess count four characters a token."""

_LARGE_BYTES = 2**19


def _prompt(case: Case, exchange: Exchange) -> str:
    """The text that a request asks to continue or to answer; empty where it is not plain text."""
    sent = exchange.sent
    if not isinstance(sent, dict):
        return ""
    if case.operation.family != CHAT:
        return sent["prompt"] if isinstance(sent.get("prompt"), str) else ""
    messages = objects_in(sent.get("messages"))
    content = messages[0].get("content") if len(messages) == 1 else None
    return content if isinstance(content, str) else ""


def _digits_in(case: Case, exchange: Exchange) -> int:
    """How many tokens a prompt of single digits has at least; 0 for any other, or one that may be cut on demand."""
    prompt = _prompt(case, exchange)
    count = (len(prompt) + 1) // 2
    if (
        count < _LEAST_DIGITS
        or not _DIGITS.fullmatch(prompt)
        or exchange.sent.get("truncate_prompt_tokens") is not None
    ):
        return 0
    return count


def _long(case: Case) -> bool:
    return admitted(case) and _digits_in(case, case.exchange) > 0


_NO_LONG = "no prompt beyond the context was sent: the model list does not say how long one may be"


def _long_ones(case: Case, low: int, high: int) -> Iterator[Exchange]:
    """The long prompts whose status lies in `[low, high)`."""
    for each in case.others:
        held = Evidence.REQUEST in each.holds and not each.rate_limited
        if held and low <= each.status < high and _digits_in(case, each):
            yield each


@once
def _refusals(case: Case) -> dict[Asked, int]:
    """Each long prompt that was ever refused → the status with which it was refused first."""
    found: dict[Asked, int] = {}
    for exchange in _long_ones(case, 400, 500):
        found.setdefault(asked(exchange), exchange.status)
    return found


@once
def _failures(case: Case) -> frozenset[Asked]:
    """Each long prompt at which the server failed."""
    return frozenset(asked(each) for each in _long_ones(case, 500, 600))


def _turned_away(case: Case) -> bool:
    """A long prompt that was not always answered."""
    return _long(case) and (asked(case.exchange) in _refusals(case) or asked(case.exchange) in _failures(case))


def _refused_or_counted(case: Case) -> bool:
    """A long prompt that was refused, or whose answer says how many tokens were read."""
    if not _long(case) or not judged_by_body(case):
        return False
    return case.exchange.status >= 400 or (_read(case.exchange) is not None and counts_prompts(case))


def _read(exchange: Exchange) -> int | None:
    """How many tokens of its prompt were read, by the answer; with those that were cached, which some leave out."""
    found = final_usage(exchange)
    told = found[0].get("prompt_tokens") if found else None
    if found is None or type(told) is not int:
        return None
    return told + (detail(found[0], "prompt_tokens_details", "cached_tokens") or 0)


@check(
    "limit.context-status",
    Level.MUST,
    "A prompt beyond the context is refused, and each time with the same status",
    requirement="The 4xx (Client Error) class of status code indicates that the client seems to have erred.",
    source="RFC 9110, section 15.5",
    applies=_turned_away,
    absent=_NO_LONG,
    needs=(Evidence.REQUEST,),
)
def context_status(case: Case) -> Iterator[Departure]:
    """Whoever is told 500 tries again, and again in vain."""
    first = _refusals(case).get(asked(case.exchange))
    if case.exchange.status != first:
        yield Departure(f"{first}, as before" if first else "4xx", shown(case))


_TOLD = ("code", "type", "param")


def _kind(exchange: Exchange) -> tuple[Any, ...] | None:
    """What a program can tell an error by; None where its form has no place for that."""
    error = error_within(exchange)
    if exchange.status < 400 or exchange.rate_limited or not any(name in error for name in _TOLD):
        return None
    return (exchange.status, *(repr(error.get(name)) for name in _TOLD))


@once
def _other_kinds(case: Case) -> dict[tuple[Any, ...], Exchange]:
    """What refusals that are surely about something else are told by, each with the first exchange."""
    found: dict[tuple[Any, ...], Exchange] = {}
    for exchange in case.others:
        if Evidence.REQUEST in exchange.holds and _wrong_anyway(case, exchange) and (kind := _kind(exchange)):
            found.setdefault(kind, exchange)
    return found


def _wrong_anyway(case: Case, exchange: Exchange) -> bool:
    """A request with another model, or that breaks its schema: that it is too long as well is not what it was told."""
    sent = exchange.sent
    if not isinstance(sent, dict) or _digits_in(case, exchange):
        return False
    return sent.get("model") != case.model or not case.operation.request.accepts(sent)


@check(
    "limit.context-code",
    Level.SHOULD,
    "A program can tell from the error that the prompt was too long",
    requirement="code: context_length_exceeded. Clients shorten the conversation and try again.",
    source=CLIENTS,
    applies=lambda case: _long(case) and 400 <= case.exchange.status < 500 and _kind(case.exchange) is not None,
    absent=f"{_NO_LONG}; or its refusal has no place for a code",
    needs=(Evidence.REQUEST,),
)
def context_code(case: Case) -> Iterator[Departure]:
    """Which word it is, is not asked; only that no other refusal has the same status, code, type and param."""
    kind = _kind(case.exchange)
    other = _other_kinds(case).get(kind) if kind else None
    if other is not None and kind:
        told = ", ".join(f"{name} {value}" for name, value in zip(_TOLD, kind[1:], strict=True))
        yield Departure(
            "a code, type or param of its own", f"{told}, as in {other.id}, which was refused for something else"
        )


@check(
    "limit.silent-truncation",
    Level.MUST,
    "No prompt is cut without a word",
    requirement="usage: prompt_tokens: Number of tokens in the prompt.",
    source=CLIENTS,
    applies=_refused_or_counted,
    absent=_NO_LONG,
    needs=(Evidence.REQUEST,),
)
def silent_truncation(case: Case) -> Iterator[Departure]:
    """The answer is to another question, and nobody knows."""
    least = _digits_in(case, case.exchange)
    read = _read(case.exchange) if case.exchange.status == 200 else None
    if read is not None and read < _SHARE * least:
        yield Departure(f"a refusal, or at least {least} prompt tokens", f"{read} prompt tokens")


@once
def _small_statuses(case: Case) -> frozenset[int]:
    """How small requests for a model that does not exist were refused."""
    return frozenset(
        each.status
        for each in case.others
        if len(each.request.body) < _LARGE_BYTES
        and 400 <= each.status < 500
        and not each.rate_limited
        and isinstance(each.sent, dict)
        and each.sent.get("model") != case.model
        and isinstance(each.sent.get("model"), str)
    )


@check(
    "limit.body-status",
    Level.SHOULD,
    "A large body is refused as such, or as a small one would be",
    requirement=(
        "The 413 (Content Too Large) status code indicates that the server is refusing to process a request because the "
        "request content is larger than the server is willing or able to process."
    ),
    source="RFC 9110, section 15.5.14",
    applies=lambda case: (
        posted(case)
        and len(case.exchange.request.body) >= _LARGE_BYTES
        and unknown_model(case)
        and 400 <= case.exchange.status < 500
        and bool(_small_statuses(case))
    ),
    absent=f"no body of more than {_LARGE_BYTES // 1024} KiB was sent for a model that does not exist",
    needs=(Evidence.REQUEST,),
)
def body_status(case: Case) -> Iterator[Departure]:
    """A server that reads only the beginning blames the JSON, or the model, and the caller looks in vain for his mistake."""
    small = _small_statuses(case)
    if case.exchange.status != 413 and case.exchange.status not in small:
        expected = f"413, or {' or '.join(map(str, sorted(small)))} as for a small body"
        yield Departure(expected, f"{shown(case)}: {said(case)}")
