"""Secrets that are whole again only in the words of a check."""

import dataclasses
import json

from transcripts import MODEL, chunked, chunks, contract_of, exchange, request, sse

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.blotted import blotted
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.exploring.oracle import Oracle
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.redaction import Redactor
from streamgauge.wire.exchange import Exchange

KEY = "sk-0123456789-abcdefghij"
CONTRACT, CHAT = contract_of("seekr-chat")
CHECK = "structured.json-object"


def streamed() -> Exchange:
    """A server that says the key where JSON was asked for, four characters in each event."""
    first, one, *_, last, counted = chunks(CHAT)
    said = [
        {**one, "choices": [{"index": 0, "delta": {"content": KEY[at : at + 4]}, "finish_reason": None}]}
        for at in range(0, len(KEY), 4)
    ]
    last["choices"][0]["finish_reason"] = "stop"
    sent = request(CHAT, response_format={"type": "json_object"}, stream=True, stream_options={"include_usage": True})
    return exchange(CHAT, sent, chunked(sse([first, *said, last, counted])))


def test_no_finding_holds_a_secret() -> None:
    """No event of the stream has the key, the words of the check would; its length stays."""
    told = streamed()
    cases = cases_of([told], CHAT, CONTRACT, target="t", model=MODEL)
    finding = judge(CHECKS[CHECK], cases, CHAT, CONTRACT, "t")
    bare = json.dumps(finding.line())

    assert KEY.encode() not in told.wire
    assert KEY in bare
    assert json.dumps(blotted(finding, Redactor([KEY])).line()) == bare.replace(KEY, "*" * len(KEY))


def test_no_explored_failure_holds_a_secret() -> None:
    """What an exploration tells of a failing example is what the check says."""
    oracle = Oracle([CHECKS[CHECK]], CHAT, CONTRACT, target="t", model=MODEL, redactor=Redactor([KEY]))
    found = oracle.departures([dataclasses.replace(streamed(), id="new")])

    assert found.keys() == {CHECK}
    assert KEY not in json.dumps(found[CHECK].line())
