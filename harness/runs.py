"""Opens the bundle of a new run and writes down what is run, where and with what."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge.bundle.writer import BundleWriter
from streamgauge.contract.widening import widened
from streamgauge.target import Target

__all__ = ["describe_run", "open_bundle", "utc_now"]

RUNS = Path("runs")
"""Where bundles go by default, in the current folder."""


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def describe_run(command: str, targets: Sequence[Target], *, seed: int, notes: Sequence[str] = ()) -> dict[str, Any]:
    """The content of `meta.json`, its version apart."""
    return {
        "streamgauge": streamgauge.__version__,
        "started": utc_now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        "command": command,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "seed": seed,
        "notes": list(notes),
        "targets": [_describe_target(target) for target in targets],
    }


def _describe_target(target: Target) -> dict[str, Any]:
    auth = target.contract.profile.auth
    return {
        "name": target.name,
        "base_url": target.base_url,
        "model": target.model,
        "profile": target.contract.profile.name,
        "key": target.key is not None,
        "auth": {"header": auth.header, "scheme": auth.scheme},
        "insecure": target.insecure,
        "client_certificate": target.client_cert is not None,
        "proxy": target.proxy.url if target.proxy else None,
        "widened": [{"profile": target.contract.profile.name, "what": what} for what in widened(target.contract)],
        "operations": [
            {
                "name": operation.name,
                "method": operation.method,
                "path": target.path(operation),
                "url": target.url(operation),
                "family": operation.family,
                "document": operation.document.name,
                "document_sha256": operation.document.sha256,
            }
            for operation in target.contract.operations
        ],
    }


def open_bundle(
    command: str, targets: Sequence[Target], *, output: Path | None, seed: int = 0, notes: Sequence[str] = ()
) -> tuple[BundleWriter, dict[str, Any]]:
    """
    Make the run's directory and write `meta.json`.

    Args:
        command: `run`, `check` or `load`.
        targets: whom the run asks.
        output: the directory; `runs/<time>-<command>` by default.
        seed: of everything random in the run; a check has nothing random.
        notes: what the preflight had to say.

    Returns:
        The bundle, and the content of `meta.json` for whoever has to add to it.

    Raises:
        BundleError: the directory cannot be used.
    """
    writer = BundleWriter(output or _fresh(command))
    meta = describe_run(command, targets, seed=seed, notes=notes)
    writer.meta(meta)
    return writer, meta


def _fresh(command: str) -> Path:
    name = f"{utc_now():%Y%m%dT%H%M%SZ}-{command}"
    candidates = [RUNS / name, *(RUNS / f"{name}-{number}" for number in range(2, 1000))]
    return next(path for path in candidates if not path.exists())
