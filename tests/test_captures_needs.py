"""What a check declares to need is all that it looks at: without anything else of an exchange its verdict is the same."""

import dataclasses
from collections.abc import Callable, Iterator

import pytest
from test_conformance_checks import MATRIX, right
from transcripts import MODEL, contract_of, exchange, http, request

from streamgauge.conformance.check import CHECKS, Case
from streamgauge.conformance.judge import judge
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Credential, Ending, Evidence, Exchange
from streamgauge.wire.http import Read


def unframed(original: Exchange) -> Exchange:
    """The exchange as `curl -i` would have kept it."""
    response = original.response
    wire = original.wire[: response.head_size] + response.body
    return dataclasses.replace(
        original, wire=wire, reads=(Read(0.0, len(wire)),), holds=original.holds - {Evidence.FRAMING}
    )


def _times(original: Exchange) -> Exchange:
    reads = tuple(Read(read.time + 99.0, read.size) for read in original.reads)
    return dataclasses.replace(original, reads=reads)


def _bytes(original: Exchange) -> Exchange:
    head = original.wire[: original.response.head_size]
    wire = head + original.response.body.decode("utf-8-sig", "replace").encode()
    return dataclasses.replace(original, wire=wire, reads=(Read(0.0, len(wire)),))


def _ending(original: Exchange) -> Exchange:
    other = Ending.CLOSED if original.ending is Ending.COMPLETE else Ending.COMPLETE
    return dataclasses.replace(original, ending=other)


def _request(original: Exchange) -> Exchange:
    return dataclasses.replace(original, request=dataclasses.replace(original.request, body=b"", headers=()))


def _credential(original: Exchange) -> Exchange:
    unknown = dataclasses.replace(original.request, credential=Credential.UNKNOWN)
    return dataclasses.replace(original, request=unknown)


SCRAMBLES: dict[Evidence, Callable[[Exchange], Exchange]] = {
    Evidence.TIMES: _times,
    Evidence.BYTES: _bytes,
    Evidence.ENDING: _ending,
    Evidence.REQUEST: _request,
    Evidence.CREDENTIAL: _credential,
    Evidence.CLOCK: lambda original: dataclasses.replace(original, started=""),
}


def _corpus() -> Iterator[tuple[str, Exchange]]:
    operation = contract_of("seekr-chat")[1]
    for each in right(operation):
        yield f"right-{each.probe}", each
    for name, (make, _) in MATRIX.items():
        yield name, make(operation)


CORPUS = {name: each for name, each in _corpus() if each.wire and not each.response.protocol_error}


def _outcome(check: str, each: Exchange) -> Outcome:
    contract, operation = contract_of("seekr-chat")
    return judge(CHECKS[check], [Case(each, operation, contract, MODEL)], operation, contract, "t").outcome


def _comparable(evidence: Evidence, each: Exchange) -> bool:
    """
    Without the request an answer counts as what it is; without the key's form a 401 or 403 says nothing, and all else that
    the key was right.
    """
    if evidence is Evidence.REQUEST:
        return each.status != 200 or (isinstance(each.sent, dict) and each.is_stream == each.wants_stream)
    lacks_key = each.request.credential in (Credential.NONE, Credential.WRONG)
    return evidence is not Evidence.CREDENTIAL or (each.status not in (401, 403) and not lacks_key)


@pytest.mark.parametrize("evidence", SCRAMBLES)
@pytest.mark.parametrize("name", CORPUS)
def test_undeclared_evidence_changes_no_verdict(name: str, evidence: Evidence) -> None:
    """DESIGN: an exchange states what it holds, a check states what it needs."""
    full = unframed(CORPUS[name])
    if not _comparable(evidence, full):
        pytest.skip("the rule for this case is another one")
    scrambled = dataclasses.replace(SCRAMBLES[evidence](full), holds=full.holds - {evidence})

    for id_, check in CHECKS.items():
        if evidence not in check.needs:
            assert _outcome(id_, scrambled) is _outcome(id_, full), id_


@pytest.mark.parametrize("name", CORPUS)
def test_framing_changes_no_verdict_of_checks_that_do_not_need_it(name: str) -> None:
    """The body without its transfer coding is the same body."""
    full = CORPUS[name]
    if full.response.complete != (full.ending is Ending.COMPLETE):
        pytest.skip("curl would not have called this complete")
    if full.rate_limited:
        pytest.skip("a captured 429 is judged by a rule of its own")
    if name == "model_unknown_400":
        pytest.skip("whether the model of somebody else's request exists is not known")

    for id_, check in CHECKS.items():
        if Evidence.FRAMING not in check.needs:
            assert _outcome(id_, unframed(full)) is _outcome(id_, full), id_


@pytest.mark.parametrize("evidence", Evidence)
def test_lacking_evidence_is_told(evidence: Evidence) -> None:
    """A check that needs what no exchange holds is not-run, and says what was missing."""
    for id_, check in CHECKS.items():
        if evidence in check.needs:
            contract, operation = contract_of("seekr-chat")
            lacking = [dataclasses.replace(each, holds=frozenset(Evidence) - {evidence}) for each in right(operation)]
            cases = [Case(each, operation, contract, MODEL) for each in lacking]
            finding = judge(check, cases, operation, contract, "t")

            assert finding.outcome in (Outcome.NOT_RUN, Outcome.NOT_APPLICABLE), id_
            assert finding.outcome is Outcome.NOT_APPLICABLE or "the captures do not hold" in finding.reason


@pytest.mark.parametrize("status", [401, 403])
def test_refused_request_with_unknown_key_says_nothing(status: int) -> None:
    """Nobody knows whether the key was sent: no `request.*` check takes the refusal for one of the request."""
    contract, operation = contract_of("seekr-chat")
    body = b'{"error": {"message": "no", "type": "t", "code": 401}}'
    for sent in (request(operation), request(operation, model="other"), b"{"):
        each = exchange(operation, sent, http(status, body), credential=Credential.UNKNOWN)
        case = Case(each, operation, contract, MODEL)
        for id_, check in CHECKS.items():
            if check.topic == "request":
                assert judge(check, [case], operation, contract, "t").outcome in (
                    Outcome.NOT_RUN,
                    Outcome.NOT_APPLICABLE,
                ), id_


def test_captured_rate_limit_makes_nothing_inconclusive() -> None:
    """A 429 to somebody else's request is no probe of ours that has to be repeated."""
    contract, operation = contract_of("seekr-chat")
    each = exchange(operation, request(operation), http(429, b"{}"))
    captured = dataclasses.replace(each, holds=frozenset(Evidence) - {Evidence.FRAMING})

    def outcome(of: Exchange) -> Outcome:
        return judge(CHECKS["response.json"], [Case(of, operation, contract, MODEL)], operation, contract, "t").outcome

    assert (outcome(each), outcome(captured)) == (Outcome.INCONCLUSIVE, Outcome.NOT_RUN)
