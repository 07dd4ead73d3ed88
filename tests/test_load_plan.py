"""The plan, what is asked, and the command line that carries both into Locust's process and back."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import pytest
from commandline import streamgauge

from streamgauge.contract.contract import Operation, load_contracts
from streamgauge.errors import ConfigError, UsageError
from streamgauge.load.arguments import add_arguments, plan_from
from streamgauge.load.command import locust_command, locust_environment, refuse_owned
from streamgauge.load.plan import LoadPlan, plan_for
from streamgauge.load.workload import Workload
from streamgauge.target import Target

SECRET = "sk-0123456789abcdef"
NAMES = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat", "openai-completions")
OPERATIONS = {name: load_contracts([name])[0].operations[0] for name in NAMES}


def workload(operation: Operation, **changes: Any) -> Workload:
    """A workload of 64 words."""
    settings: dict[str, Any] = {"prompt_tokens": 64, "max_tokens": 32, "stream": True, "seed": 7, **changes}
    return Workload("t", operation, "m", **settings)


def prompt_of(body: dict[str, Any]) -> str:
    """The prompt, whichever family the body is of."""
    prompt: str = body["messages"][0]["content"] if "messages" in body else body["prompt"]
    return prompt


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stream", [True, False])
def test_bodies_are_what_the_document_allows(name: str, stream: bool) -> None:
    """Each body is valid, asks for usage and full length where the document knows how, and leaves the sampling alone."""
    operation = OPERATIONS[name]
    body = json.loads(workload(operation, stream=stream).request("0-1-2").body)
    assert operation.request.problems(body) == []
    assert body.get("stream", False) is stream
    assert ("stream_options" in body) is (stream and "stream_options" in operation.properties)
    assert body.get("ignore_eos") is (True if "ignore_eos" in operation.properties else None)
    assert body["max_tokens"] == 32
    assert "temperature" not in body


@pytest.mark.parametrize("words", [1, 2, 10, 11, 12, 22, 23, 64, 1000])
def test_prompts_have_the_length_that_was_asked_for(words: int) -> None:
    """About one token a word: so many words."""
    body = json.loads(workload(OPERATIONS["seekr-chat"], prompt_tokens=words).request("1").body)
    assert len(prompt_of(body).split()) == words


def test_prompts_share_no_beginning() -> None:
    """No two requests begin alike, so no prefix cache answers for the model; the same seed and id give the same body."""
    ids = [f"{worker}-{user}-{count}" for worker in range(3) for user in range(5) for count in range(20)]
    first, again, other = (workload(OPERATIONS["seekr-chat"], seed=seed) for seed in (7, 7, 8))
    heads = {prompt_of(json.loads(each.request(id).body)).split()[0] for each in (first, other) for id in ids}
    assert len(heads) == 2 * len(ids)
    assert [first.request(id).body for id in ids] == [again.request(id).body for id in ids]


def target(contract_of: str = "seekr-chat", **changes: Any) -> Target:
    """A target with a key and a secret header."""
    settings: dict[str, Any] = {
        "base_url": "http://127.0.0.1:9/v1",
        "contract": load_contracts([contract_of])[0],
        "model": "m",
        "key": SECRET,
        "headers": {"x-api-token": SECRET[::-1], "x-plain": "a=b"},
        **changes,
    }
    return Target("staging", **settings)


def read_back(command: list[str], environment: dict[str, str]) -> LoadPlan:
    """What Locust's process makes of a command line."""
    parser = ArgumentParser()
    for flag, kind in (("--users", int), ("--run-time", str), ("--host", str)):
        parser.add_argument(flag, type=kind, dest="num_users" if flag == "--users" else None)
    add_arguments(_WithoutWeb(parser))
    options, _ = parser.parse_known_args(command[3:])
    options.run_time = int(options.run_time.removesuffix("s"))
    return plan_from(options, options.host, environment)


class _WithoutWeb:
    """Locust's parser takes one argument more than the standard one."""

    def __init__(self, parser: ArgumentParser) -> None:
        self._parser = parser

    def add_argument(self, flag: str, include_in_web_ui: bool = True, **settings: Any) -> None:
        self._parser.add_argument(flag, **settings)

    def set_defaults(self, **defaults: Any) -> None:
        self._parser.set_defaults(**defaults)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changes", [{}, {"stream": False, "requests": 9, "seed": 3, "users": 5, "duration_s": 7}])
