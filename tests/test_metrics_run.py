"""Records of several workers on one clock."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter, LineWriter
from streamgauge.errors import BundleError
from streamgauge.metrics.record import Outcome, Record
from streamgauge.metrics.run import load_records

ANCHOR = {"anchor": {"monotonic_us": 5_000_000, "wall": 1_700_000_000.25}}


def line(**fields: Any) -> dict[str, Any]:
    """A record's line, as a worker writes it."""
    base = Record("1", "t", "o", True, 6_000_000, 7_000_000, Outcome.OK, scheduled=6_000_000)
    return {**base.line(), **fields}


def bundle(directory: Path, **files: list[dict[str, Any]]) -> Bundle:
    """A bundle with these record files."""
    BundleWriter(directory).meta({})
    for worker, lines in files.items():
        with LineWriter(directory / f"records-{worker}.jsonl") as writer:
            for each in lines:
                writer.write(each)
    return Bundle(directory)


def test_stamps_move_to_the_wall(tmp_path: Path) -> None:
    """Every stamp moves by the anchor's offset; lengths, counts and absent stamps stay."""
    sent = line(token_times=[6_100_000, 20_000], first_visible=6_120_000, connect_us=300)
    (found,) = load_records(bundle(tmp_path / "b", a=[ANCHOR, sent]))
    wall = 1_700_000_000_250_000 - 5_000_000
    assert (found.dispatched, found.scheduled, found.closed) == (
        wall + 6_000_000,
        wall + 6_000_000,
        wall + 7_000_000,
    )
    assert found.token_times == [wall + 6_100_000, wall + 6_120_000]
    assert found.first_visible == wall + 6_120_000
    assert found.connect_us == 300
    assert found.first_byte is None


def test_each_file_has_its_own_clock(tmp_path: Path) -> None:
    """Two workers that saw the same moment on different clocks agree about it."""
    other = {"anchor": {"monotonic_us": 1_000_000, "wall": 1_700_000_000.25}}
    records = load_records(
        bundle(tmp_path / "b", a=[ANCHOR, line()], b=[other, line(dispatched=2_000_000, closed=3_000_000)])
    )
    assert len({record.dispatched for record in records}) == 1
    assert len({record.closed for record in records}) == 1


def test_no_records(tmp_path: Path) -> None:
    """A bundle without a load run has no records."""
    assert load_records(bundle(tmp_path / "b")) == []


@pytest.mark.parametrize(
    "lines",
    [
        [line()],
        [line(), ANCHOR],
        [ANCHOR, {"id": "1"}],
        [ANCHOR, line(outcome="fine")],
        [ANCHOR, line(unheard_of=1)],
        [{"anchor": {"wall": 1.0}}],
    ],
    ids=json.dumps,
)
def test_refused(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    """A file without an anchor before its records, or with a line that is no record, is refused by name."""
    with pytest.raises(BundleError) as caught:
        load_records(bundle(tmp_path / "b", a=lines))
    assert caught.value.where.endswith("records-a.jsonl")
