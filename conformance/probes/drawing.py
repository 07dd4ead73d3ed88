"""
What Schemathesis draws from a document: the cases of its coverage phase, and random bodies.

It judges a stream's envelope instead of its payload and asks for tokens without a limit; so it supplies the cases, and our
own recorder sends them.
"""

import base64
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import schemathesis
from hypothesis.configuration import storage_directory
from schemathesis import GenerationMode
from schemathesis.core import NOT_SET

from streamgauge.contract.contract import JSON, Operation

__all__ = ["Drawn", "Fuzzed", "alone", "coverage_cases", "covered", "fuzzed", "header_parameters"]

_KEYS = frozenset({"api-key", "authorization", "x-api-key", "xi-api-key"})
"""Header fields that carry keys, in lower case: the probes of `auth` try these."""


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
class Fuzzed:
    """Random bodies: those that were to break the schema, and those that were to keep it. JSON values, or raw bytes."""

    broken: tuple[Any, ...]
    valid: tuple[Any, ...]


def covered(operation: Operation) -> tuple[Drawn, ...]:
    """Every case of the coverage phase, those with other methods and other media types included, in Schemathesis' order."""
    return coverage_cases(_text(operation), operation.path, operation.method)


def fuzzed(operation: Operation, *, count: int, seed: int) -> Fuzzed:
    """
    Random bodies, the same whenever document, number and seed are; NUL is in none of them.

    Args:
        operation: whose requests they are.
        count: how many of each kind are drawn.
        seed: of the draws.
    """
    return _fuzzed(_text(operation), operation.path, operation.method, count, seed)


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


def _text(operation: Operation) -> str:
    """The document as text: a key under which cases are kept, however often a document is read."""
    return json.dumps(alone(operation), default=str)


@functools.lru_cache(maxsize=16)
def coverage_cases(document: str, path: str, method: str) -> tuple[Drawn, ...]:
    """The cases of one operation of a document, which is given as JSON text."""
    schema = schemathesis.openapi.from_dict(json.loads(document))
    cases = schema.iter_coverage_cases(
        schema[path][method],
        generation_modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE],
        generation_config=schema.config.generation,
    )
    return tuple(
        Drawn(
            case.method,
            b"" if case.body is NOT_SET else case.body,
            tuple((name.lower(), str(value)) for name, value in (case.headers or {}).items()),
        )
        for case in cases
    )


@functools.lru_cache(maxsize=16)
def _fuzzed(document: str, path: str, method: str, count: int, seed: int) -> Fuzzed:
    task = {"document": json.loads(document), "path": path, "method": method, "count": count, "seed": seed}
    source = files("streamgauge.conformance.probes").joinpath("fuzzing.py").read_text("utf-8")
    # Hypothesis' tables of Unicode take a second to make: the ones that `covered` has made are read. Nothing else is kept there.
    environment = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory().path.absolute())}
    with tempfile.TemporaryDirectory(prefix="streamgauge-") as folder:  # nothing in the user's folder is imported
        done = subprocess.run(
            [sys.executable, "-c", source],
            input=json.dumps(task).encode(),
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environment,
            check=True,
        )
    found = json.loads(done.stdout)
    return Fuzzed(*(tuple(map(_decoded, found[kind])) for kind in ("broken", "valid")))


def _decoded(body: Any) -> Any:
    """Bytes come as `{"base64": ...}`."""
    if isinstance(body, dict) and list(body) == ["base64"]:
        return base64.b64decode(body["base64"])
    return body
