"""
Which check judges which statement of a bundled document, and why none judges the others.

`spec/traceability/<document>.yaml` says it (`spec/traceability.schema.json`). It is held against the document whenever it
is read: a statement without an entry, an entry without a statement and a sentence quoted wrongly are errors.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.contract.operation import Operation
from streamgauge.contract.statements import Statement, statements_of
from streamgauge.errors import DocumentError
from streamgauge.target import Target
from streamgauge.yamlfile import Located, load_yaml

__all__ = ["KINDS", "Traced", "requirement_in", "trace", "trace_by", "traceability_lines"]

KINDS = ("checks", "unobservable", "open")
"""What an entry says of its statements: exactly one of these."""

QUOTED = 2
"""How many sentences of its document a finding quotes at most."""


@dataclass(frozen=True, slots=True)
class Traced:
    """
    One entry, and the statements that it is about.

    Attributes:
        at: their pointers as the entry has them, patterns included.
        statements: at least one.
        checks: ids of those that judge them; none where there is a reason.
        unobservable: why a black box cannot see whether they hold.
        open: why no check looks at them yet.
    """

    at: tuple[str, ...]
    statements: tuple[Statement, ...]
    checks: tuple[str, ...] = ()
    unobservable: str = ""
    open: str = ""

    @property
    def kind(self) -> str:
        """One of :data:`KINDS`."""
        return next(kind for kind in KINDS if getattr(self, kind))

    def line(self) -> dict[str, Any]:
        """The entry as `traceability.json` holds it."""
        alone = self.statements[0] if len(self.statements) == 1 else None
        said = getattr(self, self.kind)
        return {
            "at": alone.at if alone else ", ".join(self.at),
            **({} if alone is None else {"sentence" if alone.kind == "sentence" else "text": alone.text}),
            "statements": len(self.statements),
            self.kind: list(said) if self.checks else said,
        }


def trace(operation: Operation) -> tuple[Traced, ...]:
    """
    What is said of each statement of an operation, in the order of the file; nothing for a document that we do not ship.

    Raises:
        DocumentError: the file does not fit the document.
    """
    name = _bundled().get(operation.document.sha256)
    return () if name is None else _traced(name, operation)


def trace_by(located: Located, operation: Operation) -> tuple[Traced, ...]:
    """
    The same by a file of one's own.

    Raises:
        DocumentError: the file breaks its schema, or does not fit the document.
    """
    for error in Draft202012Validator(catalog.schema("traceability")).iter_errors(located.data):
        one = f"an entry says exactly one of: {', '.join(KINDS)}"
        said = one if error.validator == "oneOf" else error.message
        raise DocumentError(said, where=located.where(error.absolute_path))
    return tuple(_Matching(located, operation).run())


def traceability_lines(targets: Iterable[Target]) -> list[dict[str, Any]]:
    """`traceability.json`: the entries of each operation whose document we ship."""
    return [
        {
            "target": target.name,
            "operation": operation.name,
            "document": operation.document.name,
            "entries": [each.line() for each in traced],
        }
        for target in targets
        for operation in target.contract.operations
        if (traced := trace(operation))
    ]


def requirement_in(entries: Sequence[Mapping[str, Any]], check: str) -> tuple[str, str] | None:
    """
    The sentence of the operation's own document that a check judges, and where it stands; None where there is none.

    Where more sentences name the check than can be quoted, those count that name it first. A check that judges statements
    wholesale has no sentence of its own.

    Args:
        entries: of `traceability.json`.
        check: its id.
    """
    named = [each for each in entries if check in each.get("checks", ())]
    naming = [each for each in named if "sentence" in each]
    if len(naming) > QUOTED:
        naming = [each for each in naming if each["checks"][0] == check][:QUOTED]
    if not naming or any(each["statements"] > 1 for each in named):
        return None
    said = dict.fromkeys(_subject(each["at"]) + each["sentence"] for each in naming)
    return " ... ".join(said), "; ".join(each["at"] for each in naming)


def _subject(at: str) -> str:
    """Whose description a sentence is from, where it has a name: a property, a status, a header, a security scheme."""
    *_, above, name, _ = ("", "", *at.split("/"))
    return f"{name}: " if above in ("headers", "properties", "responses", "security") else ""


@functools.cache
def _bundled() -> dict[str, str]:
    """Hash of each bundled document → its name: a document is known by its bytes, whatever it is called."""
    return {hashlib.sha256(catalog.document_text(name)).hexdigest(): name for name in catalog.DOCUMENTS}


@functools.cache
def _traced(name: str, operation: Operation) -> tuple[Traced, ...]:
    text = catalog.traceability_text(name)
    return trace_by(load_yaml(text, name=f"bundled traceability of {name}", error=DocumentError), operation)


class _Matching:
    """Gives each statement to the first entry that fits."""

    def __init__(self, located: Located, operation: Operation) -> None:
        self._located = located
        self._operation = operation
        self._entries: list[dict[str, Any]] = located.data["entries"]
        self._found: list[list[Statement]] = [[] for _ in self._entries]
        self._fits = [
            (number, at, "sentence" in entry, _pattern(at))
            for number, entry in enumerate(self._entries)
            for at in _pointers(entry)
        ]
        self._used: set[tuple[int, str]] = set()

    def run(self) -> list[Traced]:
        for statement in statements_of(self._operation):
            self._give(statement)
        for number, at, *_ in self._fits:
            if (number, at) not in self._used:
                hint = "Nothing stands there, or an entry above it has taken all."
                raise self._complaint(
                    ["entries", number], f"stale: {at} is no statement of {self._operation.name}", hint
                )
        return [
            Traced(
                at=_pointers(entry),
                statements=tuple(found),
                checks=tuple(entry.get("checks", ())),
                unobservable=entry.get("unobservable", ""),
                open=entry.get("open", ""),
            )
            for entry, found in zip(self._entries, self._found, strict=True)
        ]

    def _give(self, statement: Statement) -> None:
        sentence = statement.kind == "sentence"
        for number, at, quotes, pattern in self._fits:
            if quotes is sentence and (statement.at == at if sentence else pattern.fullmatch(statement.at)):
                quoted = self._entries[number].get("sentence")
                if sentence and quoted != statement.text:
                    raise self._complaint(["entries", number, "sentence"], f"the document says: {statement.text}")
                self._found[number].append(statement)
                self._used.add((number, at))
                return
        told = f"no entry for {statement.at}: {statement.text}"
        raise self._complaint(["entries"], told, f"Each says one of: {', '.join(KINDS)}.")

    def _complaint(self, path: list[str | int], what: str, hint: str = "") -> DocumentError:
        return DocumentError(what, where=self._located.where(path), hint=hint)


def _pointers(entry: Mapping[str, Any]) -> tuple[str, ...]:
    at = entry["at"]
    return (at,) if isinstance(at, str) else tuple(at)


def _pattern(at: str) -> re.Pattern[str]:
    """A pointer in which `*` is one step and `**` any number of them."""
    steps = {"**": "(?:/[^/]+)*", "*": "/[^/]+"}
    return re.compile("".join(steps.get(step, "/" + re.escape(step)) for step in at.split("/")[1:]))
