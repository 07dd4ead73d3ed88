"""The plan, and the command line that carries it into Locust's process and back."""

import json
import os
import socket
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import pytest
import zmq
from commandline import streamgauge

from streamgauge.contract.contract import load_contracts
from streamgauge.errors import ConfigError, UsageError
from streamgauge.load.abort import AbortRule
from streamgauge.load.arguments import add_arguments, plan_from
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, Segment
from streamgauge.load.command import locust_arguments, locust_environment, port_for_workers, refuse_owned
from streamgauge.load.lengths import Lengths
from streamgauge.load.mix import MixEntry, parse_mix
from streamgauge.load.plan import LoadPlan, plan_for
from streamgauge.metrics.slo import Slo
from streamgauge.target import Target

SECRET = "sk-0123456789abcdef"
NAMES = ("seekr-chat", "seekr-completions", "deepinfra-completions", "openai-chat", "openai-completions")
OPERATIONS = {name: load_contracts([name])[0].operations[0] for name in NAMES}


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


def read_back(arguments: list[str], environment: dict[str, str]) -> LoadPlan:
    """What Locust's process makes of a command line."""
    parser = ArgumentParser()
    for flag, kind in (("--users", int), ("--run-time", str), ("--host", str)):
        parser.add_argument(flag, type=kind, dest="num_users" if flag == "--users" else None)
    add_arguments(_WithoutWeb(parser))
    options, _ = parser.parse_known_args(arguments)
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


