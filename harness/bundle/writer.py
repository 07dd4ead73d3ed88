"""Writes a bundle as the run goes: each line is on disk before the next thing happens."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from streamgauge.bundle.layout import (
    BLOBS,
    CHECKS,
    EXCHANGES,
    EXPLORED,
    FINDINGS,
    GATE,
    INFERRED,
    LOAD,
    META,
    TRACEABILITY,
    VERSION,
    exchange_line,
)
from streamgauge.errors import BundleError
from streamgauge.wire.exchange import Exchange

__all__ = ["BundleWriter", "ExchangeWriter", "LineWriter", "write_whole"]


class LineWriter:
    """Appends JSON lines to one file; the only writer of that file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, line: dict[str, Any]) -> None:
        """Append one line; it has reached the operating system when this returns."""
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        self._file.write(_encoded(text + "\n"))

    def close(self) -> None:
        """Close the file; nothing is left to flush."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ExchangeWriter:
    """Appends exchanges: a line each, and their bytes in a blob file beside it."""

    def __init__(self, directory: Path, process: str) -> None:
        self._lines = LineWriter(directory / EXCHANGES.format(process))
        self._blob_name = BLOBS.format(process)
        self._blobs = (directory / self._blob_name).open("ab", buffering=0)
        self._offset = self._blobs.seek(0, os.SEEK_END)

    def write(self, exchange: Exchange) -> None:
        """Append one exchange: its bytes first, so that a line never points to nothing."""
        self._blobs.write(exchange.wire)
        self._lines.write(exchange_line(exchange, self._blob_name, self._offset))
        self._offset += len(exchange.wire)

    def close(self) -> None:
        """Close both files."""
        self._lines.close()
        self._blobs.close()


class BundleWriter:
    """
    The directory of a run, open for writing.

    Raises:
        BundleError: the directory exists and holds something already, or cannot be made.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            occupied = any(directory.iterdir())
        except OSError as problem:
            raise BundleError(f"cannot be used: {problem.strerror or problem}", where=str(directory)) from None
        if occupied:
            raise BundleError(
                "the output directory is not empty", where=str(directory), hint="Name a new one: --output."
            )

    def meta(self, meta: dict[str, Any]) -> None:
        """Write what was run, where and with what."""
        self._whole(META, {"version": VERSION, **meta})

    def checks(self, checks: list[dict[str, Any]]) -> None:
        """Write the declarations of the checks that judge this run."""
        self._whole(CHECKS, checks)

    def gate(self, gate: dict[str, Any]) -> None:
        """Write the verdict."""
        self._whole(GATE, gate)

    def inferred(self, lines: list[dict[str, Any]]) -> None:
        """Write the schemas of the answers that the documents leave open."""
        self._whole(INFERRED, lines)

    def traceability(self, lines: list[dict[str, Any]]) -> None:
        """Write which checks judge what the documents say."""
        self._whole(TRACEABILITY, lines)

    def explored(self, lines: list[dict[str, Any]]) -> None:
        """Write what was drawn at random, and what came of it."""
        self._whole(EXPLORED, lines)

    def load(self, load: dict[str, Any]) -> None:
        """Write (again) what the load run was and how it went."""
        self._whole(LOAD, load)

    def findings(self) -> LineWriter:
        """The file of findings, to append to."""
        return LineWriter(self.path / FINDINGS)

    def exchanges(self, process: str) -> ExchangeWriter:
        """The exchanges of one process, to append to."""
        return ExchangeWriter(self.path, process)

    def _whole(self, name: str, data: Any) -> None:
        write_whole(self.path / name, data)


def write_whole(path: Path, data: Any) -> None:
    """Write a JSON file at once: a reader sees the old file or the new one, never half of it."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_bytes(_encoded(json.dumps(data, ensure_ascii=False, indent=1) + "\n"))
    draft.replace(path)


def _encoded(text: str) -> bytes:
    # A lone surrogate, which a server may have sent, has no UTF-8: inside a JSON string Python's escape is JSON's.
    return text.encode("utf-8", "backslashreplace")
