"""Explorations over real sockets: what is found, made small, sent again and stored; what it costs; how it ends."""

import asyncio
import contextlib
import functools
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from commandline import environment
from jsonschema import Draft202012Validator
from mutations import responder_of
from scripted import Answer, answer, dead_port, request_head, scripted
from transcripts import contract_of

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle
from streamgauge.conformance.exploring import explore
from streamgauge.conformance.exploring.budget import EXPLORE_TOKENS
from streamgauge.conformance.exploring.engine import PATIENCE_S, REPLAYS, Explorer
from streamgauge.conformance.exploring.explore import Exploring
from streamgauge.conformance.probes.probe import worst_case_tokens
from streamgauge.conformance.session import Settings, checks_in, record_into
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.launch import running
from streamgauge.reference.messages import Request
from streamgauge.runs import open_bundle
from streamgauge.target import Target
from streamgauge.wire.recorder import Limits

Body = dict[str, Any]
FAILED = answer(500, b'{"error": {"message": "it broke", "type": "server_error", "code": null}}')


def target_at(url: str, document: str = "seekr-chat") -> Target:
    """One operation of the endpoint."""
    contract, _ = contract_of(document)
    return Target("t", url, contract, model=DEFAULT_MODEL, key=DEFAULT_KEY)


def explored(url: str, directory: Path, *select: str, document: str = "seekr-chat", **options: Any) -> list[Body]:
    """The lines of an exploration into a new bundle."""
    target = target_at(url, document)
    writer, _ = open_bundle("check", [target], output=directory)
    given = {"tokens": EXPLORE_TOKENS, "earlier": (), **options}
    exploring = Exploring([target], checks_in([]), select=select, **given)
    exploring.into(writer.path)
    writer.explored(exploring.lines)
    return Bundle(directory).explored


@contextlib.contextmanager
def endpoint(breaks: Callable[[Body], bool], broken: Answer = FAILED) -> Iterator[str]:
    """The reference endpoint's answers, but for the requests that break it."""
    responder = responder_of("seekr-chat")

    def choose(number: int, request: bytes) -> Answer:
        line, fields = request_head(request)
        method, target, _ = line.split(" ")
        content = request.partition(b"\r\n\r\n")[2]
        if breaks(json.loads(content)):
            return broken
        reply = responder.reply(Request(method, target, tuple(fields.items()), content))
        return [write.data for write in reply.writes]

    with scripted(choose=choose) as server:
        yield server.url


def prompt_of(body: Body) -> str:
    """The last message's text."""
    return str(body["messages"][-1]["content"])


@pytest.mark.parametrize(
    ("fault", "exploration", "check"),
    [
        ("utf8.replacement-character", "explore.prompts", "utf8.replacement-character"),
        ("tools.type-missing", "explore.tools", "tools.stream-first-delta"),
        ("tools.index-from-one", "explore.tools", "tools.stream-index"),
    ],
)
def test_fault_is_found_made_small_and_sent_again(fault: str, exploration: str, check: str, tmp_path: Path) -> None:
    """Of what was drawn no more is left than it takes, and it fails each time that it is sent again."""
    with running(faults=[fault]) as url:
        (line,) = explored(url, tmp_path / "out", exploration)
    failure = line["failure"]
    exchanges = Bundle(tmp_path / "out").exchanges

    assert (line["exploration"], failure["check"], failure["outcome"]) == (exploration, check, "fail")
    assert (failure["replays"], failure["departed"]) == (REPLAYS, REPLAYS)
    assert exchanges[failure["exchanges"][0]].sent == failure["body"]
    assert {each.probe for each in exchanges.values()} == {exploration}
    if exploration == "explore.prompts":
        assert len(prompt_of(failure["body"])) == 1
    else:
        assert failure["properties"] == ["tools", "tool_choice", "stream"]
        (tool,) = failure["body"]["tools"]
        assert len(tool["function"]["name"]) == 1
        assert list(tool["function"]["parameters"]["properties"].values()) == [{"const": "000000"}]


