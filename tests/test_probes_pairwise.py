"""The covering array: every two values of interacting parameters meet, in few requests that a right server answers."""

import itertools

import pytest
from mutations import DOCUMENTS, contract_of

from streamgauge.conformance.probes.laws.pairwise import MOST, pairwise, rows
from streamgauge.conformance.probes.probe import Probe
from streamgauge.contract.plain import plain_request


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_pair_is_met(document: str) -> None:
    """Each two properties that any row names are together in one, but a forced call and a form of the text."""
    (operation,) = contract_of(document).operations
    made = rows(operation)
    assert 4 <= len(made) <= MOST
    names = sorted({name for row in made for name in row} - {"tool_choice", "stream_options", "top_logprobs"})
    assert {"n", "stream", "logprobs", "stop"} <= set(names)
    for one, other in itertools.combinations(names, 2):
        assert any(one in row and other in row for row in made), (one, other)
        assert any(one in row and other not in row for row in made), (one, other)
        assert any(one not in row and other not in row for row in made), (one, other)
    assert not [row for row in made if row.get("tool_choice") == "required" and "response_format" in row]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_requests_are_valid(document: str) -> None:
    """Each row is a request that the document allows; those with a stop string wait for the text that it is taken from."""
    (operation,) = contract_of(document).operations
    plain = plain_request(operation, "m", max_tokens=1)
    assert all(operation.request.accepts({**plain, **row}) for row in rows(operation))
    probes = list(pairwise(operation, "m"))
    assert len({probe.id for probe in probes}) == len(rows(operation))
    assert all(
        isinstance(probe, Probe) is ("stop" not in row) for probe, row in zip(probes, rows(operation), strict=True)
    )
    assert sum(probe.tokens for probe in probes) < 2_500
