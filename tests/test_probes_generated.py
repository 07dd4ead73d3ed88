"""Schemathesis' cases as probes: of every kind, valid or not by the contract, affordable, harmless, the same each time."""

import fcntl
import gzip
import itertools
import json
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from hypothesis.configuration import storage_directory
from hypothesis.internal.charmap import intervals_from_codec
from in_memory import send_all
from transcripts import MODEL, contract_of

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.judge import cases_of, judge
from streamgauge.conformance.plan import Planned
from streamgauge.conformance.probes import drawing
from streamgauge.conformance.probes.drawing import Task, begin, drawing_of
from streamgauge.conformance.probes.generated import DANGEROUS, LIMIT, LONGEST, generated
from streamgauge.conformance.probes.probe import Probe
from streamgauge.conformance.probes.sensible import affordable, names_a_url, sensible, within_bounds
from streamgauge.conformance.runner import throwaway_hypothesis
from streamgauge.contract.contract import Operation, load_contracts
from streamgauge.contract.plain import plain_request
from streamgauge.errors import CannotTellError
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.target import Target
from streamgauge.wire.json import read_json

SPECS = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat", "openai-completions")
NOW = 1_800_000_000.5


def _operation(spec: str) -> Operation:
    return contract_of(spec)[1]


def _kind(probe: Probe) -> str:
    return probe.id.removeprefix("generated.").rpartition("-")[0]


def _bodies(spec: str, *kinds: str) -> list[Any]:
    return [probe.body for probe in generated(_operation(spec), MODEL) if _kind(probe) in kinds]


# -- what they are -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_no_case_costs_much_or_does_harm(spec: str) -> None:
    """No case asks for many tokens or choices, names a dangerous property, or would make the target call somebody."""
    for probe in generated(_operation(spec), MODEL):
        if not isinstance(probe.body, dict):
            continue
        for name in ("max_tokens", "max_completion_tokens", "min_tokens", "n", "best_of"):
            value = probe.body.get(name)
            assert not isinstance(value, int) or value <= LIMIT, (probe.id, name)
        assert not set(DANGEROUS) & set(probe.body)
        assert not names_a_url(probe.body)
        assert not probe.id.startswith("generated.fuzzed-valid") or len(json.dumps(probe.body)) <= LONGEST


@pytest.mark.parametrize("spec", SPECS)
def test_whether_a_case_is_valid_is_computed(spec: str) -> None:
    """What is called broken breaks the schema; all else keeps it, and only what names the target's model is not free."""
    operation = _operation(spec)
    for probe in generated(operation, MODEL):
        if _kind(probe) == "method":
            continue
        body = read_json(probe.body).value if isinstance(probe.body, bytes) else probe.body
        assert operation.request.accepts(body) is not _kind(probe).endswith("broken"), probe.id
        assert probe.free is not (isinstance(body, dict) and body.get("model") == MODEL and "broken" not in probe.id), (
            probe.id
        )


@pytest.mark.parametrize("spec", SPECS)
def test_there_are_cases_of_every_kind_each_once(spec: str) -> None:
    """Coverage and random ones, as they are, made sensible and broken; among the broken ones what is no JSON at all."""
    probes = list(generated(_operation(spec), MODEL))
    counts = {kind: sum(_kind(probe) == kind for probe in probes) for kind in map(_kind, probes)}
    sent = [(probe.method, probe.headers, probe.content) for probe in probes]

    assert len(set(sent)) == len(sent)
    assert len({probe.id for probe in probes}) == len(probes)
    assert min(counts[kind] for kind in ("broken", "unchanged", "valid")) > 50, counts
    assert min(counts[f"fuzzed-{kind}"] for kind in ("broken", "unchanged", "valid")) > 5, counts
    assert any(isinstance(probe.body, bytes) and probe.body for probe in probes)
    assert any(isinstance(probe.body, list) for probe in probes)


