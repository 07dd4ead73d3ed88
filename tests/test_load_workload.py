"""What is asked: bodies that the document allows, whose prompts no cache knows."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import UsageError
from streamgauge.load.dataset import Prompt
from streamgauge.load.lengths import Lengths
from streamgauge.load.mix import Part
from streamgauge.load.workload import Workload
from streamgauge.target import Target

NAMES = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat", "openai-completions")
CONTRACTS = {name: load_contracts([name])[0] for name in NAMES}


def workload(contract: Contract, *parts: Part, **changes: Any) -> Workload:
    """A workload of 64 words for the only operation of a contract, streamed, unless something else is said."""
    settings: dict[str, Any] = {
        "prompt_tokens": Lengths.constant(64),
        "max_tokens": Lengths.constant(32),
        "seed": 7,
        **changes,
    }
    mix = parts or (Part(contract.operations[0], stream=True),)
    return Workload(Target("t", "http://127.0.0.1:9", contract, "m"), mix, **settings)


def chat(**changes: Any) -> Workload:
    """A workload of Seekr's chat."""
    return workload(CONTRACTS["seekr-chat"], **changes)


def body_of(found: Workload, id: str = "1", index: int | None = None) -> dict[str, Any]:
    """The body of a request."""
    body: dict[str, Any] = json.loads(found.request(id, index).body)
    return body


def prompt_of(body: dict[str, Any]) -> str:
    """The prompt, whichever family the body is of."""
    prompt: str = body["messages"][0]["content"] if "messages" in body else body["prompt"]
    return prompt


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stream", [True, False])
def test_bodies_are_what_the_document_allows(name: str, stream: bool) -> None:
    """Each body is valid, asks for usage and full length where the document knows how, and leaves the sampling alone."""
    operation = CONTRACTS[name].operations[0]
    request = workload(CONTRACTS[name], Part(operation, stream)).request("0-1-2")
    body = json.loads(request.body)
    assert operation.request.problems(body) == []
    assert body.get("stream", False) is request.stream is stream
    assert ("stream_options" in body) is (stream and "stream_options" in operation.properties)
    assert body.get("ignore_eos") is (True if "ignore_eos" in operation.properties else None)
    assert "min_tokens" not in body
    assert body["max_tokens"] == request.max_tokens == 32
    assert "temperature" not in body
    assert request.url.startswith("http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("features", "members"),
    [
        ({}, {"ignore_eos": True}),
        ({"ignore_eos": "supported"}, {"ignore_eos": True}),
        ({"ignore_eos": "unsupported"}, {"min_tokens": 32}),
        ({"ignore_eos": "unsupported", "min_tokens": "unsupported"}, {}),
    ],
)
def test_full_length_is_asked_for_as_the_profile_says(features: dict[str, str], members: dict[str, Any]) -> None:
    """What the profile calls unsupported is not sent; min_tokens stands in for ignore_eos."""
    contract = CONTRACTS["seekr-chat"]
    contract = replace(contract, profile=replace(contract.profile, features=features))
    body = body_of(workload(contract))
    assert {name: body[name] for name in ("ignore_eos", "min_tokens") if name in body} == members


@pytest.mark.parametrize("words", [1, 2, 10, 11, 12, 22, 23, 64, 1000])
def test_prompts_have_the_length_that_was_asked_for(words: int) -> None:
    """About one token a word: so many words."""
    body = body_of(chat(prompt_tokens=Lengths.constant(words)))
    assert len(prompt_of(body).split()) == words


def test_lengths_are_drawn_for_each_request() -> None:
    """Prompts and answers of every length of the distribution, and no other."""
    found = chat(prompt_tokens=Lengths.parse("uniform:3..6"), max_tokens=Lengths.parse("uniform:8..9"))
    bodies = [body_of(found, str(index)) for index in range(100)]
    assert {len(prompt_of(body).split()) for body in bodies} == {3, 4, 5, 6}
    assert {body["max_tokens"] for body in bodies} == {8, 9}


