"""The plain request said otherwise, and what a right server refuses: each probe is what it is said to be."""

import pytest
from transcripts import contract_of

from streamgauge.catalog import DOCUMENTS
from streamgauge.conformance.probes.forms import forms
from streamgauge.conformance.probes.probe import Probe
from streamgauge.conformance.probes.refusals import refusals
from streamgauge.conformance.probes.variants import variants

MODEL = "tiny"


def _variants(document: str) -> dict[str, Probe]:
    contract, operation = contract_of(document)
    return {probe.id: probe for probe in variants(operation, MODEL, contract.profile)}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_variant_is_valid(document: str) -> None:
    """The document takes each of them, so a refusal says something of the server."""
    operation = contract_of(document)[1]

    assert all(operation.request.accepts(probe.body) for probe in _variants(document).values())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_plainest_request_comes_last_and_alone(document: str) -> None:
    """A model, a text and a limit; late, so that it shows whether the server has outlived the others."""
    plainest = _variants(document)["form.plainest"]

    assert plainest.late
    assert sorted(plainest.body) == sorted(["model", "max_tokens", *plainest.body.keys() & {"messages", "prompt"}])
    assert [probe for probe in _variants(document).values() if probe.late] == [plainest]


def test_the_plainest_request_leaves_out_what_the_document_calls_optional() -> None:
    """DeepInfra's page lists `x-deepinfra-source` as a header field that may be null; the profile sends it otherwise."""
    assert _variants("deepinfra-completions")["form.plainest"].headers == (("x-deepinfra-source", None),)
    assert _variants("seekr-chat")["form.plainest"].headers == ()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_variants_differ_from_a_form_by_what_they_add(document: str) -> None:
    """Checks compare them with the request that lacks just that: it is sent as well."""
    operation = contract_of(document)[1]
    sent = {probe.id: probe.body for probe in forms(operation, MODEL)}
    found = _variants(document)
    nulls = found["form.nulls"].body

    assert {name: value for name, value in nulls.items() if value is not None} == sent["form.basic"]
    nested = found["form.unknown-nested-stream"].body
    assert nested != sent["form.basic-stream"]
    assert nested["stream_options"].pop("x_streamgauge") == "text"
    for message in nested.get("messages", []):
        assert message.pop("x_streamgauge") == "text"
    assert nested == sent["form.basic-stream"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_refusals_are_free_and_wrong(document: str) -> None:
    """Each breaks the schema, names no model that exists, or is no JSON object: a right server generates nothing."""
    operation = contract_of(document)[1]
    for probe in refusals(operation, MODEL):
        body = probe.body
        right = isinstance(body, dict) and body.get("model") == MODEL and operation.request.accepts(body)
        assert probe.free, probe.id
        assert not right or probe.method != operation.method, probe.id


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_required_property_is_missing_once(document: str) -> None:
    """DeepInfra's document requires model and prompt, OpenAI's model and messages or prompt, Seekr's chat messages."""
    operation = contract_of(document)[1]
    bodies = [probe.body for probe in refusals(operation, MODEL) if isinstance(probe.body, dict)]

    for name in operation.required:
        assert any(name not in body and body.keys() >= set(operation.required) - {name} for body in bodies), name


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_not_called_json_asks_what_nobody_else_asks(document: str) -> None:
    """So that its status is compared with no other request's."""
    probes = list(refusals(contract_of(document)[1], MODEL))
    otherwise = [probe for probe in probes if probe.headers]

    assert [dict(probe.headers)["content-type"] for probe in otherwise] == [None, "application/x-www-form-urlencoded"]
    assert all([other.content for other in probes].count(probe.content) == 1 for probe in otherwise)
