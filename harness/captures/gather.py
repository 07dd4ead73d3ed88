"""From paths on the command line to targets and exchanges: what `check --from` judges."""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.bundle.layout import META
from streamgauge.bundle.reader import Bundle
from streamgauge.captures.bundle import exchanges_of, targets_of
from streamgauge.captures.capture import Capture, NotJudged
from streamgauge.captures.curl import looks_like_curl, read_curl
from streamgauge.captures.har import har_entries, read_har
from streamgauge.captures.matching import match
from streamgauge.config import TargetFlags, resolve_targets
from streamgauge.contract.contract import Operation
from streamgauge.errors import UsageError
from streamgauge.target import Target
from streamgauge.wire.exchange import Evidence, Exchange

__all__ = ["Captures", "Sources", "gather", "gather_targets", "sources"]

_HINT = "Looked for a bundle (a directory with meta.json), HAR files, and files that begin as `curl -i` prints: HTTP/1.1 200 OK."
_NOTE_HINT = (
    "Without its request only a 200 answer may tell its operation: note `[request] METHOD PATH BODY` behind it."
)
_NOWHERE = "http://captured.invalid"
"""Stands for the base URL while flags are resolved; nothing is ever sent."""


@dataclass(frozen=True, slots=True)
class Sources:
    """
    What the paths hold.

    Attributes:
        names: the base names of the given paths.
        bundles: stored runs.
        files: name → content of every file that may hold captures.
    """

    names: tuple[str, ...]
    bundles: list[Bundle]
    files: dict[str, bytes]


@dataclass(slots=True)
class Captures:
    """
    Everything that is judged in place of a target's answers, and what is not.

    Attributes:
        names: the base names of the given paths.
        targets: as the captures complete them: model, origin, paths.
        files: how many files and bundles were read.
        exchanges: to judge.
        not_judged: the captures that are left out.
        notes: what the user should know.
        keyed: names of targets that had a key when their bundle was recorded.
    """

    names: tuple[str, ...]
    targets: list[Target]
    files: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keyed: frozenset[str] = frozenset()

    @property
    def summary(self) -> str:
        """One sentence about how much is judged and what is not."""
        told = (
            f"judging {_counted(len(self.exchanges), 'exchange')} from {_counted(self.files, 'file')}; nothing is sent"
        )
        if not self.not_judged:
            return told
        reasons = Counter(each.reason for each in self.not_judged)
        listed = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
        return f"{told}\n{len(self.not_judged)} not judged: {listed}"


def sources(paths: Sequence[Path]) -> Sources:
    """
    Find out by looking what the paths hold.

    Raises:
        UsageError: a path is not there, or holds nothing that can be judged.
        BundleError: a directory with meta.json is no bundle of our version.
    """
    found = Sources(tuple(dict.fromkeys(path.resolve().name for path in paths)), [], {})
    for path in paths:
        if not path.exists():
            raise UsageError("there is no such file or directory", where=f"--from {path}", hint=_HINT)
        if (path / META).is_file():
            found.bundles.append(Bundle(path))
            continue
        files = dict(_read(path))
        if not files:
            raise UsageError("holds nothing that can be judged", where=f"--from {path}", hint=_HINT)
        clash = len(paths) > 1 and not found.files.keys().isdisjoint(files)
        found.files.update({f"{path.name}/{name}" if clash else name: data for name, data in files.items()})
    return found


def _read(path: Path) -> Iterator[tuple[str, bytes]]:
    """The files below, those that hold neither curl's output nor a HAR left out; names relative to `path`."""
    below = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in below:
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        if not file.is_file() or any(part.startswith(".") for part in name.split("/")):
            continue
        try:
            with file.open("rb") as opened:
                start = opened.read(64)
                wanted = looks_like_curl(start) or file.suffix in (".har", ".json") or not path.is_dir()
                data = start + opened.read() if wanted else b""
        except OSError as problem:
            raise UsageError(f"cannot be read: {problem.strerror or problem}", where=str(file)) from None
        if wanted and (looks_like_curl(start) or har_entries(data) is not None):
            yield name, data


def gather_targets(found: Sources, flags: TargetFlags, environment: Mapping[str, str] | None = None) -> list[Target]:
    """
    The targets whose answers the captures are taken for.

    With `--spec`, the named documents'; else those of the bundles.

    Raises:
        UsageError: no document is named, and none can be known.
    """
    environment = os.environ if environment is None else environment
    if not found.files and not flags.spec:
        return targets_of(found.bundles, profile=flags.profile, model=flags.model)
    known = flags.with_environment(environment)
    models = {target["model"] for bundle in found.bundles for target in bundle.meta.get("targets", [])}
    if known.model is None and len(models) == 1:
        known = dataclasses.replace(known, model=models.pop())
    flags = dataclasses.replace(
        flags, target=None, base_url=_NOWHERE, spec=known.spec, profile=known.profile, model=known.model
    )
    return [dataclasses.replace(target, base_url="") for target in resolve_targets(flags, {})]