@pytest.mark.parametrize("spec", SPECS)
def test_free_ones_come_first(spec: str) -> None:
    """What a right server refuses is sent however small the budget is; of the others the cheap ones come first."""
    probes = list(generated(_operation(spec), MODEL))
    free = [probe.free for probe in probes]
    valid = [probe.tokens for probe in probes if _kind(probe) == "valid"]

    assert free == sorted(free, reverse=True)
    assert valid == sorted(valid)


@pytest.mark.parametrize("spec", ["seekr-chat", "seekr-completions"])
def test_one_null_does_not_void_all_cases(spec: str) -> None:
    """Hardly any of the cases that name many properties at once hold a null, which a server might not take; small ones do."""
    valid = _bodies(spec, "valid")
    large = [None in body.values() for body in valid if len(body) * 3 > len(_operation(spec).properties)]

    assert len(large) > 50
    assert sum(large) * 10 < len(large)
    assert any(None in body.values() for body in valid if len(body) < 6)


def test_no_default_of_an_idle_option_voids_all_cases() -> None:
    """
    Seekr's chat document has defaults for options of log-probabilities and tools: few cases name one alone.

    llama.cpp refuses `top_logprobs: 0` without logprobs, OpenAI `parallel_tool_calls` and `tool_choice` without tools.
    """
    bodies = [body for body in _bodies("seekr-chat", "valid", "broken") if isinstance(body, dict)]
    pairs = {"top_logprobs": "logprobs", "tool_choice": "tools", "parallel_tool_calls": "tools"}
    idle = {name: [body[name] for body in bodies if name in body and not body.get(of)] for name, of in pairs.items()}

    for name, values in idle.items():
        assert 0 < len(values) * 10 < len(bodies), name
    assert any(value is False for value in idle["top_logprobs"])


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ({}, {"model": MODEL, "prompt": "Count from one to five."}),
        ({"model": "AAA", "prompt": "x"}, {"model": MODEL, "prompt": "x"}),
        ({"model": 5, "prompt": [1]}, {"model": 5, "prompt": [1]}),
        ({"model": None, "prompt": ""}, {"model": MODEL, "prompt": "Count from one to five."}),
    ],
)
def test_sensible_is_what_names_a_model_and_a_prompt(body: dict[str, Any], made: dict[str, Any]) -> None:
    """What the case itself is about stays."""
    operation = _operation("seekr-completions")
    assert sensible(body, plain_request(operation, MODEL, max_tokens=8), operation) == made


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ({}, {"max_tokens": LIMIT}),
        ({"max_tokens": None}, {"max_tokens": None, "max_completion_tokens": LIMIT}),
        ({"max_tokens": 9**30, "n": 7}, {"max_tokens": LIMIT, "n": LIMIT}),
        ({"max_completion_tokens": 1e9}, {"max_completion_tokens": LIMIT}),
        ({"max_tokens": "many", "n": -5}, {"max_tokens": "many", "n": -5}),
    ],
)
def test_affordable_is_what_has_a_small_limit(body: dict[str, Any], made: dict[str, Any]) -> None:
    """DeepInfra reads null as 65536 tokens, and others read an absent limit as all of the context."""
    assert affordable(body, _operation("seekr-chat")) == made


def test_random_numbers_are_brought_into_what_servers_take() -> None:
    """The schemas give no bounds: a random temperature would be refused, and with it whatever else the case tries."""
    body = {"temperature": 1e300, "top_p": -4, "top_logprobs": 5, "logprobs": True, "aÿ": 1, "seed": -(10**30)}
    found = within_bounds(body, _operation("seekr-chat"))

    assert found == {"temperature": 2, "top_p": 0.1, "top_logprobs": 5, "logprobs": True, "seed": 0}


# -- other parts than the body -----------------------------------------------------------------------------------------


def test_header_fields_of_the_operation_are_set() -> None:
    """DeepInfra's document has `x-deepinfra-source`; its key headers are tried by the probes of `auth`."""
    made = [probe for probe in generated(_operation("deepinfra-completions"), MODEL, count=0) if probe.headers]

    assert {name for probe in made for name, _ in probe.headers} == {"x-deepinfra-source"}
    assert {value for probe in made for _, value in probe.headers} == {"", "null"}
    assert all(probe.body["model"] == MODEL and not probe.free for probe in made)


