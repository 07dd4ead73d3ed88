"""From paths on the command line to targets and exchanges: what `check --from` judges."""

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamgauge.captures.bundle import exchanges_of, targets_of
from streamgauge.captures.capture import Capture, NotJudged
from streamgauge.captures.curl import looks_like_curl, read_curl
from streamgauge.captures.har import har_entries, read_har
from streamgauge.captures.matching import match
from streamgauge.captures.sources import Sources
from streamgauge.config import TargetFlags, resolve_targets
from streamgauge.contract.contract import Operation
from streamgauge.errors import UsageError
from streamgauge.target import Target
from streamgauge.wire.exchange import Evidence, Exchange

__all__ = ["Captures", "gather", "gather_targets"]

_NOTE_HINT = (
    "Without its request only a 200 answer may tell its operation: note `[request] METHOD PATH BODY` behind it."
)
_NOWHERE = "http://captured.invalid"
"""Stands for the base URL while flags are resolved; nothing is ever sent."""


@dataclass(slots=True)
class Captures:
    """
    Everything that is judged in place of a target's answers, and what is not.

    Attributes:
        names: the base names of the given paths.
        targets: as the captures complete them: model, origin, paths.
        files, bundles: how many were read.
        exchanges: to judge.
        not_judged: the captures that are left out.
        notes: what the user should know.
        keyed: names of targets that had a key when their bundle was recorded.
    """

    names: tuple[str, ...]
    targets: list[Target]
    files: int = 0
    bundles: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keyed: frozenset[str] = frozenset()

    @property
    def summary(self) -> str:
        """One sentence about how much is judged and what is not."""
        told = (
            f"judging {_counted(len(self.exchanges), 'exchange')} from {_sources_told(self.files, self.bundles)}; "
            "nothing is sent"
        )
        return f"{told}\n{self.left_out}" if self.not_judged else told

    @property
    def left_out(self) -> str:
        """How many captures are not judged, by reason."""
        reasons = Counter(each.reason for each in self.not_judged)
        if len(reasons) == 1:
            return f"{len(self.not_judged)} not judged: {self.not_judged[0].reason}"
        listed = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
        return f"{len(self.not_judged)} not judged: {listed}"


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
    gathered = Captures(found.names, list(targets), files=len(found.files), bundles=len(found.bundles))
    gathered.not_judged += found.unread
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
        raise UsageError(f"nothing in {', '.join(found.names)} can be judged", hint=_why_nothing(gathered))
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
    """The captures as exchanges: each without the secrets of all."""
    secrets = tuple(dict.fromkeys(secret for capture, _ in matched for secret in capture.secrets))
    return [
        capture.exchange(
            f"captured-{target.name}-{number:05d}",
            target=target.name,
            operation=operation.name,
            method=operation.method,
            more_secrets=secrets,
        )
        for number, (capture, operation) in enumerate(matched, 1)
    ]


def _why_nothing(gathered: Captures) -> str:
    if not gathered.not_judged:
        return f"There is no exchange in {_sources_told(gathered.files, gathered.bundles)}."
    return f"{gathered.left_out}\n{_NOTE_HINT}"


def _sources_told(files: int, bundles: int) -> str:
    told = [_counted(count, noun) for count, noun in ((files, "file"), (bundles, "bundle")) if count]
    return " and ".join(told)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
