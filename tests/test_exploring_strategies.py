"""What explorations draw: always what the document allows, and the same for the same seed."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from transcripts import MODEL, contract_of, exchange, http, request, whole_answer

from streamgauge.catalog import DOCUMENTS
from streamgauge.conformance.exploring.exploration import EXPLORATIONS, Exploration, explorations_of, shares
from streamgauge.conformance.exploring.strategies.material import Answered, Material, answered_in
from streamgauge.conformance.exploring.strategies.prompts import texts
from streamgauge.conformance.exploring.strategies.schemas import MET, objects
from streamgauge.contract.contract import COMPLETIONS
from streamgauge.contract.plain import plain_request

TEXT = "größe 東京 🙂 one two"
CASES = [(document, each) for document in DOCUMENTS for each in explorations_of(contract_of(document)[1])]


def material_of(document: str) -> Material:
    """As after a request that was answered with :data:`TEXT`, and some of the covering array that departed."""
    _, operation = contract_of(document)
    body = plain_request(operation, MODEL, max_tokens=8)
    departed = tuple({**body, "max_tokens": limit} for limit in range(9, 18))
    return Material(operation, MODEL, (Answered(body, TEXT),), departed)


def drawn(exploration: Exploration, material: Material, number: int) -> list[dict[str, Any]]:
    """The bodies that one seed draws."""
    found: list[dict[str, Any]] = []

    @seed(number)
    @settings(max_examples=8, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(exploration.bodies(material))
    def draw(body: dict[str, Any]) -> None:
        found.append(body)

    draw()
    return found


def _ids(case: Any) -> str:
    return case.id if isinstance(case, Exploration) else str(case)


@pytest.mark.parametrize(("document", "exploration"), CASES, ids=_ids)
def test_every_body_is_allowed_by_its_document(document: str, exploration: Exploration) -> None:
    """A right server has no reason to refuse one; and each has a limit of tokens, so that its cost is known."""
    material = material_of(document)
    for body in drawn(exploration, material, 1):
        assert material.operation.request.problems(body) == []
        assert body["max_tokens"] <= 64
        json.dumps(body, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("exploration", EXPLORATIONS, ids=_ids)
def test_same_seed_draws_the_same(exploration: Exploration) -> None:
    """And another seed draws something else."""
    material = material_of("seekr-chat")
    first = drawn(exploration, material, 1)

    assert first == drawn(exploration, material, 1)
    assert first != drawn(exploration, material, 2)


@given(objects())
@settings(max_examples=50)
def test_every_schema_can_be_met(met: MET) -> None:
    """Its own instance is valid by jsonschema and by jsonschema-rs; an empty object is not, since all is required."""
    schema, instance = met
    Draft202012Validator.check_schema(schema)

    assert Draft202012Validator(schema).is_valid(instance)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(instance)
    assert not Draft202012Validator(schema).is_valid({})


@given(texts())
def test_prompts_say_something_in_utf8(text: str) -> None:
    """No half of a surrogate pair (RFC 3629, section 3), and something is left when the white space around it is gone."""
    assert text.encode("utf-8").decode("utf-8") == text
    assert text.strip()


def test_stop_strings_are_out_of_the_answer() -> None:
    """At least some are, and they come alone and in lists, across the borders of words, with several choices and streamed."""
    explorations = {each.id: each for each in EXPLORATIONS}
    bodies = [body for at in range(6) for body in drawn(explorations["explore.stops"], material_of("seekr-chat"), at)]
    lists = [[body["stop"]] if isinstance(body["stop"], str) else body["stop"] for body in bodies]

    assert all(1 <= len(stops) <= 4 for stops in lists)
    assert sum(any(stop in TEXT for stop in stops) for stops in lists) > len(lists) / 2
    assert any(isinstance(body["stop"], str) for body in bodies)
    assert any(" " in stop.strip() for stops in lists for stop in stops)
    assert any(body.get("n") == 2 for body in bodies)
    assert any(body.get("stream") for body in bodies)


def test_histories_are_conversations() -> None:
    """Who speaks takes turns, every result has its call, every call its results and its tool, and the model is to speak next."""
    explorations = {each.id: each for each in EXPLORATIONS}
    bodies = [
        body for at in range(6) for body in drawn(explorations["explore.histories"], material_of("openai-chat"), at)
    ]
    contents: set[str] = set()
    for body in bodies:
        messages = body["messages"]
        assert messages[-1]["role"] in ("user", "tool")
        speakers = [each["role"] for each in messages if each["role"] in ("user", "assistant")]
        called = [call for each in messages for call in each.get("tool_calls", ())]
        told = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
        assert told == [call["id"] for call in called]
        assert {call["function"]["name"] for call in called} <= {
            tool["function"]["name"] for tool in body.get("tools", ())
        }
        assert not any(one == other == "user" for one, other in itertools.pairwise(speakers))
        contents |= {repr(each.get("content", "absent")) for each in messages if "tool_calls" in each}

    assert contents == {"None", "'absent'", "''"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 1),
        ({"max_tokens": 4}, 1),
        ({"model": "no-such-model"}, 0),
        ({"model": ...}, 0),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, 0),
        ({"max_tokens": 0}, 0),
        ({"temperature": 1}, 0),
        ({"stop": "x"}, 0),
    ],
)
def test_material_is_what_was_answered_rightly(changes: dict[str, Any], expected: int) -> None:
    """A server may answer what it should have refused: nothing is drawn from that."""
    operation = contract_of("openai-chat")[1]
    answer = http(200, json.dumps(whole_answer(operation)).encode())
    sent = exchange(operation, request(operation, **changes), answer)

    assert len(answered_in([sent], operation, MODEL)) == expected


def _alone(choose: Callable[[Exploration], bool]) -> list[str]:
    return [each.id for each in EXPLORATIONS if choose(each)]


def test_who_is_explored_how() -> None:
    """Tools and histories are of chats; an operation without stop strings or schemas is not explored for them."""
    for document in DOCUMENTS:
        _, operation = contract_of(document)
        ids = [each.id for each in explorations_of(operation)]
        assert ("explore.tools" in ids) is (operation.family != COMPLETIONS)
        assert ("explore.schemas" in ids) is ("response_format" in operation.properties)
    _, chat = contract_of("seekr-chat")
    assert [each.id for each in explorations_of(chat, ["explore"])] == _alone(lambda each: True)
    assert [each.id for each in explorations_of(chat, ["explore.tools"])] == ["explore.tools"]
    assert explorations_of(chat, ["form", "refusal"]) == []


@given(st.integers(0, 10**6))
def test_shares_leave_something_for_making_small(tokens: int) -> None:
    """What explorations draw with is fixed beforehand, and never all that there is."""
    found = shares(EXPLORATIONS, tokens)

    assert sum(found.values()) <= 0.6 * tokens
    assert found.keys() == {each.id for each in EXPLORATIONS}


def test_nothing_to_draw_from() -> None:
    """Without an earlier answer there are no stop strings; that is an empty strategy, not an error."""
    _, operation = contract_of("seekr-chat")
    explorations = {each.id: each for each in EXPLORATIONS}

    assert explorations["explore.stops"].bodies(Material(operation, MODEL)).is_empty