def test_a_value_that_its_schema_does_not_take_is_not_sent(tmp_path: Path) -> None:
    """No check judges a header field of a request: a refusal of it would be taken for one of the body."""
    schema = {"type": "object", "properties": {"model": {"type": "string"}, "prompt": {"type": "string"}}}
    header = {"name": "X-Tier", "in": "header", "schema": {"enum": ["flex", "default"]}}
    described = {
        "parameters": [header],
        "requestBody": {"content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": "ok"}},
    }
    paths = {"/v1/completions": {"post": described}}
    file = tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump({"openapi": "3.1.0", "info": {"title": "own", "version": "1"}, "paths": paths}))
    operation = load_contracts([str(file)])[0].operations[0]
    made = [probe for probe in generated(operation, MODEL, count=0) if probe.headers]

    assert {pair for probe in made for pair in probe.headers} == {("x-tier", "flex"), ("x-tier", "default")}


@pytest.mark.parametrize("spec", SPECS)
def test_of_other_methods_only_a_safe_one_is_sent(spec: str) -> None:
    """Schemathesis also asks with PUT, PATCH and DELETE (`unexpected-methods`): a server that knows them would do it."""
    operation = _operation(spec)
    others = {case.method for case in drawing_of(operation).covered} - {"POST"}
    sent = {probe.method for probe in generated(operation, MODEL)} - {"POST"}

    assert {"DELETE", "GET", "OPTIONS", "PATCH", "PUT"} <= others
    assert sent == {"OPTIONS"}


# -- the same each time ------------------------------------------------------------------------------------------------

_CHILD = """
import sys
for module in sys.argv[1:]:
    __import__(module)
from streamgauge.conformance.probes.generated import generated
from streamgauge.conformance.runner import throwaway_hypothesis
from streamgauge.contract.contract import load_contracts
operation = load_contracts(["deepinfra-completions"])[0].operations[0]
with throwaway_hypothesis():
    for probe in generated(operation, "tiny", count=10):
        print(probe)
"""


def test_generation_does_not_depend_on_who_asks(tmp_path: Path) -> None:
    """
    Nor on what else has been imported, which Hypothesis takes constants from; nothing is left in the user's folder.

    Left to itself, it would also keep examples there and draw from them.
    """
    probes = generated(_operation("deepinfra-completions"), "tiny", count=10)
    here = "".join(f"{probe}\n" for probe in probes)
    for modules in ((), ("streamgauge.reference.responder", "xml.dom.minidom")):
        command = [sys.executable, "-c", _CHILD, *modules]
        there = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, encoding="utf-8")
        assert there.stdout == here
    assert list(tmp_path.iterdir()) == []


def test_another_seed_gives_other_random_cases() -> None:
    """And the same coverage: that is the document's."""
    operation = _operation("deepinfra-completions")
    first, second = (
        {
            kind: [probe.content for probe in generated(operation, MODEL, seed=seed, count=10) if _kind(probe) == kind]
            for kind in ("broken", "valid", "fuzzed-broken", "fuzzed-unchanged")
        }
        for seed in (0, 1)
    )

    assert (first["broken"], first["valid"]) == (second["broken"], second["valid"])
    assert first["fuzzed-broken"] != second["fuzzed-broken"]
    assert first["fuzzed-unchanged"] != second["fuzzed-unchanged"]


def test_drawing_twice_is_drawing_once() -> None:
    """A plan is made more than once in a process, and drawing takes seconds: it is done once for each document."""
    operation, again = _operation("openai-completions"), load_contracts(["openai-completions"])[0].operations[0]

    assert operation is not again
    assert drawing_of(operation, count=5) is drawing_of(again, count=5)
    assert drawing_of(operation, count=5).covered == drawing_of(operation).covered


_ODD = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "paths": {"/a": {"post": {"requestBody": {"$ref": "#/nowhere"}, "responses": {}}}},
}


