"""Scenario files: read with the places of mistakes, and written from a plan without loss."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.contract.contract import load_contracts
from streamgauge.errors import ConfigError
from streamgauge.load.abort import AbortRule
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, Segment
from streamgauge.load.lengths import Lengths
from streamgauge.load.plan import LoadPlan, Part, plan_for
from streamgauge.load.scenario import load_scenario, scenario_from_text, scenario_of, scenario_text
from streamgauge.load.settings import Given, read_settings
from streamgauge.metrics.slo import Slo
from streamgauge.target import Target

TARGET = Target("t", "http://127.0.0.1:9", load_contracts(["seekr-chat", "seekr-completions"])[0], "m")
EXAMPLE = Path(__file__).parents[1] / "examples" / "scenario.yaml"


def scenario(folder: Path, text: str) -> Path:
    """A file of this text."""
    path = folder / "load.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_are_written_as_flags_are(tmp_path: Path) -> None:
    """Numbers and texts alike; a mapping is a mix; each knows its place; prompts lie beside the file."""
    text = "rate: 5\nduration: 1m\nmix: {a: 3, 'b:whole': 0.5}\nslo: [errors<=1%]\nno_stream: true\nprompts: p.jsonl\n"
    path = scenario(tmp_path, text)
    assert load_scenario(path) == {
        "rate": Given("5", f"{path}:1:1"),
        "duration": Given("1m", f"{path}:2:1"),
        "mix": Given("a=3,b:whole=0.5", f"{path}:3:1"),
        "slo": Given(["errors<=1%"], f"{path}:4:1"),
        "no_stream": Given(True, f"{path}:5:1"),
        "prompts": Given(str(tmp_path / "p.jsonl"), f"{path}:6:1"),
    }


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("usres: 5\n", ":1:1", "usres"),
        ("users: 5\nusers: 6\n", ":2:1", "twice"),
        ("users: five\n", ":1:1", "users"),
        ("rate: 5\nno_stream: maybe\n", ":2:1", "no_stream"),
        ("slo: ttft\n", ":1:1", "slo"),
        ("mix: {a: 0}\n", ":1:1", "mix"),
        ("- users\n", ":1:1", "a scenario"),
        ("", "", "nothing"),
    ],
)
def test_mistakes_have_a_place(text: str, place: str, said: str, tmp_path: Path) -> None:
    """File, line and column; and an unknown setting is answered with the known ones."""
    path = scenario(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_scenario(path)
    assert caught.value.where == f"{path}{place}"
    assert said in caught.value.what
    assert said in ("twice", "nothing") or caught.value.hint


def test_what_cannot_be_read_has_its_place_too(tmp_path: Path) -> None:
    """A value of the right type that means nothing is found behind the schema."""
    path = scenario(tmp_path, "users: 3\nduration: soon\n")
    with pytest.raises(ConfigError) as caught:
        read_settings({}, load_scenario(path))
    assert caught.value.where == f"{path}:2:1"
    with pytest.raises(ConfigError, match="cannot be read"):
        load_scenario(tmp_path / "missing.yaml")


def test_the_schema_names_the_settings_that_there_are() -> None:
    """The file's keys are the settings, each described; a text that means nothing is refused under each name."""
    schema = catalog.schema("scenario")
    Draft202012Validator.check_schema(schema)
    for name, described in schema["properties"].items():
        assert described["description"]
        read_settings({}, {}) if name in ("no_stream", "prompts", "operation", "mix") else _refused(name)


def _refused(name: str) -> None:
    value = ["?"] if name in ("slo", "abort_on") else "?"
    rate = {} if name in ("rate", "users", "think") else {"rate": Given("5", "")}
    with pytest.raises(ConfigError):
        read_settings({}, {**rate, name: Given(value, name)})


def test_the_example_is_right() -> None:
    """examples/scenario.yaml makes a plan."""
    settings = read_settings({}, load_scenario(EXAMPLE))
    plan = plan_for([TARGET], **settings)
    assert plan.duration_s == 360
    assert [part.weight for part in plan.mix] == [3, 1]


