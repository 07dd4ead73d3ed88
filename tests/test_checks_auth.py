"""`auth.*` on hand-made exchanges: what each check takes for right, what for wrong, and where it keeps silent."""

import dataclasses
import json
from typing import Any

import pytest
from transcripts import MODEL, contract_of, departures, exchange, http, outcomes, request, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.catalog import DOCUMENTS
from streamgauge.conformance.plan import plan
from streamgauge.conformance.probes.probe import Probe
from streamgauge.outcomes import Outcome
from streamgauge.signing import WRONG_KEY
from streamgauge.target import Target
from streamgauge.wire.exchange import Credential, Exchange

RAW, BEARER = "seekr-chat", "openai-chat"
LISTS_X_API_KEY = "deepinfra-completions"
KEY = "sk-not-a-real-key"

FORMS = [each for each in Credential if not each.usual and not each.keyless]


def answer(spec: str, status: int = 200, text: str = "no", id_: str = "x-1") -> bytes:
    """An answer of this status: the right one of an operation, or an error in the document's form."""
    operation = contract_of(spec)[1]
    code: Any = status if spec.startswith("seekr") else None
    error = {"error": {"message": text, "type": "authentication_error", "param": None, "code": code}}
    if spec.startswith("seekr"):
        del error["error"]["param"]
    return http(status, json.dumps({**whole_answer(operation), "id": id_} if status == 200 else error).encode())


def asked(spec: str, credential: Credential, status: int, *, prompt: str = "", wire: bytes = b"") -> Exchange:
    """A right request in one form of the key, and its answer; of each form with a prompt of its own."""
    operation = contract_of(spec)[1]
    said = prompt or str(credential)
    prompted = {"messages": [{"role": "user", "content": said}]} if operation.family == "chat" else {"prompt": said}
    body = request(operation, **prompted)
    probe = f"{credential}-{said}"
    wire = wire or answer(spec, status, id_=f"x-{probe}")
    return exchange(operation, body, wire, credential=credential, probe=probe)


def sound(spec: str) -> list[Exchange]:
    """The right key opens, no key and a made-up one do not."""
    return [
        asked(spec, Credential.VALID, 200),
        asked(spec, Credential.NONE, 401),
        asked(spec, Credential.WRONG, 401),
    ]


def found(spec: str, *more: Exchange) -> set[str]:
    """Ids of the checks that depart in a sound run with these exchanges."""
    return departures(*contract_of(spec), *sound(spec), *more)


# -- what departs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "credential", "status", "expected"),
    [
        (BEARER, Credential.NONE, 200, {"auth.missing"}),
        (BEARER, Credential.EMPTY, 200, {"auth.missing"}),
        (BEARER, Credential.EMPTY, 400, {"auth.missing"}),
        (BEARER, Credential.EMPTY, 403, {"auth.missing"}),
        (BEARER, Credential.WRONG, 200, {"auth.wrong"}),
        (BEARER, Credential.WRONG, 400, {"auth.wrong"}),
        (BEARER, Credential.ALTERED, 200, {"auth.wrong"}),
        (RAW, Credential.LONGER, 200, {"auth.wrong"}),
        (RAW, Credential.X_API_KEY, 200, {"auth.other-place"}),
        (RAW, Credential.XI_API_KEY, 200, {"auth.other-place"}),
        (BEARER, Credential.API_KEY, 200, {"auth.further-place"}),
        (LISTS_X_API_KEY, Credential.API_KEY, 200, {"auth.further-place"}),
        (RAW, Credential.QUERY, 200, {"auth.query"}),
        (BEARER, Credential.QUERY, 200, {"auth.query"}),
        (RAW, Credential.BEARER, 200, {"auth.other-scheme"}),
        (BEARER, Credential.RAW, 200, {"auth.other-scheme"}),
        (BEARER, Credential.SCHEME_LOWER, 401, {"auth.scheme-case"}),
        (BEARER, Credential.SCHEME_UPPER, 403, {"auth.scheme-case"}),
        (BEARER, Credential.SPACED, 401, {"auth.white-space"}),
        (RAW, Credential.TWO_HEADERS, 200, {"auth.two-headers"}),
    ],
)
def test_wrong_answers_are_found(spec: str, credential: Credential, status: int, expected: set[str]) -> None:
    """Fault catalogue 3.2: each row of the matrix has its check, and no other departs."""
    assert found(spec, asked(spec, credential, status)) == expected


