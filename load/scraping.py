"""
Reads the server's own counters beside a run, about once a second, into `server-metrics.jsonl`.

Runs in a thread of the run's parent process, so that it costs the measuring processes nothing. A server without such a page is
no fault: one note says so where the user named it, and the run goes on.
"""

import asyncio
import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, urlsplit

from streamgauge.bundle.layout import SERVER_METRICS
from streamgauge.bundle.writer import LineWriter
from streamgauge.errors import StreamgaugeError
from streamgauge.metrics.server import GAUGES, Page, Phase, Quantity, Sample, read_page
from streamgauge.target import Target, join_url, merged_headers
from streamgauge.text import one_line
from streamgauge.wire.exchange import Ending, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

__all__ = ["Scraper", "scraping"]

_LIMITS = Limits(concurrency=1, connect=5.0, idle=5.0, total=5.0, size=4 << 20, rate_limit_attempts=1)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 0.2
_SETTLE_S = 5.0
"""So long the counters are waited for: a server updates them after the last byte has left, or when it sees its client gone."""

_MOST_FAMILIES = 500
_NO_PAGE = (404, 405, 410, 501)
"""What a server answers that has no such page, or was started without it (llama.cpp: 501)."""


@contextlib.contextmanager
def scraping(
    url: str | None,
    target: Target,
    directory: Path,
    *,
    optional: bool = False,
    interval_s: float = 1.0,
    settle_s: float = _SETTLE_S,
) -> Iterator["Scraper | None"]:
    """
    Read the counters while the block runs: once before it, then at each interval, and behind it until they are quiet.

    Args:
        url: where the page is; None to read nothing.
        target: whom the run asks. Its key and headers are sent to its own scheme, host and port only.
        directory: the bundle's.
        optional: whether nothing is said of a page that is not there.
        interval_s: time between two looks.
        settle_s: so long the counters are waited for behind the block.

    Raises:
        ConfigError: it is no http or https URL without user, query and fragment.
    """
    if url is None:
        yield None
        return
    join_url(url, "")  # for what it refuses
    with Scraper(url, target, directory, optional=optional, interval_s=interval_s, settle_s=settle_s) as scraper:
        yield scraper


class Scraper:
    """
    Reads one page again and again; a context manager, see :func:`scraping`.

    Attributes:
        note: what is wrong with the page; empty while nothing is.
        last: what was read last; None before.
    """

    def __init__(
        self, url: str, target: Target, directory: Path, *, optional: bool, interval_s: float, settle_s: float
    ) -> None:
        self.note = ""
        self.last: Sample | None = None
        self._url, self._target = url, target
        self._optional = optional
        self._interval_s, self._settle_s = interval_s, settle_s
        self._redactor = target.redactor
        self._lines = LineWriter(directory / SERVER_METRICS)
        self._ready = threading.Event()
        self._stop = threading.Event()
        self._hurry = False
        self._page: Page | None = None
        self._thread = threading.Thread(target=self._run, name="server-metrics", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.hurry()
        self._stop.set()
        self._thread.join()
        self._lines.close()

    def hurry(self) -> None:
        """Wait for no rest behind the run, but take one last look only: somebody wants it to end at once."""
        self._hurry = True

    def _run(self) -> None:
        try:
            asyncio.run(self._look_on())
        except StreamgaugeError as problem:
            self._write_note(one_line(str(problem), 300))
        finally:
            self._ready.set()

    async def _look_on(self) -> None:
        target = _asked(self._url, self._target)
        async with Recorder(target, limits=_LIMITS) as recorder:
            outgoing = _outgoing(self._url, target, self._target)
            going = await self._look(recorder, outgoing, Phase.BEFORE)
            self._ready.set()
            due = time.monotonic()
            while going:
                due = max(due + self._interval_s, time.monotonic())
                if await asyncio.to_thread(self._stop.wait, due - time.monotonic()):
                    await self._settle(recorder, outgoing)
                    return
                going = await self._look(recorder, outgoing, Phase.DURING)

    async def _settle(self, recorder: Recorder, outgoing: Outgoing) -> None:
        """Look until two pages in a row say the same, and nothing runs."""
        until = time.monotonic() + self._settle_s
        pause_s = _FIRST_PAUSE_S
        while True:
            before = self.last
            if not await self._look(recorder, outgoing, Phase.AFTER):
                return
            came = self.last is not before
            if came and _is_quiet(before, self.last):
                return
            if self._hurry or time.monotonic() >= until:
                if came and not self._hurry:
                    self._write_note(f"the counters had not come to rest {self._settle_s:g} s after the run")
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _look(self, recorder: Recorder, outgoing: Outgoing, phase: Phase) -> bool:
        """Read the page once; whether it is worth another look."""
        exchange = await recorder.send(outgoing)
        if self._optional and exchange.status in _NO_PAGE:
            return False
        if exchange.status != 200 or exchange.ending is not Ending.COMPLETE:
            self._write_note(_failure(exchange))
            return not 300 <= exchange.status < 500 or exchange.status == 429
        try:
            page = read_page(exchange.response.body.decode("utf-8", "replace"), self._target.model)
        except ValueError as problem:
            self._write_note(f"the page cannot be read: {one_line(str(problem), 200)}")
            return False
        self._introduce(page)
        self.last = Sample(round(time.time(), 3), phase, page.values, page.of_model)
        self._lines.write(self.last.line())
        return True

    def _introduce(self, page: Page) -> None:
        """Write, once, which server's names the page has."""
        if self._page is not None:
            return
        self._page = page
        families = [self._redactor.text(one_line(name, 200)) for name in page.families[:_MOST_FAMILIES]]
        self._lines.write({"page": {"url": self._url, "server": page.server, "families": families}})
        if not page.server:
            self._write_note("the page has no counters that we know")

    def _write_note(self, what: str) -> None:
        """Write what is wrong; the same thing once."""
        note = self._redactor.text(f"{self._url}: {what}")
        if note != self.note:
            self.note = note
            self._lines.write({"time": round(time.time(), 3), "note": note})


def _asked(url: str, target: Target) -> Target:
    """The target as the page is asked for: on another host without anything of its own but the CA file."""
    if _origin(urlsplit(url)) == _origin(urlsplit(target.base_url)):
        return target
    return dataclasses.replace(
        target,
        key=None,
        headers={},
        secret_headers=frozenset(),
        client_cert=None,
        client_key=None,
    )


def _outgoing(url: str, asked: Target, target: Target) -> Outgoing:
    own = () if asked is target else merged_headers(target.contract.profile.headers, target.headers)
    left_out = (*own, "content-type")
    return Outgoing(url, b"", asked.credential, method="GET", headers=tuple((name, None) for name in left_out))


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Scheme, host and port (RFC 6454, section 4)."""
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _is_quiet(before: Sample | None, after: Sample | None) -> bool:
    if before is None or after is None or after.values.get(Quantity.RUNNING) or after.values.get(Quantity.WAITING):
        return False
    return all(before.values.get(name) == value for name, value in after.values.items() if name not in GAUGES)


def _failure(exchange: Exchange) -> str:
    if exchange.status == 0 or exchange.ending is not Ending.COMPLETE:
        return f"the page does not come ({exchange.ending}: {one_line(exchange.detail, 200)})"
    what = f"{exchange.status} {one_line(exchange.response.reason, 80)}".strip()
    hint = {401: "does it want a key of its own?", 404: "does the server have such a page?"}.get(exchange.status, "")
    return f"the page does not come: {what}" + (f"; {hint}" if hint else "")