def test_the_plan_survives_the_way_to_the_child(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """Locust's process arrives at the same plan; secrets travel by the environment only."""
    whom = target(name, paths={OPERATIONS[name].name: "/v1/x"})
    plan = LoadPlan(whom, whom.contract.operations[0], **changes)
    command = locust_command(plan, tmp_path, tmp_path)
    environment = locust_environment(plan, {"LOCUST_HOST": "http://elsewhere", "PATH": "/bin"}, tmp_path)
    arrived = read_back(command, environment)
    assert arrived.describe() == plan.describe()
    assert arrived.workload.request("1").body == plan.workload.request("1").body
    assert arrived.operation.document.sha256 == plan.operation.document.sha256
    assert arrived.target.request_headers(whom.credential) == whom.request_headers(whom.credential)
    assert SECRET not in " ".join(command)
    assert SECRET[::-1] not in " ".join(command)
    assert "LOCUST_HOST" not in environment
    assert environment["HOME"] == str(tmp_path)


def test_a_document_of_ones_own_travels_as_a_file(tmp_path: Path) -> None:
    """The child judges by what the parent has read, however the path was written and whatever became of it."""
    path = tmp_path / "my-api.yaml"
    document = OPERATIONS["seekr-chat"].document.raw
    path.write_text(json.dumps({**document, "info": {"title": "Mine", "version": "1"}}), encoding="utf-8")
    contract = load_contracts([str(path)])[0]
    path.unlink()
    whom = target(contract=contract)
    plan = LoadPlan(whom, contract.operations[0])
    arrived = read_back(locust_command(plan, tmp_path, tmp_path), locust_environment(plan, {}, tmp_path))
    assert arrived.operation.name == plan.operation.name == "my-api"
    assert arrived.operation.components == plan.operation.components


def test_workers_get_a_port_of_their_own(tmp_path: Path) -> None:
    """Two runs on one machine do not meet at Locust's one default port, unless the user names a port."""
    whom = target()
    ports = []
    for extra in (("--processes", "2"), ("--processes=2",), ("--processes=2", "--master-port=5")):
        plan = LoadPlan(whom, whom.contract.operations[0], locust_arguments=extra)
        ports.append([item for item in locust_command(plan, tmp_path, tmp_path) if item.startswith("--master-port=")])
    assert [len(found) for found in ports] == [1, 1, 1]
    assert ports[2] == ["--master-port=5"]


def options(**changes: Any) -> Namespace:
    """Locust's options as they are by default, but for the model."""
    parser = ArgumentParser()
    add_arguments(_WithoutWeb(parser))
    found = parser.parse_args(["--sg-model=m"])
    return Namespace(**{**vars(found), "num_users": None, "run_time": None, **changes})


WRONG: list[tuple[dict[str, Any], str | None, dict[str, str], str]] = [
    ({}, None, {}, "--host"),
    ({}, "ftp://x", {}, "http"),
    ({"sg_model": ""}, "http://x", {}, "--sg-model"),
    ({"sg_max_tokens": 0}, "http://x", {}, "--sg-max-tokens"),
    ({"sg_requests": 0}, "http://x", {}, "--sg-requests"),
    ({"sg_operation": "other"}, "http://x", {}, "seekr-chat"),
    ({"sg_header": ["novalue"]}, "http://x", {}, "NAME=VALUE"),
    ({}, "http://x", {"STREAMGAUGE_HEADERS": "{"}, "STREAMGAUGE_HEADERS"),
    ({}, "http://x", {"STREAMGAUGE_HEADERS": '{"a": 1}'}, "STREAMGAUGE_HEADERS"),
]


@pytest.mark.parametrize(("changes", "host", "environment", "said"), WRONG)
def test_wrong_options_are_named(
    changes: dict[str, Any], host: str | None, environment: dict[str, str], said: str
) -> None:
    """What is missing or makes no sense is said by the name of its flag."""
    with pytest.raises(ConfigError) as caught:
        plan_from(options(**changes), host, environment)
    assert said in str(caught.value)


def test_headers_come_from_both_places() -> None:
    """Plain fields by flag, secret ones by the environment."""
    found = plan_from(options(sg_header=["a=b=c"]), "http://x", {"STREAMGAUGE_HEADERS": '{"d": "e"}'})
    assert found.target.headers == {"a": "b=c", "d": "e"}
    assert (found.users, found.duration_s, found.target.key) == (1, 0, None)


def test_plan_for_finds_the_operation() -> None:
    """The first operation by default; another by name, in whichever target it is; an unknown one is refused."""
    targets = [target("seekr-chat"), target("deepinfra-completions")]
    assert plan_for(targets).operation.name == "seekr-chat"
    found = plan_for(targets, "deepinfra-completions", users=3)
    assert (found.target, found.users) == (targets[1], 3)
    with pytest.raises(UsageError, match="nothing"):
        plan_for(targets, "nothing")


@pytest.mark.parametrize("argument", ["-u9", "--users=9", "-t", "--run-time", "-Hhttp://x", "--host", "-f"])
def test_options_that_contradict_the_plan_are_refused(argument: str) -> None:
    """Locust's own spelling of what our flags say would make the bundle lie."""
    with pytest.raises(UsageError):
        refuse_owned((argument,))
    refuse_owned(("--processes", "2", "--loglevel=DEBUG", "-s", "5"))


@pytest.mark.parametrize("duration", ["0s", "soon", "", "1.5s"])
def test_durations_are_whole_seconds(duration: str, tmp_path: Path) -> None:
    """What is no length of time is refused before anything is sent."""
    done = streamgauge("load", "--base-url", "http://127.0.0.1:9", "--duration", duration, cwd=tmp_path)
    assert done.returncode == 2
    assert "1m30s" in done.stderr
    assert list(tmp_path.iterdir()) == []
