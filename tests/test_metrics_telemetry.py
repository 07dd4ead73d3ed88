"""Telemetry lines: what is read, by schema, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from telemetry_lines import CALIBRATION, SAMPLE, WALL

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter, LineWriter
from streamgauge.errors import BundleError
from streamgauge.metrics.telemetry import Calibration, Errors, Sample, load_telemetry


def bundle(directory: Path, *lines: dict[str, Any]) -> Bundle:
    """A bundle with these telemetry lines."""
    BundleWriter(directory).meta({})
    with LineWriter(directory / "telemetry-0.jsonl") as writer:
        for line in lines:
            writer.write(line)
    return Bundle(directory)


def schema(name: str) -> Draft202012Validator:
    """The bundle's schema for one kind of line."""
    return Draft202012Validator({**catalog.schema("bundle"), "$ref": f"#/$defs/{name}"})


def test_telemetry(tmp_path: Path) -> None:
    """Samples and calibrations are read with the process that wrote them; what a later version adds is passed over."""
    lines = ({"sample": SAMPLE}, {"calibration": CALIBRATION}, {"sample": {**SAMPLE, "threads": 3}}, {"other": {}})
    found = load_telemetry(bundle(tmp_path / "b", *lines))
    expected = Sample("0", WALL, 1.0, 0.5, 20, 300, 900, 1500, 60.5, 64, None, 0)
    assert found.samples == (expected, expected)
    errors = Errors(64, 50, 100, 200, 400)
    assert found.calibrations == (Calibration("0", WALL, "before", 64, 4096, errors, errors),)
    assert found.processes == {"0"}
    for line in lines[:3]:
        schema("telemetry").validate(line)


@pytest.mark.parametrize(
    "line",
    [
        {"sample": {"time": 1.0}},
        {"sample": 3},
        {"calibration": {**CALIBRATION, "gap_error_us": None}},
        {"calibration": {}},
    ],
)
def test_no_telemetry(tmp_path: Path, line: dict[str, Any]) -> None:
    """A line that claims to be telemetry and is none is refused by name."""
    with pytest.raises(BundleError) as caught:
        load_telemetry(bundle(tmp_path / "b", line))
    assert caught.value.where.endswith("telemetry-0.jsonl")
    assert list(schema("telemetry").iter_errors(line))
