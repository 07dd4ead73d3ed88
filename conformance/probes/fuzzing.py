"""
Draws random request bodies, in a process of its own: reads a task from standard input, writes the bodies to standard output.

Hypothesis mixes the constants of every module into its draws that it takes for the user's own. So this one runs as plain
source text, where there is none: then the seed alone decides, whoever asks and whatever he has imported.
"""

import base64
import contextlib
import json
import sys
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.core import NOT_SET

__all__ = ["draw"]


def draw(document: dict[str, Any], path: str, method: str, *, valid: bool, count: int, seed_: int) -> list[Any]:
    """
    Random bodies of an operation: JSON values, or bytes; empty ones where there is no body. None where there can be none.

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
        found.append(b"" if case.body is NOT_SET else case.body)

    with contextlib.suppress(Unsatisfiable):  # a schema that nothing keeps, or nothing breaks
        each()
    return found


def _main() -> None:
    task = json.load(sys.stdin)
    bodies = {
        kind: draw(
            task["document"],
            task["path"],
            task["method"],
            valid=kind == "valid",
            count=task["count"],
            seed_=task["seed"],
        )
        for kind in ("broken", "valid")
    }
    json.dump(bodies, sys.stdout, default=lambda body: {"base64": base64.b64encode(body).decode()})


if __name__ == "__main__":
    _main()