def test_prompts_share_no_beginning() -> None:
    """No two requests begin alike, so no prefix cache answers for the model; the same seed and id give the same body."""
    ids = [f"{worker}-{user}-{count}" for worker in range(3) for user in range(5) for count in range(20)]
    first, again, other = (chat(seed=seed) for seed in (7, 7, 8))
    heads = {prompt_of(body_of(each, id)).split()[0] for each in (first, other) for id in ids}
    assert len(heads) == 2 * len(ids)
    assert [first.request(id).body for id in ids] == [again.request(id).body for id in reversed(ids)][::-1]


def test_a_shared_prefix_is_the_same_for_all() -> None:
    """So many words are alike, then each prompt is new; another seed has another prefix."""
    found = chat(shared_prefix=50)
    prompts = [prompt_of(body_of(found, str(index))).split() for index in range(20)]
    assert len({tuple(words[:50]) for words in prompts}) == 1
    assert len({words[50] for words in prompts}) == 20
    assert {len(words) for words in prompts} == {50 + 64}
    assert prompt_of(body_of(chat(shared_prefix=50, seed=8))).split()[:50] != prompts[0][:50]


def test_a_mix_goes_by_weight() -> None:
    """Three streamed chats for each whole completion: within four standard errors; each at its own URL."""
    contract = load_contracts(["seekr-chat", "seekr-completions"])[0]
    parts = [Part(contract.operations[0], stream=True, weight=3), Part(contract.operations[1], stream=False)]
    found = workload(contract, *parts)
    requests = [found.request(str(index)) for index in range(2000)]
    chats = [request for request in requests if request.operation.name == "seekr-chat"]
    assert all(request.stream is (request in chats) for request in requests[:100])
    assert len({request.url for request in requests}) == 2
    assert abs(len(chats) - 1500) < 4 * (2000 * 0.75 * 0.25) ** 0.5
    for request in requests[:20]:
        assert request.operation.request.problems(json.loads(request.body)) == []


TOLD = Prompt("", ({"role": "system", "content": "S"}, {"role": "user", "content": "Q"}), 5, 2)


def test_prompts_of_a_dataset_go_as_they_are_behind_a_number() -> None:
    """Messages keep their order and roles; the line's limit counts; every prompt is taken before one comes again."""
    found = chat(prompts=[Prompt("A b", (), None, 1), TOLD])
    bodies = [body_of(found, str(index), index) for index in range(4)]
    told = [body for body in bodies if len(body["messages"]) == 2]
    assert len(told) == 2
    for body in bodies:
        number, _, rest = prompt_of(body).partition(" ")
        assert len(number) == 12
        assert rest == ("S" if body in told else "A b")
        assert body["max_tokens"] == (5 if body in told else 32)
    assert [body["messages"][1] for body in told] == [TOLD.messages[1]] * 2
    assert len({prompt_of(body).split()[0] for body in bodies}) == 4
    assert body_of(found, "x") == body_of(found, "x")


def test_parts_of_a_content_stay_parts() -> None:
    """A first message whose content is a list gets one more text in front."""
    parts = [{"type": "text", "text": "Q"}]
    body = body_of(chat(prompts=[Prompt("", ({"role": "user", "content": parts},), None, 1)]))
    assert [part["type"] for part in body["messages"][0]["content"]] == ["text", "text"]
    assert body["messages"][0]["content"][1:] == parts


def test_messages_need_a_chat() -> None:
    """Text completions take none: the line is named."""
    with pytest.raises(UsageError, match="line 2"):
        workload(CONTRACTS["seekr-completions"], prompts=[TOLD])


def test_bodies_are_cheap() -> None:
    """A body of 64 words takes less than 60 microseconds: streams are read in the meantime."""
    found = chat()
    best = min(_seconds_each(found) for _ in range(7))
    assert best < 60e-6


def _seconds_each(found: Workload) -> float:
    began = time.process_time()
    for index in range(500):
        found.request(str(index))
    return (time.process_time() - began) / 500