@pytest.mark.parametrize(
    ("fault", "exploration", "check", "properties"),
    [
        ("stop.ignored", "explore.stops", "stop.honoured", ["stop"]),
        ("stop.one-token", "explore.stops", "stop.honoured", ["stop"]),
        ("stop.too-early", "explore.stops", "stop.exact", ["temperature", "seed", "stop"]),
        ("structured.json-schema-ignored", "explore.schemas", "structured.json-schema", ["response_format"]),
        ("structured.schema-as-object", "explore.schemas", "structured.json-schema", ["response_format"]),
    ],
)
def test_what_is_not_honoured_is_found(
    fault: str, exploration: str, check: str, properties: list[str], tmp_path: Path
) -> None:
    """The laws are the oracle, also those that hold an answer against the same question without the property."""
    with running(faults=[fault]) as url:
        target = target_at(url)
        writer, meta = open_bundle("check", [target], output=tmp_path / "out")
        record_into(Settings([target], writer.path, select=("pair.unicode", exploration)), writer, meta)
    (line,) = Bundle(tmp_path / "out").explored

    assert line["failure"]["check"] == check
    assert set(line["failure"]["properties"]) <= set(properties)
    assert line["failure"]["departed"] == REPLAYS


def test_input_that_no_table_has_is_found(tmp_path: Path) -> None:
    """A server that fails at characters beyond the Basic Multilingual Plane: the smallest prompt is one of them."""
    with endpoint(lambda body: any(ord(each) > 0xFFFF for each in prompt_of(body))) as url:
        (line,) = explored(url, tmp_path / "out", "explore.prompts")
    failure = line["failure"]

    assert len(prompt_of(failure["body"])) == 1
    assert ord(prompt_of(failure["body"])) > 0xFFFF
    assert "500" in failure["actual"]
    assert failure["departed"] == REPLAYS


def test_properties_that_it_does_not_take_are_left_out(tmp_path: Path) -> None:
    """A server that fails at two tools of which one is demanded: neither stream nor temperature is named."""
    with endpoint(lambda body: len(body.get("tools", ())) > 1 and "tool_choice" in body) as url:
        (line,) = explored(url, tmp_path / "out", "explore.tools")

    assert line["failure"]["properties"] == ["tools", "tool_choice"]


def test_fault_that_strikes_at_times_is_told_with_its_rate(tmp_path: Path) -> None:
    """Whatever comes of the replays, the example is kept, and no error of Hypothesis about flaky tests comes through."""
    times = 0

    def breaks(body: Body) -> bool:
        nonlocal times
        times += 1
        return times % 4 == 3

    with endpoint(breaks) as url:
        (line,) = explored(url, tmp_path / "out", "explore.histories")

    assert line["failure"]["replays"] == REPLAYS
    assert line["failure"]["departed"] < REPLAYS


def test_what_the_probes_had_shown_is_no_news(tmp_path: Path) -> None:
    """A check that departs on an earlier exchange is not looked for again: the explorations look for what is new."""
    with running(faults=["utf8.replacement-character"]) as url:
        explored(url, tmp_path / "first", "explore.prompts")
        known = list(Bundle(tmp_path / "first").exchanges.values())
        (line,) = explored(url, tmp_path / "second", "explore.prompts", earlier=known)

    assert line["failure"] is None