def test_cached_prompt_is_found() -> None:
    """Fault catalogue K4: what was just answered to the right key is served to nobody else."""
    known = asked(BEARER, Credential.VALID, 200, prompt="known")
    leaked = asked(BEARER, Credential.NONE, 200, prompt="known")

    assert found(BEARER, known, leaked) == {"auth.cached-prompt"}
    assert found(BEARER, known, asked(BEARER, Credential.NONE, 401, prompt="known")) == set()


def test_cached_stream_is_found() -> None:
    """The streamed form of a prompt that was answered whole is the same prompt."""
    contract, operation = contract_of(BEARER)
    known = exchange(operation, request(operation), answer(BEARER), probe="known")
    body = request(operation, stream=True)
    leaked = exchange(operation, body, answer(BEARER), credential=Credential.NONE, probe="leaked")

    found = outcomes(contract, operation, *sound(BEARER), known, leaked)

    assert (found["auth.cached-prompt"], found["auth.missing"]) == (Outcome.FAIL, Outcome.PASS)


@pytest.mark.parametrize("extra", ["", "WWW-Authenticate: \r\n"])
def test_401_without_a_challenge_is_found(extra: str) -> None:
    """RFC 9110, section 15.5.2."""
    wire = answer(BEARER, 401).replace(b"WWW-Authenticate: Bearer\r\n", extra.encode())

    assert found(BEARER, asked(BEARER, Credential.NONE, 401, wire=wire)) == {"auth.challenge"}


@pytest.mark.parametrize("text", [f"Incorrect API key provided: {WRONG_KEY}", f"no such key: Bearer {WRONG_KEY}."])
def test_echo_of_the_made_up_key_is_found(text: str) -> None:
    """A mistyped key is nearly a key: whoever repeats the one repeats the other."""
    wrong = asked(BEARER, Credential.WRONG, 401, wire=answer(BEARER, 401, text))

    assert found(BEARER, wrong) == {"auth.key-echoed"}


@pytest.mark.parametrize("credential", [Credential.ALTERED, Credential.QUERY, Credential.X_API_KEY])
def test_echo_of_the_right_key_is_found_in_every_form(credential: Credential) -> None:
    """The recorder blots out the right key, and what is nearly it, whatever the form."""
    echoed = dataclasses.replace(asked(BEARER, credential, 401), redacted=((60, 77),))

    assert found(BEARER, echoed) == {"auth.key-echoed"}


# -- what passes, and what says nothing --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "credential", "status", "check"),
    [
        (RAW, Credential.EMPTY, 401, "auth.missing"),
        (LISTS_X_API_KEY, Credential.NONE, 403, "auth.missing"),  # its document lists no 401
        (BEARER, Credential.ALTERED, 401, "auth.wrong"),
        (BEARER, Credential.LONGER, 401, "auth.wrong"),
        (RAW, Credential.X_API_KEY, 401, "auth.other-place"),
        (RAW, Credential.X_API_KEY, 400, "auth.other-place"),
        (BEARER, Credential.X_API_KEY, 403, "auth.further-place"),
        (BEARER, Credential.QUERY, 404, "auth.query"),  # an unknown query is an unknown place
        (RAW, Credential.BEARER, 401, "auth.other-scheme"),
        (BEARER, Credential.SCHEME_LOWER, 200, "auth.scheme-case"),
        (BEARER, Credential.SPACED, 200, "auth.white-space"),
        (BEARER, Credential.TWO_HEADERS, 400, "auth.two-headers"),
    ],
)
def test_right_answers_pass(spec: str, credential: Credential, status: int, check: str) -> None:
    """What a right server may answer."""
    contract, operation = contract_of(spec)

    assert outcomes(contract, operation, *sound(spec), asked(spec, credential, status))[check] is Outcome.PASS


