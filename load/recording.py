"""The record file of one process: an anchor line, then one line for each request, on disk as it happens."""

import time
from pathlib import Path

from streamgauge.bundle.layout import RECORDS
from streamgauge.bundle.writer import LineWriter
from streamgauge.metrics.record import Record
from streamgauge.redaction import Redactor

__all__ = ["RecordFile"]

_LONGEST_TEXT = 300


class RecordFile:
    """
    Opened after a fork, written by one process only.

    Args:
        directory: made when it is not there.
        process: unique among the run's processes.
        redactor: keeps the target's secrets out of what a server said.
    """

    def __init__(self, directory: Path, process: str, redactor: Redactor) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._redactor = redactor
        self._lines = LineWriter(directory / RECORDS.format(process))
        before = time.monotonic_ns()
        wall = time.time()
        monotonic_us = (before + time.monotonic_ns()) // 2000
        self._lines.write({"anchor": {"monotonic_us": monotonic_us, "wall": wall}})

    def write(self, record: Record) -> None:
        """Append a record; what the server said in it is redacted first, then cut, so that no secret is cut in two."""
        record.detail = self._redactor.text(record.detail)[:_LONGEST_TEXT]
        record.finish_reason = self._redactor.text(record.finish_reason)[:_LONGEST_TEXT]
        self._lines.write(record.line())

    def close(self) -> None:
        """Close the file; nothing is left to flush."""
        self._lines.close()