def test_a_document_that_schemathesis_cannot_take_is_one_screen() -> None:
    """What it says last is the reason; there is no traceback, and no verdict (exit code 3)."""
    (drawn,) = begin([Task(json.dumps(_ODD), "/a", "POST")])

    with pytest.raises(CannotTellError, match="nowhere") as found:
        _ = drawn.covered
    assert (found.value.where, found.value.exit_code) == ("POST /a", 3)
    assert "Traceback" not in str(found.value)


@pytest.mark.parametrize("said", ["", '{"valid": [1, '])
def test_a_drawing_process_that_is_killed_is_one_screen(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without memory does that: nobody waits for ever, for this operation or the next, or reads half a line."""
    source = f"import os, signal; os.write(1, {said.encode()!r}); os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(drawing, "_source", lambda: source)
    for drawn in begin(Task(said, path, "POST") for path in ("/killed", "/too")):
        with pytest.raises(CannotTellError, match="ended with code -9"):
            _ = drawn.valid


@pytest.mark.skipif(sys.platform != "linux", reason="asks how full a pipe is")
def test_a_drawing_process_that_is_stopped_for_a_while_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-Z interrupts a write to a full pipe; with PYTHONUNBUFFERED, as in containers, the rest of it used to be lost."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    task = drawing.task_of(_operation("openai-completions"), seed=77)
    drawn = drawing.begin([task])[0]
    process = drawn._process._process
    assert process.stdout is not None
    size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
    held = bytearray(4)
    while process.poll() is None and int.from_bytes(held, sys.byteorder) < size:
        time.sleep(0.01)
        fcntl.ioctl(process.stdout, termios.FIONREAD, held)
    writer = psutil.Process(process.pid)
    writer.suspend()
    while writer.status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    writer.resume()
    assert drawn.covered == drawing_of(_operation("openai-completions")).covered


def test_drawn_bodies_are_left_as_they_are() -> None:
    """Making a case sensible does not change the drawn one, which the next caller gets as well."""
    operation = _operation("openai-completions")
    drawn = drawing_of(operation)
    before = json.dumps([case.body for case in drawn.covered], default=repr)
    list(generated(operation, MODEL, count=0))

    assert json.dumps([case.body for case in drawn.covered], default=repr) == before


def test_the_table_of_what_utf8_encodes_is_that_of_hypothesis() -> None:
    """It is written for Hypothesis in its own form, so that it need not encode a million characters at each start."""
    with throwaway_hypothesis():
        home = storage_directory().path
        (table,) = home.rglob("codec-*-utf-8.json.gz")
        written = json.loads(gzip.decompress(table.read_bytes()))
        table.unlink()
        intervals_from_codec.cache_clear()
        intervals_from_codec("utf-8")
        (made,) = home.rglob("codec-*-utf-8.json.gz")

        assert made == table
        assert json.loads(gzip.decompress(made.read_bytes())) == written


# -- what becomes of them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_a_right_endpoint_stands_them_all(spec: str) -> None:
    """On the reference endpoint nothing departs: no 5xx, no odd status, no broken request accepted, no valid one refused."""
    contract, operation = contract_of(spec)
    target = Target("t", "http://127.0.0.1", contract, model=MODEL, key=DEFAULT_KEY)
    numbers = itertools.count()
    responder = Responder(
        Settings(models=(MODEL,)), contracts=[contract], now=lambda: NOW, unique=lambda: f"u{next(numbers)}"
    )
    planned = [Planned(target, operation, probe) for probe in generated(operation, MODEL)]
    exchanges = send_all(responder, planned, NOW)
    cases = cases_of(exchanges, operation, contract, target="t", model=MODEL)
    wrong = (Outcome.ERROR, Outcome.FAIL, Outcome.IGNORED, Outcome.WARN)
    found = [judge(check, cases, operation, contract, "t") for check in CHECKS.values()]

    assert [finding.line() for finding in found if finding.outcome in wrong] == []
    assert max(exchange.status for exchange in exchanges) < 500
    answered = [exchange for exchange in exchanges if exchange.status == 200]
    assert len(answered) > 50
    assert {exchange.probe.removeprefix("generated.").rpartition("-")[0] for exchange in answered} <= {
        *("valid", "fuzzed-valid", "header")
    }
