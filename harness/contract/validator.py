"""Schemas compiled twice: jsonschema-rs answers yes or no quickly, jsonschema names the defect when it is no."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from streamgauge.errors import DocumentError

__all__ = ["DISPUTED", "Locate", "Problem", "Validator", "pointer_of"]


DISPUTED = "disputed"
"""In the place of a keyword: jsonschema-rs refuses, jsonschema does not, and nobody can say which is right (1e400, NaN)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """
    One place where an instance breaks its schema.

    Attributes:
        pointer: JSON pointer into the instance; empty for the whole.
        keyword: the schema keyword that failed, for instance `required`; or :data:`DISPUTED`.
        message: what is wrong there, in words.
    """

    pointer: str
    keyword: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '(the whole)'}: {self.message}"


Locate = Callable[[Sequence[str | int]], tuple[str, str]]
"""From a path inside `{"allOf": [schema], "components": ...}` to its JSON pointer in the document, and file and line."""


class Validator:
    """
    One schema of a document, with the components beside it that it refers to.

    Args:
        schema: JSON Schema 2020-12.
        components: what `#/components/...` in it means.
        locate: says where a broken part of it stands.

    Attributes:
        root: what is compiled: references in it are pointers into itself.

    Raises:
        DocumentError: the schema is none.
    """

    def __init__(self, schema: Any, components: dict[str, Any] | None = None, locate: Locate | None = None) -> None:
        self.root = root = {"allOf": [schema], "components": components or {}}
        try:
            self._gate = jsonschema_rs.Draft202012Validator(root, validate_formats=False)
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as problem:
            said = str(problem).strip().split("\n")[0]
            pointer, where = locate(getattr(problem, "instance_path", ())) if locate else ("", "")
            which = f"the schema at {pointer}" if pointer else "a schema"
            hint = "It has to be JSON Schema 2020-12, or what OpenAPI 3.0 makes of it."
            raise DocumentError(f"{which} cannot be used: {said}", where=where, hint=hint) from None
        self._diagnosis = Draft202012Validator(root)

    def accepts(self, instance: Any) -> bool:
        """Whether the instance is valid."""
        try:
            return bool(self._gate.is_valid(instance))
        except UnicodeEncodeError:  # a name with a lone surrogate cannot be given to it
            return bool(self._diagnosis.is_valid(instance))

    def problems(self, instance: Any) -> list[Problem]:
        """Every defect, the deepest reason of each; empty when valid."""
        if self.accepts(instance):
            return []
        try:
            found = [_problem(error) for error in self._diagnosis.iter_errors(instance)]
        except (re.error, RecursionError):  # a pattern of ECMA 262 that Python's `re` does not know; an abyss of lists
            return [Problem("", "schema", "refused by jsonschema-rs; jsonschema cannot say why")]
        return found or [Problem("", DISPUTED, "refused by jsonschema-rs, accepted by jsonschema")]


def pointer_of(path: Any) -> str:
    """A sequence of keys and indexes as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _problem(error: ValidationError) -> Problem:
    """Descend into a union as far as one branch is clearly meant: of the right type, and deepest into the instance."""
    while error.context:
        branches = _meant(error)
        deepest = max(len(each.absolute_path) for branch in branches for each in branch)
        closest = [each for each in map(_deepest, branches) if len(each.absolute_path) == deepest]
        if len({each.message for each in closest}) > 1 and len({tuple(each.absolute_path) for each in closest}) == 1:
            wanted = " or ".join(dict.fromkeys(map(_short, closest)))
            return Problem(pointer_of(closest[0].absolute_path), str(error.validator), wanted)
        error = closest[0]
    return Problem(pointer_of(error.absolute_path), str(error.validator), _short(error))


def _meant(union: ValidationError) -> list[list[ValidationError]]:
    """What is wrong in each branch that may be meant: one that wants another type is none, unless all do."""
    branches: dict[Any, list[ValidationError]] = {}
    for error in union.context:
        branches.setdefault(error.schema_path[0], []).append(error)
    place = len(union.absolute_path)
    fitting = [
        branch
        for branch in branches.values()
        if not any(error.validator == "type" and len(error.absolute_path) == place for error in branch)
    ]
    return fitting or list(branches.values())


def _deepest(branch: list[ValidationError]) -> ValidationError:
    return max(branch, key=lambda error: len(error.absolute_path))


def _short(error: ValidationError) -> str:
    return error.message if len(error.message) <= 160 else error.message[:157] + "..."