@pytest.mark.parametrize("text", ["Incorrect API key provided: stre...0000", "no key with these 26 characters"])
def test_parts_of_a_key_may_come_back(text: str) -> None:
    """Its first and last characters tell the caller which key was wrong, and nobody else anything."""
    assert found(BEARER, asked(BEARER, Credential.WRONG, 401, wire=answer(BEARER, 401, text))) == set()


@pytest.mark.parametrize("credential", [Credential.X_API_KEY, Credential.XI_API_KEY])
def test_header_that_the_document_lists_may_authenticate(credential: Credential) -> None:
    """DeepInfra's page lists `x-api-key` and `xi-api-key` as parameters: taken or not, nothing is said."""
    for status in (200, 401):
        assert found(LISTS_X_API_KEY, asked(LISTS_X_API_KEY, credential, status)) == set()


@pytest.mark.parametrize("spec", DOCUMENTS)
@pytest.mark.parametrize(
    "let_in",
    [
        pytest.param(lambda spec: [asked(spec, Credential.NONE, 200)], id="everybody"),
        pytest.param(lambda spec: [asked(spec, Credential.WRONG, 200)], id="every-key"),
    ],
)
def test_where_everybody_gets_in_the_forms_say_nothing(spec: str, let_in: Any) -> None:
    """One cause, one finding: `auth.missing` or `auth.wrong` has it."""
    every = [asked(spec, form, 200) for form in FORMS]

    assert found(spec, *every, *let_in(spec)) in ({"auth.missing"}, {"auth.wrong"})


@pytest.mark.parametrize("spec", DOCUMENTS)
@pytest.mark.parametrize("status", [200, 401])
def test_where_the_right_key_is_refused_the_forms_say_nothing(spec: str, status: int) -> None:
    """The profile may know the wrong form: then the others are no departures but the way to find it out."""
    contract, operation = contract_of(spec)
    refused = [asked(spec, Credential.VALID, 401), asked(spec, Credential.NONE, 401)]

    assert departures(contract, operation, *refused, *[asked(spec, form, status) for form in FORMS]) == {
        "auth.accepted"
    }


def test_rate_limited_form_is_inconclusive() -> None:
    """429 tells nothing about the key."""
    contract, operation = contract_of(BEARER)
    limited = asked(BEARER, Credential.QUERY, 429)

    assert outcomes(contract, operation, *sound(BEARER), limited)["auth.query"] is Outcome.INCONCLUSIVE


def test_refusal_of_another_form_is_none_of_the_request() -> None:
    """A 401 to the key in another place says nothing about the request's body."""
    for form in FORMS:
        judged = outcomes(*contract_of(RAW), asked(RAW, form, 401))
        assert judged["request.valid"] is Outcome.NOT_RUN, form


# -- the probes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", DOCUMENTS)
def test_only_the_last_probes_ask_what_was_answered(spec: str) -> None:
    """A cache in front of the key shows in `auth.cached-prompt` alone: no other probe without a key asks what another asks."""
    target = Target("t", "http://127.0.0.1", contract_of(spec)[0], model=MODEL, key=KEY)
    planned = [item.probe for item in plan([target]).planned if not item.probe.id.startswith("generated")]
    probes = [probe for probe in planned if isinstance(probe, Probe)]
    usual = {probe.content for probe in probes if probe.credential is None}
    strangers = [probe for probe in probes if probe.credential is not None and isinstance(probe.body, dict)]

    assert {probe.id for probe in strangers if probe.content in usual} == {
        "auth.answered-before",
        "auth.answered-before-stream",
    }
    assert all(probe.late == (probe.content in usual) for probe in strangers)


@pytest.mark.parametrize("spec", DOCUMENTS)
def test_what_a_right_server_refuses_is_free(spec: str) -> None:
    """Probes without the right key are always sent; those that may be accepted cost what one token costs."""
    target = Target("t", "http://127.0.0.1", contract_of(spec)[0], model=MODEL, key=KEY)
    probes = [item.probe for item in plan([target], select=("auth",)).planned]

    assert all(probe.free == bool(probe.credential and probe.credential.keyless) for probe in probes)
    assert sum(probe.tokens for probe in probes) < 500
