"""The server's own counters, read beside a run from real loopback servers."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from load_endpoint import held_port

from streamgauge import catalog
from streamgauge.bundle.layout import SERVER_METRICS
from streamgauge.bundle.reader import Bundle, read_lines
from streamgauge.bundle.writer import BundleWriter
from streamgauge.contract.contract import load_contracts
from streamgauge.errors import ConfigError
from streamgauge.load.scraping import Scraper, scraping
from streamgauge.metrics.crosscheck import Agreement, cross_check
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.server import Phase, samples_of
from streamgauge.reference.launch import running
from streamgauge.target import Target

KEY = "a-key-of-these-tests-0123"
MODEL = "streamgauge-reference"
PATIENCE_S = 30.0

Reply = tuple[int, str]
"""Status and body."""


@dataclass
class Pages:
    """A server of pages, and what it has seen."""

    url: str
    heads: list[dict[str, str]] = field(default_factory=list)
    looked: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, looks: int) -> None:
        """Return when so many requests have come."""
        with self.looked:
            assert self.looked.wait_for(lambda: len(self.heads) >= looks, PATIENCE_S)


@contextlib.contextmanager
def pages(reply: Callable[[int], Reply], **headers: str) -> Iterator[Pages]:
    """Serve while the block runs; `reply` makes the answer to the n-th request, from 1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with served.looked:
                served.heads.append({name.lower(): value for name, value in self.headers.items()})
                number = len(served.heads)
                served.looked.notify_all()
            status, body = reply(number)
            self.send_response(status)
            for name, value in {"content-length": str(len(body.encode())), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = Pages(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def page(tokens: int, running: int = 0) -> Reply:
    """A page with these counters."""
    return 200, (
        "# TYPE vllm:generation_tokens_total counter\n"
        f'vllm:generation_tokens_total{{model_name="m"}} {tokens}\n'
        "# TYPE vllm:num_requests_running gauge\n"
        f'vllm:num_requests_running{{model_name="m"}} {running}\n'
    )


def target(base_url: str, **fields: Any) -> Target:
    """A target with a key and headers of its own."""
    secrets: dict[str, Any] = {"key": KEY, "headers": {"X-Tenant": "tenant-of-these-tests"}}
    return Target("here", base_url, load_contracts(["openai-chat"])[0], model="m", **secrets | fields)


def scraped(url: str, asked: Target, directory: Path, **settings: Any) -> contextlib.AbstractContextManager[Any]:
    """:func:`scraping` with little patience."""
    return scraping(url, asked, directory, **{"interval_s": 0.02, "settle_s": 0.2} | settings)


def lines_in(directory: Path) -> list[dict[str, Any]]:
    """The lines that were written, each valid by the bundle's schema."""
    lines = list(read_lines(directory / SERVER_METRICS))
    schema = Draft202012Validator({**catalog.schema("bundle"), "$ref": "#/$defs/server_metrics"})
    for line in lines:
        schema.validate(line)
    return lines


def notes_in(directory: Path) -> list[str]:
    """What was wrong; each note begins with the page's URL."""
    notes = [line["note"].partition("/metrics: ") for line in lines_in(directory) if "note" in line]
    assert all(url.startswith("http") for url, _, _ in notes)
    return [what for _, _, what in notes]


def test_before_during_and_after(tmp_path: Path) -> None:
    """One look is over before the run begins, others come at the interval, the last ones behind it."""
    with pages(lambda number: page(number if number < 5 else 5)) as served:
        with scraped(f"{served.url}/metrics", target(served.url), tmp_path) as scraper:
            assert scraper.last.phase is Phase.BEFORE
            assert scraper.last.values["completion_tokens"] == 1
            served.wait_for(5)
        found = samples_of(lines_in(tmp_path))
    assert [found[0].phase, found[1].phase, found[-1].phase] == [Phase.BEFORE, Phase.DURING, Phase.AFTER]
    assert found[-1].values == {"completion_tokens": 5, "running": 0}
    assert [sample.time for sample in found] == sorted(sample.time for sample in found)
    assert lines_in(tmp_path)[0] == {
        "page": {
            "url": f"{served.url}/metrics",
            "server": "vLLM",
            "families": ["vllm:generation_tokens_total", "vllm:num_requests_running"],
        }
    }
    assert not notes_in(tmp_path)


def test_counters_come_late(tmp_path: Path) -> None:
    """Behind the run the counters are read until two looks agree and nothing runs: a server counts after its last byte."""
    late: list[Reply] = []
    with pages(lambda number: late.pop(0) if late else page(90)) as served:
        late[:] = [page(10)]
        with scraped(f"{served.url}/metrics", target(served.url), tmp_path, interval_s=60, settle_s=PATIENCE_S):
            late[:] = [page(10, 1), page(10, 1), page(40, 0)]
        found = samples_of(lines_in(tmp_path))
    after = [sample.values["completion_tokens"] for sample in found if sample.phase is Phase.AFTER]
    assert after == [10, 10, 40, 90, 90]
    assert not notes_in(tmp_path)


def test_counters_that_never_rest(tmp_path: Path) -> None:
    """Where somebody else keeps the counters moving, the looks end after a while, and a note says so."""
    with pages(page) as served, scraped(f"{served.url}/metrics", target(served.url), tmp_path):
        pass
    assert notes_in(tmp_path) == ["the counters had not come to rest 0.2 s after the run"]
    assert samples_of(lines_in(tmp_path))[-1].phase is Phase.AFTER


def test_a_run_that_breaks_off(tmp_path: Path) -> None:
    """An exception within the run waits for no rest: one last look is taken."""
    with pages(page) as served:
        started = time.monotonic()
        with (
            pytest.raises(RuntimeError),
            scraped(f"{served.url}/metrics", target(served.url), tmp_path, interval_s=60, settle_s=60),
        ):
            raise RuntimeError
        assert time.monotonic() - started < 30
    assert [sample.phase for sample in samples_of(lines_in(tmp_path))] == [Phase.BEFORE, Phase.AFTER]


def test_the_key_goes_home(tmp_path: Path) -> None:
    """The same scheme, host and port get what the target's own requests carry (RFC 6454, section 4)."""
    with pages(lambda number: page(1)) as served, scraped(f"{served.url}/metrics", target(served.url), tmp_path):
        pass
    assert all(head["authorization"] == f"Bearer {KEY}" for head in served.heads)
    assert all(head["x-tenant"] == "tenant-of-these-tests" for head in served.heads)
    assert KEY not in (tmp_path / SERVER_METRICS).read_text()


@pytest.mark.parametrize("here", ["http://127.0.0.1:{}", "https://127.0.0.1:{}", "http://localhost:{}"])
def test_the_key_goes_nowhere_else(here: str, tmp_path: Path) -> None:
    """Another port, scheme or host of the target's gets neither its key nor its headers."""
    with pages(lambda number: page(1)) as served:
        port = 1 if here.startswith("http://127") else served.url.rpartition(":")[2]
        with scraped(f"{served.url}/metrics", target(here.format(port)), tmp_path):
            pass
    assert served.heads
    for head in served.heads:
        assert set(head) == {"host", "accept", "connection", "accept-encoding", "user-agent"}


@pytest.mark.parametrize(
    ("status", "note"),
    [
        (401, "the page does not come: 401 Unauthorized; does it want a key of its own?"),
        (403, "the page does not come: 403 Forbidden"),
        (404, "the page does not come: 404 Not Found; does the server have such a page?"),
        (302, "the page does not come: 302 Found"),
    ],
)
def test_no_such_page(status: int, note: str, tmp_path: Path) -> None:
    """Where the page cannot be had, one note says so, nobody asks again, and the run goes on."""
    with pages(lambda number: (status, "no"), location="http://127.0.0.1:9/metrics") as served:
        with scraped(f"{served.url}/metrics", target(served.url), tmp_path) as scraper:
            assert scraper.note == f"{served.url}/metrics: {note}"
        assert len(served.heads) == 1
    assert notes_in(tmp_path) == [note]


@pytest.mark.parametrize(("status", "said"), [(404, 0), (501, 0), (401, 1)])
def test_a_page_that_nobody_named(status: int, said: int, tmp_path: Path) -> None:
    """That a server has no such page is worth no word then; that it has one and keeps it is."""
    with pages(lambda number: (status, "no")) as served:
        with scraped(f"{served.url}/metrics", target(served.url), tmp_path, optional=True):
            pass
        assert len(served.heads) == 1
    assert len(notes_in(tmp_path)) == said


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("<html>Grafana</html>", "the page cannot be read: no page of metrics"),
        ('vllm:generation_tokens_total{model_name="m"} \x1b[31mmany\n', "the page cannot be read: could not convert"),
    ],
)
def test_a_page_that_cannot_be_read(body: str, note: str, tmp_path: Path) -> None:
    """What is no page of metrics is told once; no control sequence of the server's gets into the note."""
    with pages(lambda number: (200, body)) as served:
        with scraped(f"{served.url}/metrics", target(served.url), tmp_path):
            pass
        assert len(served.heads) == 1
    (found,) = notes_in(tmp_path)
    assert found.startswith(note)
    assert "\x1b" not in found


