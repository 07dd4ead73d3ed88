"""Finds out by looking what paths hold: bundles, HAR files, and what `curl -i` printed."""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.bundle.layout import META
from streamgauge.bundle.reader import Bundle
from streamgauge.captures.capture import NotJudged
from streamgauge.captures.curl import looks_like_curl
from streamgauge.captures.har import har_entries
from streamgauge.captures.secrets import redact_text
from streamgauge.errors import UsageError

__all__ = ["Sources", "sources"]

_HINT = "Looked for a bundle (a directory with meta.json), HAR files, and files that begin as `curl -i` prints: HTTP/1.1 200 OK."


@dataclass(frozen=True, slots=True)
class Sources:
    """
    What the paths hold.

    Attributes:
        names: the base names of the given paths.
        bundles: stored runs.
        files: name → content of every file that holds captures.
        unread: files that should hold captures by their names, and do not.
    """

    names: tuple[str, ...]
    bundles: list[Bundle]
    files: dict[str, bytes]
    unread: list[NotJudged] = field(default_factory=list)


def sources(paths: Sequence[Path]) -> Sources:
    """
    Find out by looking what the paths hold.

    Raises:
        UsageError: a path is not there, cannot be read, or holds nothing that can be judged.
        BundleError: a directory with meta.json is no bundle of our version.
    """
    paths = list({path.resolve(): path for path in paths}.values())
    found = Sources(tuple(dict.fromkeys(redact_text(path.resolve().name) for path in paths)), [], {})
    for path in paths:
        try:
            _look_into(path, found)
        except OSError as problem:
            where = str(problem.filename or f"--from {path}")
            hint = "May you read it, and what lies in it?"
            raise UsageError(f"cannot be read: {problem.strerror or problem}", where=where, hint=hint) from None
    return found


def _look_into(path: Path, found: Sources) -> None:
    if not path.exists():
        raise UsageError("there is no such file or directory", where=f"--from {path}", hint=_HINT)
    if (path / META).is_file():
        found.bundles.append(Bundle(path))
        return
    files = dict(_read(path, found.unread))
    if not files:
        raise UsageError("holds nothing that can be judged", where=f"--from {path}", hint=_HINT)
    # Folders of one name, such as those of several runs, may hold files of one name.
    prefixes = itertools.chain(["", f"{path.name}/"], (f"{path.name}-{number}/" for number in itertools.count(2)))
    prefix = next(each for each in prefixes if found.files.keys().isdisjoint(each + name for name in files))
    found.files.update({prefix + name: data for name, data in files.items()})


def _read(path: Path, unread: list[NotJudged]) -> Iterator[tuple[str, bytes]]:
    """The files below, those that hold neither curl's output nor a HAR left out; names relative to `path`."""
    for file in sorted(_files_below(path)) if path.is_dir() else [path]:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        if not file.is_file() or any(part.startswith(".") for part in name.split("/")):
            continue
        with file.open("rb") as opened:
            start = opened.read(64)
            wanted = looks_like_curl(start) or file.suffix in (".har", ".json") or not path.is_dir()
            data = start + opened.read() if wanted else b""
        if wanted and (looks_like_curl(start) or har_entries(data) is not None):
            yield name, data
        elif file.suffix == ".har":
            unread.append(NotJudged(name, "no HAR 1.2 file: was it cut off?"))


def _files_below(path: Path) -> Iterator[Path]:
    """Every file of a folder and its folders; what cannot be looked into is an error, not a silence."""

    def refuse(problem: OSError) -> None:
        raise problem

    for folder, _, names in os.walk(path, onerror=refuse):
        yield from (Path(folder, name) for name in names)