_shares = st.integers(0, 100).map(lambda percent: percent / 100)
_tenths = st.integers(0, 10_000).map(lambda tenths: tenths / 10)
_lengths = st.one_of(
    st.integers(1, 10_000).map(Lengths.constant),
    st.tuples(st.integers(1, 9), st.integers(10, 99)).map(lambda ends: Lengths("uniform", ends)),
    st.tuples(st.integers(1, 999), st.floats(0, 9)).map(lambda both: Lengths("lognormal", both)),
)
_closed = st.tuples(st.builds(ClosedLoop, st.integers(1, 500), st.floats(0, 60)), st.integers(1, 10_000))
_segments = st.builds(Segment, st.integers(1, 100), st.floats(0, 500), st.floats(0.001, 500))
_open = st.builds(
    lambda segments, process, shape, room: OpenLoop(
        tuple(segments), process, shape if process == "gamma" else 1.0, room
    ),
    st.lists(_segments, min_size=1, max_size=3),
    st.sampled_from(["poisson", "constant", "gamma"]),
    st.floats(0.01, 1000),
    st.integers(1, 10_000),
).map(lambda loop: (loop, int(loop.seconds)))
_parts = st.builds(Part, st.sampled_from(TARGET.contract.operations), st.booleans(), st.floats(0.001, 100))


@st.composite
def plans(draw: st.DrawFn) -> LoadPlan:
    """Any plan that flags can ask for."""
    loop, duration_s = draw(st.one_of(_closed, _open))
    return LoadPlan(
        TARGET,
        tuple(draw(st.lists(_parts, min_size=1, max_size=3))),
        loop,
        duration_s,
        requests=draw(st.none() | st.integers(1, 1000)),
        prompt_tokens=draw(_lengths),
        shared_prefix=draw(st.integers(0, 99)),
        max_tokens=draw(_lengths),
        seed=draw(st.integers(0, 2**31)),
        warm_up_s=draw(st.floats(0, duration_s, exclude_max=True)),
        judge=draw(_shares),
        slos=tuple(Slo("e2e", p, limit) for p, limit in draw(st.lists(st.tuples(_shares.filter(_inside), _tenths)))),
        abort_on=draw(st.sampled_from([(), (AbortRule("errors", 0.5), AbortRule("consecutive", 20))])),
        budget_tokens=draw(st.none() | st.integers(1, 10**6)),
        metrics_url=draw(st.sampled_from([None, "auto", "http://127.0.0.1:9/metrics", "https://h/m"])),
        drain_s=draw(st.integers(0, 100)),
    )


def _inside(p: float) -> bool:
    return 0 < p < 1


@given(plans())
def test_plan_to_file_to_plan_is_the_identity(plan: LoadPlan) -> None:
    """What is written of a plan is a right scenario file, and makes the same plan for the same target."""
    settings = json.loads(json.dumps(scenario_of(plan)))
    assert list(Draft202012Validator(catalog.schema("scenario")).iter_errors(settings)) == []
    given = {name: Given(str(value) if isinstance(value, int) else value, name) for name, value in settings.items()}
    assert plan_for([TARGET], **read_settings({}, given)) == plan


def test_a_scenario_travels_as_text(tmp_path: Path) -> None:
    """As other processes get it: paths absolute, everything else as it was read."""
    path = scenario(tmp_path, "users: 3\nprompts: p.jsonl\n")
    found = scenario_from_text(scenario_text(path), "--sg-scenario")
    assert found == {
        "users": Given("3", "--sg-scenario"),
        "prompts": Given(str(tmp_path.resolve() / "p.jsonl"), "--sg-scenario"),
    }
    assert scenario_from_text("", "") == {}


def test_a_dataset_is_named_by_its_whole_path(tmp_path: Path) -> None:
    """And no length of prompts is written beside it."""
    settings: dict[str, Any] = scenario_of(
        LoadPlan(TARGET, (Part(TARGET.contract.operations[0], True),), dataset=tmp_path)
    )
    assert settings["prompts"] == str(tmp_path.resolve())
    assert "prompt_tokens" not in settings