def test_names_that_nobody_knows(tmp_path: Path) -> None:
    """A page of an unknown server is kept by its names, with a note."""
    with (
        pages(lambda number: (200, "# TYPE other_total counter\nother_total 1\n")) as served,
        scraped(f"{served.url}/metrics", target(served.url), tmp_path),
    ):
        pass
    assert lines_in(tmp_path)[0]["page"] == {"url": f"{served.url}/metrics", "server": "", "families": ["other_total"]}
    assert notes_in(tmp_path) == ["the page has no counters that we know"]


def test_a_server_that_is_busy(tmp_path: Path) -> None:
    """A 503 is told, and the page asked for again: a server under load may have no time for it."""
    with (
        pages(lambda number: (503, "busy") if number in (1, 2, 4) else page(7)) as served,
        scraped(f"{served.url}/metrics", target(served.url), tmp_path),
    ):
        served.wait_for(6)
    assert notes_in(tmp_path)[0] == "the page does not come: 503 Service Unavailable"
    assert len(notes_in(tmp_path)) == 1
    assert samples_of(lines_in(tmp_path))[-1].values["completion_tokens"] == 7


def test_nobody_there(tmp_path: Path) -> None:
    """A port on which nothing listens is a note, and the run goes on."""
    with held_port() as port, scraped(f"http://127.0.0.1:{port}/metrics", target("http://127.0.0.1:1"), tmp_path):
        pass
    (note,) = notes_in(tmp_path)
    assert note.startswith("the page does not come (refused")
    assert not samples_of(lines_in(tmp_path))


