"""The record file of one process."""

import json
from pathlib import Path

import orjson

from streamgauge.bundle.layout import RECORDS
from streamgauge.load.loopclock import now_us, wall_offset_us
from streamgauge.metrics.record import Record
from streamgauge.redaction import Redactor

__all__ = ["RecordFile"]

_LONGEST_TEXT = 300

_USUAL_REASONS = frozenset({"", "stop", "length", "tool_calls", "content_filter", "function_call", "eos"})
"""Finish reasons that no secret hides in."""


class RecordFile:
    """
    An anchor line, then one line for each request, on disk as it happens.

    Opened after a fork, written by one process only.

    Args:
        directory: made when it is not there.
        process: unique among the run's processes.
        redactor: keeps the target's secrets out of what a server said.
    """

    def __init__(self, directory: Path, process: str, redactor: Redactor) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._redactor = redactor
        self._file = (directory / RECORDS.format(process)).open("ab", buffering=0)
        monotonic_us = now_us()
        wall = (monotonic_us + wall_offset_us()) / 1_000_000
        self._file.write(_line({"anchor": {"monotonic_us": monotonic_us, "wall": wall}}))

    def write(self, record: Record) -> None:
        """
        Append a record; it has reached the operating system when this returns.

        What the server said in it is redacted first, then cut, so that no secret is cut in two.
        """
        if record.detail:
            record.detail = self._redactor.text(record.detail)[:_LONGEST_TEXT]
        if record.finish_reason not in _USUAL_REASONS:
            record.finish_reason = self._redactor.text(record.finish_reason)[:_LONGEST_TEXT]
        self._file.write(_line(record.line()))

    def close(self) -> None:
        """Close the file; nothing is left to flush."""
        self._file.close()


def _line(data: dict[str, object]) -> bytes:
    try:
        return orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a surrogate pair, which a server may well send in what it says
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace") + b"\n"
