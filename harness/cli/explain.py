"""`streamgauge explain`."""

import difflib
import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from streamgauge.errors import UsageError

if TYPE_CHECKING:
    from streamgauge.contract.contract import Contract, Operation
    from streamgauge.traceability import Traced

__all__ = ["command"]

_SHOWN = 3
"""How many statements of each document are shown of those that a check judges."""

_WIDTH = 100


@click.command("explain")
@click.argument("id_", metavar="ID")
def command(id_: str) -> None:
    """
    Explain a check, an exploration, a fault, a metric, an outcome, a profile, a document or a rule of `lint`, with the
    sentence it comes from; or a probe, or a property of requests.

    Of a check: what it judges of each document. Of a fault: which checks see it. Of a document: what nothing judges,
    and why. Of a property, by its path: which laws judge whether it is honoured, or why none can.

    \b
    Examples:
      streamgauge explain sse.done
      streamgauge explain sse.no-done
      streamgauge explain seekr-chat
      streamgauge explain stop
      streamgauge explain messages[].role
      streamgauge explain ttft
      streamgauge explain inconclusive
      streamgauge explain spec.nullable-in-31
    """
    from streamgauge.cli.list_ import KINDS

    known: list[str] = []
    for kind in ("checks", "faults", "metrics", "outcomes", "profiles", "specs", "rules", "explorations"):
        if _found(id_, kind, known):
            return
    properties = _properties()
    if id_ in properties:
        click.echo(f"{id_} (request property)")
        for text, depth in _of_property(id_, properties[id_]):
            _say(text, depth)
        return
    known += properties
    if _found(id_, "probes", known):  # the last: they have to be made
        return
    close = difflib.get_close_matches(id_, known)
    closest = f"Close to it: {', '.join(close)}. " if close else ""
    raise UsageError(
        f"nothing is called {id_}",
        hint=f"{closest}`streamgauge list checks` (or {', '.join(kind for kind in KINDS if kind not in ('checks', 'runs'))}) "
        "shows every id.",
    )


def _found(id_: str, kind: str, known: list[str]) -> bool:
    """Explain what has this id among one kind of things; whether there is any. `known` gets the ids of the kind."""
    from streamgauge.cli.list_ import KINDS

    rows = KINDS[kind]()
    known += [row["id"] for row in rows]
    meant = [row for row in rows if row["id"] == id_]
    if not meant:
        return False
    click.echo(f"{id_} ({kind.removesuffix('s')})")
    for row in meant:
        for name, value in row.items():
            if name != "id":
                _say(f"{name}: {', '.join(value) if isinstance(value, list) else value}")
    for text, depth in _MORE.get(kind, _nothing)(id_):
        _say(text, depth)
    return True


def _say(text: str, depth: int = 1) -> None:
    click.echo(click.wrap_text(text, _WIDTH, "  " * depth, "  " * (depth + 2)))


def _nothing(id_: str) -> Iterator[tuple[str, int]]:
    yield from ()


def _of_check(check: str) -> Iterator[tuple[str, int]]:
    """What a check judges of each document, in lines with their depth; the sentences first."""
    for name, entries in _traced().items():
        judged = [each for each in entries if check in each.checks]
        if not judged:
            continue
        count = sum(len(each.statements) for each in judged)
        yield f"{name}: judges {count} statement{'' if count == 1 else 's'}", 1
        judged.sort(key=lambda each: each.statements[0].kind != "sentence")
        for each in judged[:_SHOWN]:
            yield _in_words(each), 2
        if more := sum(len(each.statements) for each in judged[_SHOWN:]):
            yield f"and {more} more", 2


def _of_document(name: str) -> Iterator[tuple[str, int]]:
    """How many statements a document makes, and each one that nothing judges, in lines with their depth."""
    entries = _traced()[name]
    counts = {kind: sum(len(each.statements) for each in entries if each.kind == kind) for kind in _TITLES}
    yield f"statements: {sum(counts.values())}, of which {', '.join(f'{counts[k]} {_TITLES[k]}' for k in counts)}", 1
    for kind in ("open", "unobservable"):
        yield f"{_TITLES[kind]}:", 1
        for each in entries:
            if each.kind == kind:
                yield _in_words(each, getattr(each, kind)), 2


@functools.cache
def _properties() -> dict[str, list[tuple["Operation", "Contract"]]]:
    """Each property of a request, by its path, and the bundled documents that have it."""
    from streamgauge.catalog import DOCUMENTS
    from streamgauge.contract.contract import load_contracts
    from streamgauge.contract.paths import request_paths

    found: dict[str, list[tuple[Operation, Contract]]] = {}
    for contract in load_contracts(list(DOCUMENTS)):
        for operation in contract.operations:
            for path in request_paths(operation):
                found.setdefault(path, []).append((operation, contract))
    return found


def _of_property(path: str, documented: Iterable[tuple["Operation", "Contract"]]) -> Iterator[tuple[str, int]]:
    """The laws about a property, or the reason why there is none, for each document that has it."""
    from streamgauge.conformance.law import laws_of
    from streamgauge.conformance.unseen import unseen

    alike: dict[tuple[Any, ...], list[str]] = {}
    for operation, contract in documented:
        alike.setdefault(tuple(laws_of(operation, contract, path)), []).append(operation.name)
    for laws, names in alike.items():
        if laws:
            yield f"{', '.join(names)}: whether it is honoured is judged by", 1
            for each in laws:
                yield f"{each.id} [{each.level}]: {each.title}", 2
        else:
            yield f"{', '.join(names)}: no law judges it: {unseen(path)}", 1
            yield "the honour table can say no more than accepted, refused or server error", 2


_TITLES = {
    "checks": "judged by checks",
    "open": "open (could be seen, and no check looks at it yet)",
    "unobservable": "not observable (no black box can see whether it holds)",
}

_MORE = {"checks": _of_check, "specs": _of_document}


def _in_words(entry: "Traced", reason: str = "") -> str:
    line = entry.line()
    quoted = f'"{line["sentence"]}"' if "sentence" in line else ""
    said = quoted or line.get("text") or f"{line['statements']} statements"
    return f"{said}{f': {reason}' if reason else ''} ({line['at']})"


@functools.cache
def _traced() -> "dict[str, tuple[Traced, ...]]":
    """The entries of each bundled document, by the name of its operation."""
    from streamgauge.catalog import DOCUMENTS
    from streamgauge.contract.contract import load_contracts
    from streamgauge.traceability import trace

    return {
        operation.name: trace(operation)
        for contract in load_contracts(list(DOCUMENTS))
        for operation in contract.operations
    }
