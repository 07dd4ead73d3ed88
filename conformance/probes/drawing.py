"""
What Schemathesis draws from a document: the cases of its coverage phase, and random bodies.

It judges a stream's envelope instead of its payload and asks for tokens without a limit; so it supplies the cases, and our
own recorder sends them. All operations are drawn side by side, by a process of its own.
"""

import base64
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from hypothesis.configuration import storage_directory

from streamgauge.contract.contract import JSON, Operation
from streamgauge.errors import CannotTellError
from streamgauge.text import one_line

__all__ = ["Drawing", "Drawn", "Task", "alone", "begin", "drawing_of", "header_parameters", "task_of"]

_KEYS = frozenset({"api-key", "authorization", "x-api-key", "xi-api-key"})
"""Header fields that carry keys, in lower case: the probes of `auth` try these."""

_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Drawn:
    """
    One case of the coverage phase.

    Attributes:
        method: how it is asked.
        body: a JSON value, or raw bytes; empty bytes where there is no body.
        headers: the header fields that it sets beside the usual ones, in lower case.
    """

    method: str
    body: Any
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """
    What is to be drawn.

    Attributes:
        document: OpenAPI 3.1 as JSON text, with references into itself only.
        path: of the operation.
        method: of the operation.
        count: how many random bodies of each kind are drawn; 0 for none.
        seed: of the random draws.
    """

    document: str
    path: str
    method: str
    count: int = 0
    seed: int = 0


class _Process:
    """The process that draws, from its start to its end: a line for each task, in their order."""

    def __init__(self, tasks: list[Task]) -> None:
        # Hypothesis' tables of Unicode take a second to make: those that are there are read. Nothing else is kept there.
        environment = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory().path.absolute())}
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - as long-lived as the process
        with tempfile.TemporaryFile() as given:  # no pipe: it is read only when everything is imported
            given.write(json.dumps([asdict(task) for task in tasks]).encode())
            given.seek(0)
            # By -P nothing is imported from the user's folder.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _source()],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env=environment,
            )
        self._lines: list[bytes] = []
        self._wanted = len(tasks)
        self.reason = ""
        """Why it has ended before its time."""

    def line(self, number: int) -> bytes | None:
        """What was drawn for a task, as soon as it is there; None when the process has ended without it."""
        assert self._process.stdout
        while len(self._lines) <= number and not self._process.stdout.closed:
            line = self._process.stdout.readline()
            if line.endswith(b"\n"):  # or it was ended within it
                self._lines.append(line)
            if not line.endswith(b"\n") or len(self._lines) == self._wanted:
                self._end()
        return self._lines[number] if number < len(self._lines) else None

    def _end(self) -> None:
        assert self._process.stdout
        self._process.stdout.close()
        code = self._process.wait()
        with self._said:
            self._said.seek(0)
            said = [line for line in self._said.read().decode("utf-8", "replace").splitlines() if line.strip()]
        self.reason = said[-1] if said else f"its process ended with code {code}"


def _source() -> str:
    return files("streamgauge.conformance.probes").joinpath("drawer.py").read_text("utf-8")


class Drawing:
    """What is drawn from one operation: whoever asks for it waits until it is there."""

    def __init__(self, task: Task, process: _Process, number: int) -> None:
        self._task = task
        self._process = process
        self._number = number

    @functools.cached_property
    def _found(self) -> dict[str, Any]:
        line = self._process.line(self._number)
        if line is None:
            raise CannotTellError(
                f"Schemathesis cannot draw requests: {one_line(self._process.reason, _LONGEST_REASON)}",
                where=f"{self._task.method} {self._task.path}",
                hint="The other probes do without: name their topics by --select (form, law, refusal, auth, ...).",
            )
        found: dict[str, Any] = json.loads(line)
        return found

    @functools.cached_property
    def covered(self) -> tuple[Drawn, ...]:
        """
        Every case of the coverage phase, those with other methods and media types included, in Schemathesis' order.

        Raises:
            CannotTellError: Schemathesis does not get along with the document, or its process was ended; so do the others.
        """
        return tuple(
            Drawn(case["method"], _body(case["body"]), tuple((name, value) for name, value in case["headers"]))
            for case in self._found["covered"]
        )

    @functools.cached_property
    def broken(self) -> tuple[Any, ...]:
        """Random bodies that were to break the schema: JSON values, or raw bytes. NUL is in none of them."""
        return tuple(map(_body, self._found["broken"]))

    @functools.cached_property
    def valid(self) -> tuple[Any, ...]:
        """Random bodies that were to keep it."""
        return tuple(map(_body, self._found["valid"]))


_BEGUN: dict[Task, Drawing] = {}
"""Drawing takes seconds, and is the same each time: it is done once in a process."""


def begin(tasks: Iterable[Task]) -> list[Drawing]:
    """Start drawing, side by side and beside whatever the caller does next; what was drawn before is not drawn again."""
    tasks = list(tasks)
    new = list(dict.fromkeys(task for task in tasks if task not in _BEGUN))
    if new:
        process = _Process(new)
        _BEGUN.update({task: Drawing(task, process, number) for number, task in enumerate(new)})
    return [_BEGUN[task] for task in tasks]


def task_of(operation: Operation, *, count: int = 0, seed: int = 0) -> Task:
    """The task for an operation: the same for equal documents, however often one is read."""
    return Task(json.dumps(alone(operation), default=str), operation.path, operation.method, count, seed)


def drawing_of(operation: Operation, *, count: int = 0, seed: int = 0) -> Drawing:
    """What is drawn from an operation, or being drawn."""
    return begin([task_of(operation, count=count, seed=seed)])[0]


def alone(operation: Operation) -> dict[str, Any]:
    """The operation's request as a document of its own, its schemas normalised: what OpenAPI 3.1 calls a schema."""
    body = {"required": True, "content": {JSON: {**operation.request_examples, "schema": operation.request_schema}}}
    described = {
        "parameters": list(header_parameters(operation)),
        "requestBody": body,
        "responses": {"200": {"description": "An answer."}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": operation.document.name, "version": "1"},
        "paths": {operation.path: {operation.method.lower(): described}},
        "components": operation.components,
    }


def header_parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    """The header fields that the operation describes, as written, but for keys."""
    for parameter in operation.definition.get("parameters", ()):
        if parameter.get("in") == "header" and str(parameter.get("name")).lower() not in _KEYS:
            yield parameter


def _body(told: dict[str, Any]) -> Any:
    """What `drawer` says of a body: `{"json": ...}` or `{"base64": ...}`."""
    return told["json"] if "json" in told else base64.b64decode(told["base64"])