@pytest.fixture(scope="module")
def right_runs(reference: str, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Bundles of whole explorations of the right endpoint, with earlier answers to draw stop strings from."""
    directories = []
    for document in ("seekr-chat", "seekr-completions"):
        for seed in range(5):
            target = target_at(reference, document)
            directory = tmp_path_factory.mktemp("right") / "out"
            writer, meta = open_bundle("check", [target], output=directory)
            settings = Settings([target], directory, select=("pair", "explore"), explore_seed=seed)
            record_into(settings, writer, meta)
            findings = [settings.judge(item) for item in settings.items()]
            (directory / "wrong.json").write_text(json.dumps([f.line() for f in findings if f.outcome in _WRONG]))
            directories.append(directory)
    return directories


_WRONG = (Outcome.ERROR, Outcome.FAIL, Outcome.IGNORED, Outcome.WARN)


def test_right_endpoint_fails_for_no_seed(right_runs: list[Path]) -> None:
    """No exploration finds anything, and no check warns of what was drawn."""
    for directory in right_runs:
        lines = Bundle(directory).explored
        assert [line["failure"] for line in lines] == [None] * len(lines)
        drawn = [line for line in lines if line["exploration"] != "explore.pairs"]
        assert all(line["examples"] > 3 for line in drawn)
        assert {line["stopped"] for line in lines if line not in drawn} == {"there is nothing to draw from"}
        assert json.loads((directory / "wrong.json").read_text()) == []


def test_tokens_are_never_exceeded(right_runs: list[Path]) -> None:
    """The worst case of all that was sent for one operation stays within what was allowed, and is what the lines say."""
    for directory in right_runs:
        bundle = Bundle(directory)
        sent = [each for each in bundle.exchanges.values() if each.id.startswith("explored-")]
        cost = sum(worst_case_tokens(each.sent) for each in sent)
        assert cost == sum(line["tokens"] for line in bundle.explored) <= EXPLORE_TOKENS
        assert len(sent) == sum(line["requests"] for line in bundle.explored)


@pytest.mark.parametrize("tokens", [200, 900])
def test_tokens_are_never_exceeded_by_making_small(tokens: int, tmp_path: Path) -> None:
    """Where every example fails, all that is allowed goes into smaller ones and replays, and no more."""
    with endpoint(lambda body: True) as url:
        lines = explored(url, tmp_path / "out", tokens=tokens)
    sent = Bundle(tmp_path / "out").exchanges.values()

    assert sum(worst_case_tokens(each.sent) for each in sent) <= tokens
    assert any(line["stopped"] == "the tokens were spent" for line in lines)


def test_budget_holds_for_probes_and_explorations_together(reference: str, tmp_path: Path) -> None:
    """What the probes leave of `--budget-tokens` is all that may be drawn with, whatever `--explore-tokens` says."""
    target = target_at(reference)
    writer, meta = open_bundle("check", [target], output=tmp_path / "out")
    record_into(Settings([target], writer.path, select=("form.basic", "explore"), budget_tokens=600), writer, meta)
    bundle = Bundle(writer.path)

    assert sum(worst_case_tokens(each.sent) for each in bundle.exchanges.values()) <= 600
    assert sum(line["requests"] for line in bundle.explored) > 0


def _drawn(directory: Path) -> dict[str, list[str]]:
    """What each exploration sent, in its order."""
    found: dict[str, list[str]] = {}
    for each in Bundle(directory).exchanges.values():
        if each.id.startswith("explored-"):
            found.setdefault(each.probe, []).append(each.request.body.decode())
    return found


def test_same_seed_sends_the_same(reference: str, right_runs: list[Path], tmp_path: Path) -> None:
    """However the explorations get in each other's way; another seed sends something else."""
    target = target_at(reference)
    writer, meta = open_bundle("check", [target], output=tmp_path / "out")
    record_into(Settings([target], writer.path, select=("pair", "explore"), explore_seed=0), writer, meta)

    assert _drawn(tmp_path / "out") == _drawn(right_runs[0])
    assert _drawn(tmp_path / "out") != _drawn(right_runs[1])
    assert Bundle(tmp_path / "out").meta["explore"] == {"tokens": EXPLORE_TOKENS, "seed": 0}


def test_stored_lines_are_what_the_schema_says(right_runs: list[Path], tmp_path: Path) -> None:
    """`explored` in `bundle.schema.json`, with a failure and without."""
    validator = Draft202012Validator({**catalog.schema("bundle"), "$ref": "#/$defs/explored"})
    with endpoint(lambda body: "tools" in body) as url:
        lines = explored(url, tmp_path / "out") + Bundle(right_runs[0]).explored

    assert any(line["failure"] for line in lines)
    for line in lines:
        validator.validate(line)


def test_none_where_none_are_wanted(reference: str, tmp_path: Path) -> None:
    """No tokens, or a selection of other probes: nothing is drawn, and no file says that it was."""
    for number, (tokens, select) in enumerate([(0, ("refusal.empty", "explore")), (None, ("refusal.empty",))]):
        target = target_at(reference)
        writer, meta = open_bundle("check", [target], output=tmp_path / str(number))
        record_into(Settings([target], writer.path, select=select, explore_tokens=tokens), writer, meta)
        assert {each.probe for each in Bundle(writer.path).exchanges.values()} == {"refusal.empty"}
        assert not (writer.path / "explored.json").exists()


def _stopped(lines: Sequence[Body]) -> set[str]:
    return {line["stopped"] for line in lines if line["exploration"] not in ("explore.stops", "explore.pairs")}


def test_limited_rate_ends_an_exploration(tmp_path: Path) -> None:
    """A request that is limited again and again is no failing example: the exploration gives up."""
    limited = answer(429, b"{}", "Retry-After: 0")
    with endpoint(lambda body: True, limited) as url:
        lines = explored(url, tmp_path / "out")

    assert _stopped(lines) == {"the target limits the rate"}
    assert {each.status for each in Bundle(tmp_path / "out").exchanges.values()} == {429}
    assert all(line["failure"] is None for line in lines)


def test_target_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    """After a few requests without any answer nothing more is sent."""
    with dead_port() as port:
        lines = explored(f"http://127.0.0.1:{port}", tmp_path / "out")

    assert _stopped(lines) == {"the target had stopped answering"}
    assert all(line["requests"] <= 6 for line in lines)


def test_target_that_was_gone_before_is_not_asked(tmp_path: Path) -> None:
    """Its last probes had no answer."""
    with dead_port() as port:
        url = f"http://127.0.0.1:{port}"
        explored(url, tmp_path / "first", "explore.prompts")
        gone = list(Bundle(tmp_path / "first").exchanges.values())

        assert explored(url, tmp_path / "second", earlier=gone) == []
    assert Bundle(tmp_path / "second").exchanges == {}


def test_interrupt_keeps_what_was_drawn(tmp_path: Path) -> None:
    """Ctrl-C while requests are drawn: exit code 130, every exploration says that it was interrupted, and a report."""
    # The preflight and one drawn request are answered: none of the explorations comes to its end.
    with running(faults=["http.silence,after=2"]) as url:
        command = [sys.executable, "-m", "streamgauge", "check", "--base-url", url, "--spec", "seekr-chat"]
        process = subprocess.Popen(
            [*command, "--select", "explore", "--output", "out"],
            cwd=tmp_path,
            env=environment(STREAMGAUGE_API_KEY=DEFAULT_KEY),
            stdout=subprocess.PIPE,
            text=True,
        )
        file = tmp_path / "out" / "exchanges-explored.jsonl"
        while process.poll() is None and (not file.exists() or not file.stat().st_size):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)

    assert process.returncode == 130
    bundle = Bundle(tmp_path / "out")
    assert "seed 0" in printed
    assert _stopped(bundle.explored) == {"interrupted"}
    assert bundle.findings
    assert (tmp_path / "out" / "report.html").exists()


