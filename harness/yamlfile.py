"""
Reads YAML as a person means it: no duplicate keys, and every complaint carries its line and column.

JSON is YAML, too, but PyYAML takes seconds for a megabyte of it: a text that is JSON goes through the JSON reader.
"""

import codecs
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from streamgauge.errors import StreamgaugeError, UsageError
from streamgauge.jsonplaces import JsonPlaces, TwiceError, read_strictly

__all__ = ["Located", "load_yaml"]

MOST_NODES = 1_000_000
"""The largest file that makes sense, aliases unfolded."""


# libyaml's parser is some eight times as fast; PyYAML's wheels have it. Types cannot tell which of the two it is.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):  # type: ignore[misc, valid-type]
    """SafeLoader that refuses a key given twice (PyYAML keeps the last one in silence)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Any, yaml.Mark] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} is given twice (first in line {seen[key].line + 1})",
                    problem_mark=key_node.start_mark,
                )
            if isinstance(key, Hashable):
                seen[key] = key_node.start_mark
        made: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return made


# Dates stay text: JSON knows none, and a baseline's expiry is compared by our own reader.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Located:
    """
    A YAML file's data together with the place of each node.

    Attributes:
        data: plain Python values.
        name: what error messages call the file.
    """

    def __init__(self, data: Any, places: yaml.Node | JsonPlaces, name: str) -> None:
        self.data = data
        self.name = name
        self._places = places

    def where(self, path: Iterable[str | int]) -> str:
        """`file:line:column` of the node at `path`, or of its nearest ancestor that exists."""
        if isinstance(self._places, JsonPlaces):
            line, column = self._places.where(path)
            return f"{self.name}:{line}:{column}"
        node = self._places
        mark = node.start_mark
        for step in path:
            child, place = _child(node, step)
            if child is None:
                break
            node, mark = child, place
        return f"{self.name}:{mark.line + 1}:{mark.column + 1}" if mark else self.name


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node | None, yaml.Mark | None]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return value, key.start_mark
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item, item.start_mark
    return None, None


def load_yaml(source: Path | str | bytes, *, name: str = "", error: type[StreamgaugeError] = UsageError) -> Located:
    """
    Read one YAML (or JSON) document.

    Args:
        source: a path to read, or the text itself.
        name: what messages call the text; the path when one is given.
        error: the exception to raise, a class of :mod:`streamgauge.errors`.

    Raises:
        StreamgaugeError: of class `error`, when the file cannot be read, is not YAML, holds nothing, or gives a key twice.
    """
    if isinstance(source, Path):
        name = name or str(source)
        try:
            source = source.read_bytes()
        except OSError as problem:
            raise error(f"cannot be read: {problem.strerror or problem}", where=name) from None
    return _json(source, name, error) or _yaml(source, name, error)


def _json(source: str | bytes, name: str, error: type[StreamgaugeError]) -> Located | None:
    """The text as JSON; None when it is none: it may be a YAML flow mapping."""
    try:
        text = source.removeprefix(codecs.BOM_UTF8).decode("utf-8") if isinstance(source, bytes) else source
        return Located(read_strictly(text), JsonPlaces(text), name) if text.lstrip(" \t\n\r")[:1] == "{" else None
    except TwiceError:
        found = JsonPlaces(text).first_twice()
        assert found is not None
        key, (first, _), (line, column) = found
        what = f"not JSON that can be used: the key {key!r} is given twice (first in line {first})"
        raise error(what, where=f"{name}:{line}:{column}") from None
    except (ValueError, RecursionError):
        return None


def _yaml(source: str | bytes, name: str, error: type[StreamgaugeError]) -> Located:
    try:
        loader = _StrictLoader(source)
        try:
            root = loader.get_single_node()
            if root is None:
                raise error("there is nothing in it", where=name)
            _refuse_cycles_and_floods(root)
            data = loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise error(f"not YAML that can be used: {problem.problem or problem.context}", where=where) from None
    except (yaml.YAMLError, RecursionError) as problem:
        raise error(f"not YAML that can be used: {_first_line(problem)}", where=name) from None
    except (ValueError, KeyError, AttributeError, TypeError) as problem:
        # PyYAML's constructors let these out: bytes that are no text, `0x_`, `!!bool maybe`, integers of 5000 digits.
        raise error(f"a value cannot be read: {_first_line(problem)}", where=name) from None
    return Located(data, root, name)


def _refuse_cycles_and_floods(node: yaml.Node) -> None:
    """Refuse an anchor that holds an alias of itself, and aliases of aliases that unfold to millions of nodes."""
    done: dict[int, int] = {}  # a collection's id → how many nodes it unfolds to
    above: set[int] = set()
    pending: list[tuple[yaml.Node, bool]] = [(node, False)]
    while pending:
        current, leaving = pending.pop()
        if not isinstance(current, yaml.CollectionNode):
            continue
        if leaving:
            above.discard(id(current))
            done[id(current)] = size = 1 + sum(done.get(id(child), 1) for child in _children(current))
            if size > MOST_NODES:
                problem = f"its aliases unfold to more than {MOST_NODES} nodes"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=current.start_mark)
        elif id(current) in above:
            raise yaml.MarkedYAMLError(problem="it holds an alias of itself", problem_mark=current.start_mark)
        elif id(current) not in done:
            above.add(id(current))
            pending.append((current, True))
            pending += [(child, False) for child in _children(current)]


def _children(node: yaml.CollectionNode) -> list[yaml.Node]:
    return [child for item in node.value for child in (item if isinstance(item, tuple) else (item,))]


def _first_line(problem: BaseException) -> str:
    lines: Sequence[str] = str(problem).splitlines()
    return lines[0] if lines else type(problem).__name__