def gather(found: Sources, targets: Sequence[Target]) -> Captures:
    """
    Match every capture with an operation of each target.

    Raises:
        UsageError: a capture could belong to several operations, or none belongs to any.
    """
    gathered = Captures(found.names, list(targets), files=len(found.files) + len(found.bundles))
    captures = list(_captures(found, targets, gathered))
    for index, named in enumerate(targets):
        matched = _matched(captures, named, gathered)
        target = gathered.targets[index] = _completed(named, matched, gathered)
        gathered.exchanges += _exchanges(matched, target)
    gathered.keyed = frozenset(
        described["name"]
        for bundle in found.bundles
        for described in bundle.meta.get("targets", [])
        if described.get("key")
    )
    for number, bundle in enumerate(found.bundles, 1):
        own = list(exchanges_of(bundle, number if len(found.bundles) > 1 else 0, targets))
        gathered.exchanges += own
        left = max(len(bundle.exchanges) - len(own), 0)
        gathered.not_judged += [NotJudged(bundle.path.name, "an exchange of no operation named here")] * left
    if not gathered.exchanges:
        raise UsageError(f"nothing in {', '.join(found.names)} can be judged", hint=f"{gathered.summary}\n{_NOTE_HINT}")
    return gathered


def _captures(found: Sources, targets: Sequence[Target], gathered: Captures) -> Iterator[Capture]:
    key_header = targets[0].contract.profile.auth.header
    for name, data in found.files.items():
        entries = None if looks_like_curl(data[:64]) else har_entries(data)
        read = read_har(entries, name, key_header) if entries is not None else [read_curl(data, name)]
        for each in read:
            if isinstance(each, Capture):
                yield each
            else:
                gathered.not_judged.append(each)


def _matched(captures: Sequence[Capture], target: Target, gathered: Captures) -> list[tuple[Capture, Operation]]:
    matched = []
    for capture in captures:
        operation = match(capture, target)
        if isinstance(operation, str):
            gathered.not_judged.append(NotJudged(capture.name, operation, target.name))
        else:
            matched.append((capture, operation))
    return matched


def _completed(target: Target, matched: Sequence[tuple[Capture, Operation]], gathered: Captures) -> Target:
    """The target with what the captures tell: the model most often asked for, and the origin when it is one."""
    model = target.model
    if not model and matched:
        asked = Counter(name for capture, _ in matched if (name := _model(capture)))
        if asked:
            model = asked.most_common(1)[0][0]
            gathered.notes.append(
                f"{target.name}: no model named; took the one most often asked for, {model} "
                f"({asked[model]} of {asked.total()} requests)"
            )
    origins = {capture.origin for capture, _ in matched} - {""}
    if len(origins) > 1:
        gathered.notes.append(
            f"{target.name}: the captures come from {len(origins)} hosts: {', '.join(sorted(origins))}"
        )
    told = {operation.name: capture.path for capture, operation in matched if capture.path}
    base_url = origins.pop() if len(origins) == 1 and target.base_url == "" else target.base_url
    return dataclasses.replace(target, model=model, base_url=base_url, paths={**told, **target.paths})


def _sent(capture: Capture) -> dict[str, object] | None:
    try:
        body = json.loads(capture.body) if Evidence.REQUEST in capture.holds else None
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _model(capture: Capture) -> str:
    model = (_sent(capture) or {}).get("model")
    return model if isinstance(model, str) else ""


def _exchanges(matched: Sequence[tuple[Capture, Operation]], target: Target) -> list[Exchange]:
    """The captures as exchanges: each without the secrets of all, the two forms of one request paired."""
    secrets = tuple(dict.fromkeys(secret for capture, _ in matched for secret in capture.secrets))
    exchanges = [
        capture.exchange(
            f"captured-{target.name}-{number:05d}",
            target=target.name,
            operation=operation.name,
            method=operation.method,
            more_secrets=secrets,
        )
        for number, (capture, operation) in enumerate(matched, 1)
    ]
    forms: dict[str, set[bool]] = {}
    keys = [_canonical(capture, operation) for capture, operation in matched]
    for key, exchange in zip(keys, exchanges, strict=True):
        forms.setdefault(key, set()).add(exchange.wants_stream)
    return [
        dataclasses.replace(exchange, pair=key) if key and len(forms[key]) == 2 else exchange
        for key, exchange in zip(keys, exchanges, strict=True)
    ]


def _canonical(capture: Capture, operation: Operation) -> str:
    """The same for requests that differ in their form only; empty when the body is not known."""
    body = _sent(capture)
    if body is None:
        return ""
    bare = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    digest = hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()
    return f"{operation.name}/{digest[:16]}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