def test_nothing_is_sent_behind_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploration that was about to send when the run was cancelled does not do so any more."""
    real, shutdown, over = asyncio.run_coroutine_threadsafe, asyncio.BaseEventLoop.shutdown_default_executor, Event()

    async def end(*arguments: Any) -> None:
        over.set()
        await shutdown(*arguments)

    monkeypatch.setattr(asyncio.BaseEventLoop, "shutdown_default_executor", end)
    with scripted(["hold"]) as server:
        target = target_at(server.url)
        writer, _ = open_bundle("check", [target], output=tmp_path / "out")
        exploring = Exploring([target], checks_in([]), (), EXPLORE_TOKENS, select=("explore.prompts",))

        def late(sending: Any, loop: asyncio.AbstractEventLoop) -> Any:
            (run,) = asyncio.all_tasks(loop)
            loop.call_soon_threadsafe(run.cancel)
            assert over.wait(60)
            return real(sending, loop)

        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", late)
        with pytest.raises(asyncio.CancelledError):
            exploring.into(writer.path)
        assert server.connections == 0
    assert [line["stopped"] for line in exploring.lines] == ["interrupted"]


def test_waiting_ends_with_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that hangs takes our whole patience for each request: after a while no more of them are sent."""
    looks = itertools.chain([0.0], itertools.count(PATIENCE_S))  # as it begins, before the first request, behind that
    monkeypatch.setattr(explore, "Explorer", functools.partial(Explorer, clock=looks.__next__))
    with endpoint(lambda body: True, ["hold"]) as url:
        (line,) = explored(url, tmp_path / "out", "explore.histories", limits=Limits(idle=0.3))

    assert line["stopped"] == f"it had gone on for {PATIENCE_S:g} s"
    assert line["requests"] == 1
    assert line["failure"]["check"]
