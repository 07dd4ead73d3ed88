"""Reads a bundle: whatever is there, however the run ended."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamgauge.bundle.layout import (
    CHECKS,
    EXCHANGES,
    EXPLORED,
    FINDINGS,
    GATE,
    HONOUR,
    INFERRED,
    LOAD,
    META,
    RECORDS,
    SERVER_METRICS,
    TELEMETRY,
    TRACEABILITY,
    VERSION,
    exchange_from_line,
)
from streamgauge.errors import BundleError
from streamgauge.wire.exchange import Exchange

__all__ = ["Bundle", "read_lines"]


class Bundle:
    """
    The directory of a run, open for reading.

    Raises:
        BundleError: the directory is no bundle, or of a version that this code does not read.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory
        if not (directory / META).exists():
            raise BundleError(
                "no bundle: it has no meta.json", where=str(directory), hint="Name a directory under runs/."
            )
        self.meta: dict[str, Any] = self._whole(META, {})
        if not isinstance(self.meta, dict):
            raise BundleError("no bundle: its meta.json is no object", where=str(directory))
        if self.meta.get("version") != VERSION:
            raise BundleError(
                f"a bundle of version {self.meta.get('version', 'unknown')}; this streamgauge reads version {VERSION}",
                where=str(directory),
                hint="Was its meta.json written by another streamgauge, or by another program?",
            )

    @functools.cached_property
    def checks(self) -> list[dict[str, Any]]:
        """The declarations of the checks that judged the run."""
        found: list[dict[str, Any]] = self._whole(CHECKS, [])
        return found

    @functools.cached_property
    def findings(self) -> list[dict[str, Any]]:
        """One finding for each check, operation and target."""
        return list(read_lines(self.path / FINDINGS))

    @functools.cached_property
    def gate(self) -> dict[str, Any]:
        """The verdict; empty when the run did not get that far."""
        found: dict[str, Any] = self._whole(GATE, {})
        return found

    @functools.cached_property
    def inferred(self) -> list[dict[str, Any]]:
        """The schemas of answers that the documents leave open; none when they leave nothing open."""
        found: list[dict[str, Any]] = self._whole(INFERRED, [])
        return found

    @functools.cached_property
    def traceability(self) -> list[dict[str, Any]]:
        """What each operation's document says and which checks judge it; none for documents that we do not ship."""
        found: list[dict[str, Any]] = self._whole(TRACEABILITY, [])
        return found

    @functools.cached_property
    def honour(self) -> list[dict[str, Any]]:
        """What each target does about each property of a request; none before everything is judged."""
        found: list[dict[str, Any]] = self._whole(HONOUR, [])
        return found

    @functools.cached_property
    def explored(self) -> list[dict[str, Any]]:
        """A line for each exploration of each operation; none when nothing was drawn at random."""
        found: list[dict[str, Any]] = self._whole(EXPLORED, [])
        return found

    @functools.cached_property
    def load(self) -> dict[str, Any]:
        """What the load run was; empty when there was none."""
        found: dict[str, Any] = self._whole(LOAD, {})
        return found

    @functools.cached_property
    def server_metrics(self) -> list[dict[str, Any]]:
        """What the server counted beside a load run, and what was wrong with its page; empty when it was not asked."""
        return list(read_lines(self.path / SERVER_METRICS))

    @functools.cached_property
    def exchanges(self) -> dict[str, Exchange]:
        """Every exchange by its id, in the order of recording."""
        found: dict[str, Exchange] = {}
        for path in sorted(self.path.glob(EXCHANGES.format("*"))):
            blobs: dict[str, bytes] = {}
            for line in read_lines(path):
                try:
                    place = line["wire"]
                    blob = blobs.get(place["file"])
                    if blob is None:
                        blob = blobs[place["file"]] = (self.path / Path(place["file"]).name).read_bytes()
                    wire = blob[place["offset"] : place["offset"] + place["size"]]
                    if len(wire) != place["size"]:
                        raise BundleError(f"{place['file']} is cut off before {line['id']}", where=str(path))
                    found[line["id"]] = exchange_from_line(line, wire)
                except OSError as problem:
                    said = f"{line['wire']['file']} cannot be read: {problem.strerror or problem}"
                    raise BundleError(said, where=str(path)) from None
                except (KeyError, TypeError, ValueError) as problem:
                    raise BundleError(f"holds no exchange: {problem!r}", where=str(path)) from None
        return found

    def record_lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The lines of every record file, with the file's name: anchors and records."""
        return self._lines(RECORDS)

    def telemetry_lines(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The lines of every telemetry file, with the file's name: samples and calibrations."""
        return self._lines(TELEMETRY)

    def _lines(self, pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for path in sorted(self.path.glob(pattern.format("*"))):
            for line in read_lines(path):
                yield path.name, line

    def _whole(self, name: str, default: Any) -> Any:
        path = self.path / name
        if not path.exists():
            return default
        try:
            return json.loads(path.read_bytes())
        except OSError as problem:
            raise _unreadable(problem, path) from None
        except ValueError as problem:
            raise BundleError(f"not JSON: {problem}", where=str(path)) from None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file; a last line that was cut off by a crash is left out."""
    if not path.exists():
        return
    try:
        file = path.open("rb")
    except OSError as problem:
        raise _unreadable(problem, path) from None
    with file:
        for number, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                return
            try:
                yield json.loads(raw)
            except ValueError as problem:
                raise BundleError(f"not JSON: {problem}", where=f"{path}:{number}") from None


def _unreadable(problem: OSError, path: Path) -> BundleError:
    return BundleError(f"cannot be read: {problem.strerror or problem}", where=str(problem.filename or path))
