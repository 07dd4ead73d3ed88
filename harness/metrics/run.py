"""Reads the records of a bundle and puts the clocks of all workers onto the wall."""

from dataclasses import replace
from typing import Any

from streamgauge.bundle.reader import Bundle
from streamgauge.errors import BundleError
from streamgauge.metrics.record import Anchor, Record

__all__ = ["load_records"]

_STAMPS = (
    "scheduled",
    "dispatched",
    "written",
    "headers",
    "first_byte",
    "first_event",
    "first_visible",
    "finish",
    "done",
    "closed",
)
"""The record's fields that are moments (token times besides); all others are lengths, counts or words."""


def load_records(bundle: Bundle) -> list[Record]:
    """
    Every record of every worker, its stamps in microseconds since 1970.

    Raises:
        BundleError: a file's records come before its anchor, or a line is no record.
    """
    anchors: dict[str, Anchor] = {}
    records: list[Record] = []
    for name, line in bundle.record_lines():
        where = str(bundle.path / name)
        try:
            if "anchor" in line:
                anchors[name] = Anchor(**line["anchor"])
                continue
            record = Record.from_line(line)
        except (KeyError, TypeError, ValueError) as problem:
            raise BundleError(f"a line is neither an anchor nor a record: {problem}", where=where) from None
        if name not in anchors:
            raise BundleError(
                "a record comes before the anchor line that ties its clock to the wall",
                where=where,
                hint="Each records-*.jsonl begins with an anchor line.",
            )
        records.append(_on_the_wall(record, anchors[name]))
    return records


def _on_the_wall(record: Record, anchor: Anchor) -> Record:
    offset = round(anchor.wall * 1_000_000) - anchor.monotonic_us
    moved: dict[str, Any] = {name: stamp + offset for name in _STAMPS if (stamp := getattr(record, name)) is not None}
    return replace(record, token_times=[time + offset for time in record.token_times], **moved)
