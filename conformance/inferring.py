"""Writes down what answers looked like where the document leaves them open."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamgauge.conformance.check import Case
from streamgauge.conformance.predicates import chunked, object_answer, payloads
from streamgauge.contract.contract import JSON, SSE, Operation
from streamgauge.contract.inferred import inferred_schema

__all__ = ["inferred_lines"]


def inferred_lines(cases: Mapping[tuple[str, str], Iterable[Case]]) -> list[dict[str, Any]]:
    """
    The schema of the answers seen, for each operation and form whose answer no document describes.

    Args:
        cases: by target and operation.

    Returns:
        The content of `inferred.json`.
    """
    return [
        {"target": target, "operation": name, "form": form, "instances": len(seen), "schema": inferred_schema(seen)}
        for (target, name), found in cases.items()
        for form, seen in _seen(list(found))
        if seen
    ]


def _seen(cases: list[Case]) -> Iterator[tuple[str, list[Any]]]:
    operation: Operation | None = cases[0].operation if cases else None
    if operation is None:
        return
    if not operation.documents_body(200, JSON):
        yield "whole", [case.exchange.json.value for case in cases if object_answer(case)]
    if operation.streams and not operation.documents_body(200, SSE):
        yield "chunk", [chunk.object for case in cases if chunked(case) for chunk in payloads(case)]
