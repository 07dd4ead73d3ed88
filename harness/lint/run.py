"""Lints one document: reads it, applies every rule, folds what repeats, and puts it in order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import streamgauge.lint.rules  # noqa: F401 - declares every rule
from streamgauge.contract.document import Document, load_located
from streamgauge.contract.families import recognised
from streamgauge.contract.source import Reach, Source, read_source
from streamgauge.contract.validator import pointer_of
from streamgauge.errors import DocumentError
from streamgauge.lint.grammar import Path, kind_of
from streamgauge.lint.rule import RULES, Place, Rule
from streamgauge.lint.rules.structure import UNREADABLE, VERSION
from streamgauge.lint.subject import Subject
from streamgauge.yamlfile import Located

__all__ = ["Finding", "lint"]

DEEPEST = 150
"""Levels of nesting; real documents have some 30."""


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A rule that a document breaks, with the first place and all others that say the same.

    Attributes:
        document: the name of its source: a bundled name, or the stem of path or URL (no credentials that a URL held).
        where: file, line and column of the first place.
        pointer: JSON pointer of the first place.
        also: the pointers of the other places, in document order.
    """

    rule: Rule
    document: str
    where: str
    pointer: str
    message: str
    also: tuple[str, ...] = ()

    def line(self) -> dict[str, Any]:
        """The finding as JSON."""
        place, _, column = self.where.rpartition(":")
        file, _, row = place.rpartition(":")
        known = row.isdecimal() and column.isdecimal()
        return {
            "document": self.document,
            "file": file if known else self.where,
            "line": int(row) if known else None,
            "column": int(column) if known else None,
            "rule": self.rule.id,
            "level": self.rule.level.value,
            "pointer": self.pointer,
            "message": self.message,
            "also": list(self.also),
        }


def lint(spec: str, reach: Reach | None = None) -> list[Finding]:
    """
    What is wrong with a document, in the order of its lines.

    Args:
        spec: a bundled name, a path, a URL, or `-` for standard input.
        reach: how a URL is fetched; no other document is ever read.

    Raises:
        DocumentError: there is no such document. One that is there but broken is no exception but a finding.
    """
    source = read_source(spec, reach or Reach())
    try:
        located = load_located(source)
    except DocumentError as problem:
        return [_whole(UNREADABLE, source.name, problem.where or source.where, problem.what)]
    except RecursionError:
        return [_whole(UNREADABLE, source.name, source.where, "is nested too deeply")]
    return list(_findings(located, source))


def _whole(rule: Rule, document: str, where: str, message: str) -> Finding:
    return Finding(rule, document, where, "", message)


def _findings(located: Located, source: Source) -> Iterator[Finding]:
    data, document = located.data, source.name
    if not isinstance(data, dict):
        yield _whole(VERSION, document, located.name, f"an OpenAPI document is an object, not {kind_of(data)}")
        return
    if _too_deep(data):
        yield _whole(UNREADABLE, document, located.name, f"is nested deeper than {DEEPEST} levels")
        return
    version = str(data.get("openapi", ""))
    if not version.startswith("3."):
        found = next((f"{key} {data[key]}" for key in ("swagger", "openapi") if key in data), "no version of OpenAPI")
        path = tuple(key for key in ("swagger", "openapi") if key in data)[:1]
        yield _finding(VERSION, located, document, [Place(path, f"{found} is given; 3.0 and 3.1 are supported")])
        return
    places: dict[tuple[str, str], list[Place]] = {}
    if not version.startswith(("3.0", "3.1")):
        message = f"OpenAPI {version} is read as 3.1; `check` refuses it"
        places[VERSION.id, message] = [Place(("openapi",), message)]
    subject = Subject(data, _families(located, source))
    for rule in RULES.values():
        for place in rule.find(subject) if rule.find else ():
            places.setdefault((rule.id, place.message), []).append(place)
    findings = [_finding(RULES[id_], located, document, found) for (id_, _), found in places.items()]
    yield from sorted(findings, key=_order)


def _families(located: Located, source: Source) -> dict[tuple[str, str], str]:
    try:
        return recognised(Document(source, located, Reach()))
    except DocumentError:  # what is broken is told by the rules
        return {}


def _finding(rule: Rule, located: Located, document: str, places: list[Place]) -> Finding:
    paths: list[Path] = list(dict.fromkeys(place.path for place in places))
    pointers = tuple(pointer_of(path) for path in paths)
    return Finding(rule, document, located.where(paths[0]), pointers[0], places[0].message, pointers[1:])


def _order(finding: Finding) -> tuple[int, int, str]:
    line = finding.line()
    return line["line"] or 0, line["column"] or 0, finding.rule.id


def _too_deep(data: Any) -> bool:
    level = [data]
    for _ in range(DEEPEST):
        inner = [node.values() if isinstance(node, dict) else node for node in level]
        level = [item for members in inner for item in members if isinstance(item, dict | list)]
        if not level:
            return False
    return True
