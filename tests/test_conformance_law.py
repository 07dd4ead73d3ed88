"""What a law makes of answers, refusals and failures of the server; and the honour table folded from it."""

import copy
import json
from typing import Any

import pytest
from mutations import DOCUMENTS
from transcripts import MODEL, contract_of, exchange, http, request, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.honour import honour_rows
from streamgauge.conformance.judge import Finding, cases_of, judge
from streamgauge.conformance.law import Law, laws_of
from streamgauge.conformance.probes.poisons import poisons
from streamgauge.conformance.unseen import UNSEEN, unseen
from streamgauge.contract.paths import head_of, request_paths
from streamgauge.outcomes import Honour, Outcome
from streamgauge.wire.exchange import Exchange

SPEC = "openai-chat"
STOP = {"stop": ["QX"]}
ERROR = json.dumps({"error": {"message": "no", "type": "t", "param": None, "code": None}}).encode()


def answered(number: int, text: str = "fine", **asked: Any) -> Exchange:
    """A whole answer with this text."""
    operation = contract_of(SPEC)[1]
    answer = copy.deepcopy(whole_answer(operation))
    answer["choices"][0]["message"]["content"] = text
    return exchange(operation, request(operation, **asked), http(200, json.dumps(answer).encode()), probe=str(number))


def failed(number: int, status: int, **asked: Any) -> Exchange:
    """An error with this status."""
    operation = contract_of(SPEC)[1]
    return exchange(operation, request(operation, **asked), http(status, ERROR), probe=str(number))


def finding(*exchanges: Exchange, check: str = "stop.honoured") -> Finding:
    """What a law finds."""
    contract, operation = contract_of(SPEC)
    cases = cases_of(exchanges, operation, contract, target="t", model=MODEL)
    return judge(CHECKS[check], cases, operation, contract, "t")


@pytest.mark.parametrize(
    ("exchanges", "outcome", "honour"),
    [
        ([answered(1, **STOP)], Outcome.PASS, Honour.HONOURED),
        ([answered(1, "a QX b", **STOP)], Outcome.IGNORED, Honour.IGNORED),
        ([answered(1, "a QX b", stop=None)], Outcome.NOT_RUN, None),
        ([answered(1, "a QX b", stop=[])], Outcome.NOT_RUN, None),
        ([failed(1, 400, **STOP)], Outcome.REFUSED, Honour.REFUSED),
        ([failed(1, 422, **STOP)], Outcome.REFUSED, Honour.REFUSED),
        # What is about the key, the path, the rate or the size says nothing about the property.
        *[([failed(1, status, **STOP)], Outcome.NOT_RUN, None) for status in (401, 403, 404, 405, 413)],
        ([failed(1, 429, **STOP)], Outcome.INCONCLUSIVE, None),
        # Something else that is unusual may be what is refused.
        ([failed(1, 400, **STOP, tools=[{"type": "function", "function": {"name": "f"}}])], Outcome.NOT_RUN, None),
        # A server that answers others fails for whoever asks for it.
        ([answered(1), failed(2, 500, **STOP)], Outcome.FAIL, Honour.SERVER_ERROR),
        # One that fails at times, or always, fails for another reason: error.no-5xx judges it.
        ([answered(1, **STOP), failed(2, 500, **STOP)], Outcome.PASS, Honour.HONOURED),
        ([failed(1, 500), failed(2, 500, **STOP)], Outcome.NOT_RUN, None),
    ],
)
def test_verdicts(exchanges: list[Exchange], outcome: Outcome, honour: Honour | None) -> None:
    """Answers are judged by the law, refusals and failures by what they can mean."""
    found = finding(*exchanges)
    assert found.outcome is outcome
    assert list(found.honour) == ([honour] if honour else [])


