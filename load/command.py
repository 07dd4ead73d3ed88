"""The command line and the environment under which `streamgauge load` starts Locust."""

import contextlib
import dataclasses
import json
import os
import site
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from streamgauge import catalog
from streamgauge.config import KEY_VARIABLE
from streamgauge.contract.document import Document, load_document
from streamgauge.contract.profile import load_profile
from streamgauge.errors import UsageError
from streamgauge.load.arguments import HEADERS_VARIABLE
from streamgauge.load.plan import LoadPlan
from streamgauge.load.scenario import scenario_of
from streamgauge.load.standby import without_locust
from streamgauge.target import Target

__all__ = [
    "LOCUSTFILE",
    "PARENT_VARIABLE",
    "locust_arguments",
    "locust_environment",
    "port_for_workers",
    "refuse_owned",
]

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
"""The locustfile that ships with streamgauge."""

PARENT_VARIABLE = "STREAMGAUGE_LOAD_PARENT"
"""Set in the environment of a Locust that `streamgauge load` has started, which then ends with its parent."""

_OWNED: dict[str, str] = {
    "-f": "our own locustfile; run `locust` itself for another",
    "--locustfile": "our own locustfile; run `locust` itself for another",
    "-H": "--base-url of streamgauge, before the --",
    "--host": "--base-url of streamgauge, before the --",
    "-u": "--users of streamgauge, before the --",
    "--users": "--users of streamgauge, before the --",
    "-t": "--duration of streamgauge, before the --",
    "--run-time": "--duration of streamgauge, before the --",
    "--headful": "`locust` itself, for its web UI",
    "--autostart": "`locust` itself, for its web UI",
}
"""Locust's options that the bundle would then describe wrongly → what to use instead."""


def refuse_owned(arguments: tuple[str, ...]) -> None:
    """
    Make sure that Locust's own arguments do not contradict the plan.

    Raises:
        UsageError: one of them does.
    """
    for argument in arguments:
        name = argument.partition("=")[0]
        name = name if name.startswith("--") else name[:2]
        if name in _OWNED:
            raise UsageError(f"{name} is not passed on to Locust", hint=f"Use instead: {_OWNED[name]}.")


def locust_arguments(plan: LoadPlan, directory: Path, scratch: Path) -> list[str]:
    """
    The arguments of Locust's own command line that make it run the plan.

    Args:
        plan: what to run.
        directory: where the records go.
        scratch: an empty folder for what the child has to be told in files.
    """
    target = plan.target
    options: dict[str, object] = {
        "--users": plan.users,
        "--spawn-rate": plan.users,
        "--run-time": f"{plan.duration_s}s",
        "--stop-timeout": plan.drain_s,
        "--host": target.base_url,
        "--exit-code-on-error": 0,
        "--sg-profile": _profile(plan, scratch),
        "--sg-model": target.model,
        "--sg-target": target.name,
        "--sg-scenario": _scenario(plan, scratch),
        "--sg-output": directory.resolve(),
        **{
            name: path and Path(path).resolve()
            for name, path in (
                ("--sg-ca-file", target.ca_file),
                ("--sg-client-cert", target.client_cert),
                ("--sg-client-key", target.client_key),
            )
        },
    }
    repeated = {
        "--sg-spec": _documents(plan, scratch),
        "--sg-path": [f"{name}={path}" for name, path in target.paths.items()],
        "--sg-header": [f"{name}={value}" for name, value in _headers(target, secret=False).items()],
    }
    return [
        *("-f", str(LOCUSTFILE), "--headless", "--only-summary"),
        *(f"{name}={value}" for name, value in options.items() if value is not None and value != ""),
        *(f"{name}={value}" for name, values in repeated.items() for value in values),
        *(["--sg-insecure"] if target.insecure else []),
        *plan.locust_arguments,
    ]


@contextlib.contextmanager
def port_for_workers(arguments: Sequence[str]) -> Iterator[list[str]]:
    """
    The arguments, with a port of its own for the workers that `--processes` forks, so that two runs on one machine do not meet.

    On Linux the port is held while the block runs: nobody gets it by chance before Locust listens there. Both set
    SO_REUSEADDR, and only one of them listens, which Linux allows (socket(7)).
    """
    names = {argument.partition("=")[0] for argument in arguments}
    if "--processes" not in names or names & {"--master-port", "--master-bind-port"}:
        yield [*arguments]
        return
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        if sys.platform != "linux":
            holder.close()
        yield [f"--master-port={port}", f"--master-bind-port={port}", "--master-bind-host=127.0.0.1", *arguments]


def locust_environment(plan: LoadPlan, environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """
    The environment of that Locust: the secrets in, and the user's own settings of Locust out.

    Locust reads LOCUST_* variables, ~/.locust.conf, and locust.conf and pyproject.toml of the current folder. Another
    home takes care of the second; where user-wide packages lie does not move with it.
    """
    return without_locust(environment) | {
        "HOME": str(scratch),
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONUNBUFFERED": "1",
        PARENT_VARIABLE: str(os.getpid()),
        KEY_VARIABLE: plan.target.key or "",
        HEADERS_VARIABLE: json.dumps(_headers(plan.target, secret=True)),
    }


def _headers(target: Target, *, secret: bool) -> dict[str, str]:
    """The user's own header fields: the secret ones go by the environment, which no process list shows."""
    return {name: value for name, value in target.headers.items() if target.is_secret_header(name) is secret}


def _documents(plan: LoadPlan, scratch: Path) -> list[str]:
    """The documents of the mix, each once, as `--sg-spec` takes them."""
    documents = {part.operation.document.name: part.operation.document for part in plan.mix}
    return [_document(document, scratch) for document in documents.values()]


def _document(document: Document, scratch: Path) -> str:
    if document.name in catalog.DOCUMENTS and load_document(document.name).sha256 == document.sha256:
        return document.name
    # The child gets what was read, not the path it was read from: the file may have changed meanwhile.
    path = scratch / f"{document.name}.json"
    path.write_text(json.dumps(document.raw, default=str), encoding="utf-8")
    return str(path)


def _scenario(plan: LoadPlan, scratch: Path) -> str:
    path = scratch / "scenario.json"
    path.write_text(json.dumps(scenario_of(plan), indent=2), encoding="utf-8")
    return str(path)


def _profile(plan: LoadPlan, scratch: Path) -> str:
    profile = plan.target.contract.profile
    if profile.name in catalog.profile_names() and load_profile(profile.name) == profile:
        return profile.name
    path = scratch / "profile" / f"{profile.name}.json"
    path.parent.mkdir()
    path.write_text(json.dumps(dataclasses.asdict(profile)), encoding="utf-8")
    return str(path)