def test_a_page_without_end(tmp_path: Path) -> None:
    """Of a page larger than 4 MiB no more is read; a note says so."""
    with (
        pages(lambda number: (200, "# a comment\n" * 400_000)) as served,
        scraped(f"{served.url}/metrics", target(served.url), tmp_path, settle_s=0),
    ):
        pass
    assert notes_in(tmp_path)[0].startswith("the page does not come (too-large")


def test_no_secret_is_written(tmp_path: Path) -> None:
    """A page that repeats the key, in names or in what is wrong with it, does not bring it into the bundle."""
    name = KEY.replace("-", "_")
    told = page(1)[1] + f"# TYPE {name} counter\n{name} 1\n"
    broken = f'vllm:generation_tokens_total{{{name}="1"}} {name}\n'
    with (
        pages(lambda number: (200, told if number < 3 else broken)) as served,
        scraped(f"{served.url}/metrics", target(served.url, key=name), tmp_path),
    ):
        served.wait_for(3)
    assert len(notes_in(tmp_path)) == 1
    assert name not in (tmp_path / SERVER_METRICS).read_text()


def test_off(tmp_path: Path) -> None:
    """Without a URL nothing is asked and nothing written."""
    with scraping(None, target("http://127.0.0.1:1"), tmp_path) as scraper:
        assert scraper is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url",
    [
        "metrics",
        "ftp://h/metrics",
        "http://",
        "http://[::1/metrics",
        "http://u:p@h/m",
        "http://h/a b",
        "http://h/m?key=u:p",
    ],
)
def test_urls_that_cannot_be_asked(url: str, tmp_path: Path) -> None:
    """What is no http or https URL, or holds a password, is refused before anything begins, without repeating the password."""
    with pytest.raises(ConfigError) as refused, scraping(url, target("http://127.0.0.1:1"), tmp_path):
        pass
    assert "u:p" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def _ask(url: str, number: int, leave: bool) -> Record:
    """One streamed request to the reference endpoint, left after its first event if asked to."""
    now = time.time_ns() // 1000
    most = 1500 if leave else 12  # one that is left does not end before its client has gone
    record = Record(
        str(number), "here", "chat", True, now, now, Outcome.UNFINISHED_AT_STOP, written=now, max_tokens=most
    )
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"Tell me about {number}."}],
        "max_tokens": record.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, headers=headers) as answer:
        record.status = answer.status_code
        for line in answer.iter_lines():
            data = json.loads(line[6:]) if line.startswith("data: {") else {}
            for choice in data.get("choices", []):
                if choice["delta"].get("content"):
                    record.token_times.append(time.time_ns() // 1000)
                record.finish_reason = choice["finish_reason"] or record.finish_reason
            if data.get("usage"):
                record.prompt_tokens = data["usage"]["prompt_tokens"]
                record.completion_tokens = data["usage"]["completion_tokens"]
            if leave and record.token_times:
                break
            if line == "data: [DONE]":
                record.outcome = Outcome.OK
    record.closed = time.time_ns() // 1000
    return record


@pytest.mark.parametrize("left", [0, 3])
def test_the_reference_endpoint_agrees(left: int, tmp_path: Path) -> None:
    """What the built-in endpoint counts is what its client has counted; streams that are left are the only difference."""
    with running(itl_ms=10, key=KEY) as url:
        asked = Target("here", url, load_contracts(["openai-chat"])[0], model=MODEL, key=KEY)
        with (
            scraped(f"{url}/metrics", asked, tmp_path, settle_s=PATIENCE_S) as scraper,
            ThreadPoolExecutor(10) as pool,
        ):
            assert isinstance(scraper, Scraper)
            records = list(pool.map(lambda number: _ask(url, number, number < left), range(20)))
    found = cross_check(records, samples_of(lines_in(tmp_path)))
    expected = Agreement.EXPLAINED if left else Agreement.AGREE
    assert found.agreement is expected, "\n".join(found.lines())
    counts = {row.what: row.server for row in found.rows}
    assert counts["requests finished"] == 20 - left
    assert counts["requests that we left"] == left
    assert not notes_in(tmp_path)


def test_an_open_bundle_has_no_metrics_yet(tmp_path: Path) -> None:
    """A bundle whose run read no counters has none."""
    BundleWriter(tmp_path).meta({})
    assert Bundle(tmp_path).server_metrics == []