def test_what_a_property_needs_may_be_what_is_refused() -> None:
    """`top_logprobs` cannot be had where `logprobs` alone is refused: that refusal is about the latter."""
    both = failed(1, 400, logprobs=True, top_logprobs=2)
    assert finding(both, check="logprobs.top-count").outcome is Outcome.REFUSED
    assert finding(both, failed(2, 400, logprobs=True), check="logprobs.top-count").outcome is Outcome.NOT_RUN
    assert finding(both, answered(2, logprobs=True), check="logprobs.top-count").outcome is Outcome.REFUSED


def test_invalid_requests_ask_for_nothing() -> None:
    """A request that breaks the schema, or names another model, is none that a law judges."""
    assert finding(answered(1, "a QX b", **STOP, n="two")).outcome is Outcome.NOT_RUN
    assert finding(answered(1, "a QX b", **STOP, model="another")).outcome is Outcome.NOT_RUN


def rows(*exchanges: Exchange) -> dict[str, dict[str, Any]]:
    """The honour table by property."""
    contract, operation = contract_of(SPEC)
    cases = cases_of(exchanges, operation, contract, target="t", model=MODEL)
    findings = [judge(check, cases, operation, contract, "t").line() for check in CHECKS.values()]
    return {row["property"]: row for row in honour_rows(operation, contract, "t", cases, findings)}


def test_table() -> None:
    """Each property of the document has a row: of laws their verdict, of what nobody sees whether it was taken."""
    found = rows(
        answered(1, **STOP), answered(2, "a QX b", **STOP, seed=1), answered(3, user="u"), failed(4, 400, store=True)
    )
    assert list(found) == list(request_paths(contract_of(SPEC)[1]))
    assert (found["stop"]["honour"], found["stop"]["counts"]["ignored"]) == ("ignored", 1)
    assert found["stop"]["example"] == "test-2"
    assert (found["user"]["honour"], found["user"]["reason"]) == ("accepted", UNSEEN["user"])
    assert (found["store"]["honour"], found["store"]["laws"]) == ("refused", [])
    assert (found["metadata"]["honour"], found["metadata"]["reason"]) == ("not probed", UNSEEN["metadata"])
    assert found["response_format"]["honour"] == "not probed"
    assert found["response_format"]["reason"]


def test_a_request_that_kills_engines_says_nothing_of_its_property() -> None:
    """That a priority of 64 bits is refused, or fails, does not make `priority` a refused property."""
    contract, operation = contract_of("seekr-chat")
    (poison,) = (each.body for each in poisons(operation, MODEL) if each.id == "poison.priority")
    sent = exchange(operation, poison, http(500, b"{}"))
    cases = cases_of([sent], operation, contract, target="t", model=MODEL)
    found = {row["property"]: row for row in honour_rows(operation, contract, "t", cases, [])}

    assert found["priority"]["honour"] == "not probed"


def test_failures_at_what_is_beside_a_property_are_not_its_own() -> None:
    """Every request has messages: a server that fails at pictures takes them; at the pictures it fails."""
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
    found = rows(answered(1), failed(2, 500, messages=picture))
    assert found["messages"]["counts"] == {"accepted": 1}
    assert found["messages[].role"]["honour"] == "accepted"
    assert found["messages[].content[].image_url"]["honour"] == "server error"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_property_has_a_law_or_a_reason(document: str) -> None:
    """Nested ones, too; and what the table says about them exists."""
    contract, operation = contract_of(document)
    paths = request_paths(operation)
    lacking = [path for path in paths if not laws_of(operation, contract, path) and unseen(path) is None]
    assert lacking == []


def test_laws_and_reasons_name_properties_that_exist() -> None:
    """No law and no reason is about a property that no bundled document has."""
    known = {path for document in DOCUMENTS for path in request_paths(contract_of(document)[1])}
    named = {path for law in CHECKS.values() if isinstance(law, Law) for path in law.properties} | set(UNSEEN)
    assert named <= known


@pytest.mark.parametrize(
    ("path", "head"),
    [("stop", "stop"), ("stream_options.include_usage", "stream_options"), ("messages[].role", "messages")],
)
def test_heads(path: str, head: str) -> None:
    """A path begins with a top-level property."""
    assert head_of(path) == head