CHANGES: list[dict[str, Any]] = [
    {},
    {"loop": ClosedLoop(5, 0.5), "requests": 9, "seed": 3, "duration_s": 7},
    {
        "loop": OpenLoop((Segment(3, 1, 5), Segment(4, 5, 5)), "gamma", 0.5, 99),
        "duration_s": 7,
        "warm_up_s": 1.5,
        "prompt_tokens": Lengths.parse("uniform:5..9"),
        "shared_prefix": 4,
        "judge": 0.1,
        "slos": (Slo.parse("ttft:p95<=500ms"),),
        "abort_on": (AbortRule.parse("errors>50%"),),
        "budget_tokens": 1000,
        "metrics_url": None,
        "drain_s": 5,
    },
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("stream", [True, False])
def test_the_plan_survives_the_way_to_the_child(
    name: str, changes: dict[str, Any], stream: bool, tmp_path: Path
) -> None:
    """Locust's process arrives at the same plan; secrets travel by the environment only."""
    whom = target(name, paths={OPERATIONS[name].name: "/v1/x"})
    slos = changes.get("slos", ()) if stream else ()
    plan = plan_for([whom], stream=stream, **{**changes, "slos": slos})
    arguments = locust_arguments(plan, tmp_path, tmp_path)
    environment = locust_environment(plan, {"LOCUST_HOST": "http://elsewhere", "PATH": "/bin"}, tmp_path)
    arrived = read_back(arguments, environment)
    assert arrived.describe() == plan.describe()
    assert arrived.loop == plan.loop
    assert arrived.drain_s == plan.drain_s
    assert arrived.workload.request("1").body == plan.workload.request("1").body
    assert arrived.operation.document.sha256 == plan.operation.document.sha256
    assert arrived.target.request_headers(whom.credential) == whom.request_headers(whom.credential)
    told = " ".join(arguments) + (tmp_path / "scenario.json").read_text()
    assert SECRET not in told
    assert SECRET[::-1] not in told
    assert "LOCUST_HOST" not in environment
    assert environment["HOME"] == str(tmp_path)


def test_a_mix_over_two_documents_survives_too(tmp_path: Path) -> None:
    """Both documents and both paths travel; the parts keep their weights and forms."""
    contract = load_contracts(["seekr-chat", "seekr-completions"])[0]
    whom = target(contract=contract, paths={"seekr-chat": "/a", "seekr-completions": "/b"})
    plan = plan_for([whom], parse_mix("seekr-chat=3,seekr-completions:whole"))
    arrived = read_back(locust_arguments(plan, tmp_path, tmp_path), locust_environment(plan, {}, tmp_path))
    assert arrived.describe() == plan.describe()
    assert arrived.urls == ("http://127.0.0.1:9/v1/a", "http://127.0.0.1:9/v1/b")
    assert (plan.streams, plan.describe()["stream"]) == (True, False)


def test_a_dataset_is_found_from_the_childs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is made whole: the child runs elsewhere."""
    (tmp_path / "p.jsonl").write_text('{"prompt": "Hello", "max_tokens": 3}\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    plan = plan_for([target()], dataset=Path("p.jsonl"))
    arguments = locust_arguments(plan, tmp_path, tmp_path)
    monkeypatch.chdir("/")
    arrived = read_back(arguments, locust_environment(plan, {}, tmp_path))
    assert arrived.workload.request("1").max_tokens == 3
    assert arrived.describe()["dataset"] == "p.jsonl"
    assert arrived.describe()["prompt_tokens"] is None


def test_what_a_plan_says_of_itself() -> None:
    """`load.json` has the loop, the number of arrivals, and every length and objective as it is written."""
    described = plan_for([target()], **CHANGES[2]).describe()
    assert described["loop"] == {
        "kind": "open",
        "segments": [{"seconds": 3, "start": 1, "end": 5}, {"seconds": 4, "start": 5, "end": 5}],
        "process": "gamma",
        "burstiness": 0.5,
        "max_in_flight": 99,
    }
    assert described["users"] is None
    assert described["scheduled"] == len(plan_for([target()], **CHANGES[2]).arrivals) > 0
    assert (described["prompt_tokens"], described["max_tokens"]) == ("uniform:5..9", "64")
    assert (described["slos"], described["abort_on"]) == (["ttft:p95<=500ms"], ["errors>50%"])
    closed = plan_for([target()]).describe()
    assert closed["loop"] == {"kind": "closed", "users": 8, "think_s": 0.0}
    assert (closed["users"], closed["scheduled"], closed["requests"]) == (8, None, None)
    assert json.loads(json.dumps(described)) == described


def test_planned_requests_cut_the_schedule_short() -> None:
    """The first of them, and no more are scheduled."""
    loop = OpenLoop((Segment(10, 5, 5),), "constant")
    assert list(plan_for([target()], loop=loop, requests=3).arrivals) == [0, 0.2, 0.4]
    assert len(plan_for([target()], loop=loop, requests=99).arrivals) == 50


@pytest.mark.parametrize(
    ("extra", "users"),
    [
        ((), 1),
        (("--processes", "3"), 3),
        (("--processes=3",), 3),
        (("--master", "--expect-workers", "2"), 2),
        (("--processes", "-1"), os.cpu_count()),
        (("--processes",), 1),
        (("--processes=x",), 1),
    ],
)
def test_an_open_loop_has_a_user_for_each_process(extra: tuple[str, ...], users: int) -> None:
    """Each sends its share of the schedule; a closed loop has the users that were asked for."""
    loop = OpenLoop((Segment(10, 5, 5),))
    assert plan_for([target()], loop=loop, locust_arguments=extra).users == users
    assert plan_for([target()], locust_arguments=extra).users == 8


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/metrics"),
        ("https://h.example/a/b", "https://h.example/metrics"),
    ],
)
def test_the_servers_own_counters_are_at_its_root(base: str, url: str) -> None:
    """Of the host that the user named and no other; what the user says stands as it is."""
    assert plan_for([target(base_url=base)]).metrics_page == url
    assert plan_for([target(base_url=base)], metrics_url=None).metrics_page is None
    assert plan_for([target(base_url=base)], metrics_url="http://h:1/m").metrics_page == "http://h:1/m"


def test_a_document_of_ones_own_travels_as_a_file(tmp_path: Path) -> None:
    """The child judges by what the parent has read, however the path was written and whatever became of it."""
    path = tmp_path / "my-api.yaml"
    document = OPERATIONS["seekr-chat"].document.raw
    path.write_text(json.dumps({**document, "info": {"title": "Mine", "version": "1"}}), encoding="utf-8")
    contract = load_contracts([str(path)])[0]
    path.unlink()
    whom = target(contract=contract)
    plan = plan_for([whom])
    arrived = read_back(locust_arguments(plan, tmp_path, tmp_path), locust_environment(plan, {}, tmp_path))
    assert arrived.operation.name == plan.operation.name == "my-api"
    assert arrived.operation.components == plan.operation.components


@pytest.mark.parametrize("arguments", [("--processes", "2"), ("--processes=2",)])
def test_workers_get_a_port_of_their_own(arguments: tuple[str, ...]) -> None:
    """Two runs on one machine do not meet at Locust's one default port; Locust alone may listen on it meanwhile."""
    with port_for_workers(arguments) as first, port_for_workers(arguments) as second:
        ports = [int(found[0].removeprefix("--master-port=")) for found in (first, second)]
        for port, found in zip(ports, (first, second), strict=True):
            assert found[1:] == [f"--master-bind-port={port}", "--master-bind-host=127.0.0.1", *arguments]
            if sys.platform == "linux":
                with socket.socket() as chance, pytest.raises(OSError, match="in use"):
                    chance.bind(("127.0.0.1", port))
            with zmq.Context() as context, context.socket(zmq.ROUTER) as master:
                master.bind(f"tcp://127.0.0.1:{port}")
        assert ports[0] != ports[1]


@pytest.mark.parametrize("arguments", [(), ("--tags", "a"), ("--processes=2", "--master-port=5")])
def test_no_port_where_none_is_wanted(arguments: tuple[str, ...]) -> None:
    """Without workers there is no port, and the user may name one."""
    with port_for_workers(arguments) as found:
        assert found == [*arguments]


def options(*given: str, **changes: Any) -> Namespace:
    """Locust's options as they are by default, but for the model and what is given."""
    parser = ArgumentParser()
    add_arguments(_WithoutWeb(parser))
    found = parser.parse_args(["--sg-model=m", *given])
    return Namespace(**{**vars(found), "num_users": None, "run_time": None, **changes})


WRONG: list[tuple[dict[str, Any], str | None, dict[str, str], str]] = [
    ({}, None, {}, "--host"),
    ({}, "ftp://x", {}, "http"),
    ({"sg_model": ""}, "http://x", {}, "--sg-model"),
    ({"sg_max_tokens": "0"}, "http://x", {}, "--sg-max-tokens"),
    ({"sg_requests": "0"}, "http://x", {}, "--sg-requests"),
    ({"sg_rate": "5"}, "http://x", {}, "--sg-rate"),
    ({"sg_rate": "5@9s", "run_time": 5}, "http://x", {}, "--sg-rate"),
    ({"sg_slo": ["good"]}, "http://x", {}, "--sg-slo"),
    ({"sg_path": ["v1"]}, "http://x", {}, "--sg-path"),
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


def test_a_path_alone_is_that_of_the_operation() -> None:
    """Of the one that is loaded; others are named."""
    both = ("--sg-spec=seekr-chat", "--sg-spec=seekr-completions")
    found = plan_from(options(*both, "--sg-path=/a", "--sg-path=seekr-completions=/b"), "http://x", {})
    assert found.target.paths == {"seekr-chat": "/a", "seekr-completions": "/b"}
    found = plan_from(options(*both, "--sg-operation=seekr-completions", "--sg-path=/a"), "http://x", {})
    assert found.urls == ("http://x/a",)
    with pytest.raises(UsageError, match="seekr-chat"):
        plan_from(options(sg_operation="other"), "http://x", {})


def test_plain_locust_takes_settings_and_scenarios(tmp_path: Path) -> None:
    """By its own flags, which stand in place of a file's; Locust's users and time are those of a closed loop."""
    path = tmp_path / "load.yaml"
    path.write_text("users: 3\nduration: 9s\nmax_tokens: 5\nseed: 4\n", encoding="utf-8")
    found = plan_from(options(f"--sg-scenario={path}", "--sg-max-tokens=6"), "http://x", {})
    assert (found.users, found.duration_s, str(found.max_tokens), found.seed) == (3, 9, "6", 4)
    found = plan_from(options(f"--sg-scenario={path}", num_users=7, run_time=2), "http://x", {})
    assert (found.users, found.duration_s) == (7, 2)
    found = plan_from(options("--sg-rate=5", num_users=2, run_time=30), "http://x", {})
    assert found.loop == OpenLoop((Segment(30, 5, 5),))
    with pytest.raises(SystemExit):
        options(f"--sg-scenario={tmp_path / 'missing.yaml'}")


def test_plan_for_finds_the_operation() -> None:
    """The first operation by default; another by name, in whichever target it is; an unknown one is refused."""
    targets = [target("seekr-chat"), target("deepinfra-completions")]
    assert plan_for(targets).operation.name == "seekr-chat"
    found = plan_for(targets, [MixEntry("deepinfra-completions")], loop=ClosedLoop(3))
    assert (found.target, found.users) == (targets[1], 3)
    with pytest.raises(UsageError, match="nothing"):
        plan_for(targets, [MixEntry("nothing")])


@pytest.mark.parametrize(
    "text", ["ttft:p95<=1s", "ttfo:p50<=1s", "tpot:p50<=1s", "gap:p99<=1s", "itl:p99<=1s", "tail:p50<=1s"]
)
def test_objectives_about_streams_need_streams(text: str) -> None:
    """Whole answers have no first token: a run would end undecided, however long; what they do have may be limited."""
    slos = (Slo.parse(text),)
    with pytest.raises(UsageError, match="only whole answers"):
        plan_for([target()], stream=False, slos=slos)
    assert plan_for([target()], parse_mix("seekr-chat,seekr-chat:whole"), slos=slos).slos == slos
    others = tuple(
        map(Slo.parse, ("e2e:p95<=1s", "e2e_intended:p95<=1s", "headers:p95<=1s", "late:p95<=1s", "errors<=1%"))
    )
    assert plan_for([target()], stream=False, slos=others).slos == others


@pytest.mark.parametrize(
    "argument",
    ["-u9", "--users=9", "-t", "--run-time", "-Hhttp://x", "--host", "-f"],
)
def test_options_that_contradict_the_plan_are_refused(argument: str) -> None:
    """Locust's own spelling of what our flags say would make the bundle lie."""
    with pytest.raises(UsageError):
        refuse_owned((argument,))
    refuse_owned(("--processes", "2", "--loglevel=DEBUG", "-s", "5"))


@pytest.mark.parametrize("duration", ["0s", "soon", "", "1.5s"])
def test_durations_are_whole_seconds(duration: str, tmp_path: Path) -> None:
    """What is no length of time is refused before anything is sent, or even read."""
    done = streamgauge("load", "--base-url", "http://127.0.0.1:9", "--duration", duration, cwd=tmp_path)
    assert done.returncode == 2
    assert "1m30s" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--users", "3", "--rate", "5"), "closed loop"),
        (("--rate", "5..x"), "ramp"),
        (("--operation", "other"), "seekr-chat"),
        (("--prompts", "missing.jsonl"), "missing.jsonl"),
        (("missing.yaml",), "missing.yaml"),
        (("--", "--users", "3"), "--users"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_sent(
    given: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """Exit code 2, one message, no bundle: nobody listens at this address."""
    done = streamgauge("load", "--base-url", "http://127.0.0.1:9", "--spec", "seekr-chat", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_help_has_sections(tmp_path: Path) -> None:
    """How hard, what, what counts: in this order, before the options about the target."""
    done = streamgauge("load", "--help", cwd=tmp_path)
    places = [done.stdout.index(title) for title in ("\nHow hard", "\nWhat is asked", "\nWhat counts", "\nOptions")]
    assert places == sorted(places)
