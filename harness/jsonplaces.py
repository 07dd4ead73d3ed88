"""Where the parts of a JSON text stand: looked up when somebody asks, container by container, by the C scanner of `json`."""

import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["JsonPlaces", "TwiceError", "read_strictly"]

_SPACE = re.compile(r"[ \t\n\r]*")


class TwiceError(ValueError):
    """An object gives a key twice (RFC 8259, section 4: names SHOULD be unique)."""


def read_strictly(text: str) -> Any:
    """
    The value of a JSON text.

    Raises:
        TwiceError: an object gives a key twice.
        ValueError: the text is no JSON (RFC 8259), or a number is too large to read.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise TwiceError
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON (RFC 8259, section 6)")


class JsonPlaces:
    """The places in a text that :func:`read_strictly` can read, duplicate keys apart."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._scan = json.JSONDecoder().raw_decode
        self._known: dict[int, list[tuple[str | int, int, int]]] = {}

    def where(self, path: Iterable[str | int]) -> tuple[int, int]:
        """Line and column, both from 1, of the key or item at `path`, or of its nearest ancestor that exists."""
        place = value = self._after_space(0)
        for step in path:
            found = next((entry for entry in self._children(value) if entry[0] == step), None)
            if found is None:
                break
            _, place, value = found
        return self._line_and_column(place)

    def first_twice(self) -> tuple[str, tuple[int, int], tuple[int, int]] | None:
        """The first key that its object gives twice, and where: the first time, the second time. None if there is none."""
        pending = [self._after_space(0)]
        while pending:
            children = self._children(pending.pop())
            seen: dict[str | int, int] = {}
            for step, place, _ in children:
                if step in seen:
                    return str(step), self._line_and_column(seen[step]), self._line_and_column(place)
                seen[step] = place
            pending += [value for _, _, value in reversed(children)]
        return None

    def _children(self, start: int) -> list[tuple[str | int, int, int]]:
        """Key or index, where it stands, and where its value begins, for each child of the container at `start`."""
        if start not in self._known:
            self._known[start] = list(self._scanned(start))
        return self._known[start]

    def _scanned(self, start: int) -> Iterable[tuple[str | int, int, int]]:
        text = self._text
        if text[start] not in "{[":
            return
        position, index = self._after_space(start + 1), 0
        while text[position] not in "}]":
            place, step = position, index
            if text[start] == "{":
                step, position = self._scan(text, position)
                position = self._after_space(self._after_space(position) + 1)
            yield step, place, position
            position = self._after_space(self._scan(text, position)[1])
            if text[position] == ",":
                position = self._after_space(position + 1)
            index += 1

    def _after_space(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position

    def _line_and_column(self, place: int) -> tuple[int, int]:
        begin = self._text.rfind("\n", 0, place) + 1
        return self._text.count("\n", 0, place) + 1, place - begin + 1
