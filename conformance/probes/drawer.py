"""
Draws requests out of documents, in a process of its own: tasks come by standard input, a line for each goes to standard output.

Hypothesis mixes the constants of every module into its draws that it takes for the user's own, and reads each of them for
that. So this one runs as plain source text, where there is none: then the seed alone decides, whoever asks and whatever he
has imported.
"""

import base64
import contextlib
import gc
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.core import NOT_SET

__all__ = ["cover", "fuzz"]


def cover(document: dict[str, Any], path: str, method: str) -> Iterator[dict[str, Any]]:
    """
    The cases of the coverage phase, those with other methods and other media types included, in Schemathesis' order.

    Args:
        document: OpenAPI 3.1, with references into itself only.
        path: of the operation.
        method: of the operation.
    """
    schema = schemathesis.openapi.from_dict(document, config=SchemathesisConfig())
    cases = schema.iter_coverage_cases(
        schema[path][method],
        generation_modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE],
        generation_config=schema.config.generation,
    )
    for case in cases:
        headers = [(name.lower(), str(value)) for name, value in (case.headers or {}).items()]
        yield {"method": case.method, "body": _told(case.body), "headers": headers}


def fuzz(document: dict[str, Any], path: str, method: str, *, valid: bool, count: int, seed_: int) -> list[Any]:
    """
    Random bodies of an operation. None where there can be none.

    Args:
        document: OpenAPI 3.1, with references into itself only.
        path: of the operation.
        method: of the operation.
        valid: whether the bodies are to keep the schema or to break it, as Schemathesis means it.
        count: how many are drawn.
        seed_: of the draws.
    """
    # NUL makes many a case the same one, and what is not UTF-8 is no JSON: both have probes of their own.
    generation = GenerationConfig(allow_x00=False, codec="utf-8")
    config = SchemathesisConfig(projects=ProjectsConfig(default=ProjectConfig(generation=generation)))
    operation = schemathesis.openapi.from_dict(document, config=config)[path][method]
    found: list[Any] = []

    # No database, and no shrinking.
    @seed(seed_)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE if valid else GenerationMode.NEGATIVE))
    def each(case: schemathesis.Case[Any]) -> None:
        found.append(_told(case.body))

    with contextlib.suppress(Unsatisfiable):  # a schema that nothing keeps, or nothing breaks
        each()
    return found


def _told(body: Any) -> dict[str, Any]:
    """A body as JSON holds it: a value, or bytes; empty ones where there is no body."""
    if body is NOT_SET:
        return {"base64": ""}
    return {"base64": base64.b64encode(body).decode()} if isinstance(body, bytes) else {"json": body}


def _draw(task: dict[str, Any]) -> str:
    """One line."""
    where = (task["document"], task["path"], task["method"])
    count, seed_ = task["count"], task["seed"]
    drawn = {
        "covered": list(cover(*where)),
        "broken": fuzz(*where, valid=False, count=count, seed_=seed_) if count else [],
        "valid": fuzz(*where, valid=True, count=count, seed_=seed_) if count else [],
    }
    return json.dumps(drawn)


def _main() -> None:
    tasks = [{**task, "document": json.loads(task["document"])} for task in json.load(sys.stdin)]
    gc.set_threshold(50_000)  # nearly all that is made is the result
    # Forked, so that all is imported once.
    pool = ProcessPoolExecutor(min(len(tasks), os.cpu_count() or 1), mp_context=get_context("fork"))
    # A buffer of its own: with PYTHONUNBUFFERED, Python's loses what a full pipe did not take before a signal came (Ctrl-Z).
    with pool, open(sys.stdout.fileno(), "wb", closefd=False) as output:
        for line in pool.map(_draw, tasks):
            output.write(line.encode() + b"\n")
            output.flush()


if __name__ == "__main__":
    _main()
