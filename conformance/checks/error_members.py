"""`error.*`: what stands in the members of an error body."""

import re
from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.errorbodies import error_within, leaves_open
from streamgauge.conformance.internals import internals_in, texts_of, visible
from streamgauge.conformance.posting import not_plain, posted
from streamgauge.conformance.predicates import refused
from streamgauge.contract.profile import ANY
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence

_SCHEMA = "/responses/<status>/content/application~1json/schema"


def _is_number(value: Any) -> bool:
    return type(value) is int


@check(
    "error.code",
    Level.SHOULD,
    "A numeric error code equals the status",
    requirement="error.code: type: integer",
    source=_SCHEMA,
    applies=lambda case: refused(case) and _is_number(error_within(case.exchange).get("code")),
)
def code(case: Case) -> Iterator[Departure]:
    """Two numbers for one failure leave the caller to guess."""
    value = error_within(case.exchange)["code"]
    if 400 <= value <= 599 and value != case.exchange.status:
        yield Departure(str(case.exchange.status), str(value))


_CODES: dict[str, tuple[str, tuple[type, ...]]] = {
    "integer": ("an integer", (int,)),
    "string": ("a string or null", (str, type(None))),
}


@check(
    "error.code-type",
    Level.SHOULD,
    "An error code is of the type that the profile says",
    requirement="error.code: type: integer (Seekr, vLLM); string or null (OpenAI)",
    source=f"{CLIENTS}; the profile's `dialect.error_code`",
    applies=lambda case: (
        refused(case) and "code" in error_within(case.exchange) and leaves_open(case, "code", (1, "word"))
    ),
    concerns=lambda operation, contract: contract.profile.dialect.error_code != ANY,
    absent="no error with a code whose type the document leaves open",
)
def code_type(case: Case) -> Iterator[Departure]:
    """Typed clients read one or the other; where the document says which, `error.envelope` judges it."""
    expected, types = _CODES[case.contract.profile.dialect.error_code]
    value = error_within(case.exchange)["code"]
    if type(value) not in types:
        yield Departure(expected, repr(value))


def _open_texts(case: Case) -> list[str]:
    """The members of an error that have to be texts, where no document says so."""
    error = error_within(case.exchange)
    return [name for name in ("type", "param") if name in error and leaves_open(case, name, ({}, "word"))]


@check(
    "error.member-types",
    Level.SHOULD,
    "`type` and `param` of an error are texts or null",
    requirement="error.type, error.param: string or null",
    source=CLIENTS,
    applies=lambda case: refused(case) and bool(_open_texts(case)),
    absent="no error with a `type` or `param` whose type the document leaves open",
)
def member_types(case: Case) -> Iterator[Departure]:
    """Where the document says so, `error.envelope` judges it."""
    for name in _open_texts(case):
        value = error_within(case.exchange)[name]
        if value is not None and not isinstance(value, str):
            yield Departure(f"a text or null as `{name}`", repr(value)[:80])


_NOTHINGS = ("none", "null", "undefined", "nan")
"""What a missing value becomes when it is made a text."""


@check(
    "error.none-strings",
    Level.SHOULD,
    "No member of an error is the word None in the place of nothing, and its message is not empty",
    requirement="error.param: string or null",
    source=CLIENTS,
    applies=lambda case: refused(case) and bool(error_within(case.exchange)),
)
def none_strings(case: Case) -> Iterator[Departure]:
    """A caller who asks whether there is a `param` is told that there is one."""
    for name in ("message", "type", "param", "code"):
        value = error_within(case.exchange).get(name)
        if isinstance(value, str) and (value.strip().lower() in _NOTHINGS or (name == "message" and not value.strip())):
            yield Departure(f"null or no `{name}`" if name != "message" else "a message", repr(value))


_LIMITS = {"max_tokens", "max_completion_tokens"}
"""One property by two names: a server may know only one."""


def _only_mistake(case: Case) -> str:
    """The one property that breaks the schema of a request whose other properties nobody could refuse; else empty."""
    sent = case.exchange.sent
    if not (posted(case) and isinstance(sent, dict) and sent.get("model") == case.model):
        return ""
    odd = not_plain(case)
    if len(odd) > 1:  # known at once; to name the defects takes milliseconds
        return ""
    pointers = [problem.pointer for problem in case.operation.request.problems(sent)]
    wrong = {pointer.split("/")[1] for pointer in pointers if pointer}
    if len(wrong) != 1 or "" in pointers or not odd <= wrong:
        return ""
    return wrong.pop()


def _names(param: str) -> set[str]:
    return set(re.findall(r"\w+", param))


@check(
    "error.param",
    Level.SHOULD,
    "`param` names the property that is wrong, or none",
    requirement="param: Name of the request's property that is wrong.",
    source=f"{CLIENTS}; {_SCHEMA}",
    applies=lambda case: (
        refused(case) and isinstance(error_within(case.exchange).get("param"), str) and bool(_only_mistake(case))
    ),
    absent="no error with a `param` in answer to a request with one wrong property",
    needs=(Evidence.REQUEST,),
)
def param(case: Case) -> Iterator[Departure]:
    """It may say more (`body.n`, `messages[0].role`) or something else (`body`), but not another property."""
    wrong, told = _only_mistake(case), error_within(case.exchange)["param"]
    right = _LIMITS if wrong in _LIMITS else {wrong}
    others = _names(told) & (case.operation.properties.keys() - right)
    if others and not _names(told) & right:
        yield Departure(wrong, told)


@check(
    "error.no-internals",
    Level.SHOULD,
    "An error shows nothing of the server's inside: no stack trace, no source file, no address behind it",
    requirement=(
        "The product generates an error message that includes sensitive information about its environment, users, or "
        "associated data. (the weakness)"
    ),
    source="CWE-209",
    applies=lambda case: refused(case) and case.exchange.response.body != b"",
    needs=(Evidence.REQUEST,),
)
def no_internals(case: Case) -> Iterator[Departure]:
    """What the request itself says is only quoted back, and is no secret."""
    exchange = case.exchange
    own = "\n".join([exchange.request.url, exchange.request.body.decode("utf-8", "replace"), *texts_of(exchange.sent)])
    raw = exchange.response.body.decode("utf-8", "replace")
    said = "\n".join(texts_of(exchange.json.value)) if exchange.json.valid else visible(raw)
    for what, found in internals_in(said, own)[:1]:
        yield Departure(f"no {what}", found[:120])
