"""Texts of a small part of EBNF, as `structured_outputs.grammar` has it: rules, literals, sequences, alternatives."""

import json
import random
import re

from streamgauge.reference.patterns import CannotMakeError, matching

__all__ = ["derived"]

_RULE = re.compile(r"^\s*([A-Za-z_][\w-]*)\s*(?:::=|:)\s*(.*)$")
_PART = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([A-Za-z_][\w-]*)|(\[(?:[^\]\\]|\\.)+\])|([|()?*+]))')
_ROOTS = ("root", "start")
_DEEPEST = 50
_MORE = 3


def derived(grammar: str, draws: random.Random) -> str:
    """
    A text that a grammar derives from its rule `root` (or `start`).

    Args:
        grammar: rules `NAME ::= EXPRESSION`, one or more lines each; `"literal"`, `[a-z]`, names, `( )`, `|`, `?`, `*`, `+`.
        draws: what the choice among alternatives is taken from.

    Raises:
        CannotMakeError: it is no such grammar, or derives nothing that was found.
    """
    rules = {name: _Reader(text).alternatives() for name, text in _rules(grammar).items()}
    root = next((name for name in _ROOTS if name in rules), None)
    if root is None:
        raise CannotMakeError("has no rule `root`")
    return _say(("name", root), rules, draws, 0)


def _rules(grammar: str) -> dict[str, str]:
    rules: dict[str, str] = {}
    name = ""
    for line in grammar.splitlines():
        if not line.strip() or line.lstrip().startswith(("#", "//")):
            continue
        begun = _RULE.match(line)
        if begun:
            name, rules[begun[1]] = begun[1], begun[2]
        elif name:
            rules[name] += " " + line
        else:
            raise CannotMakeError("is no grammar of rules")
    return rules


_Node = tuple[str, object]


class _Reader:
    """Reads one rule's expression."""

    def __init__(self, text: str) -> None:
        self._parts: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            found = _PART.match(text, at)
            if found is None:
                raise CannotMakeError("uses more of EBNF than is known here")
            kinds = ("literal", "name", "class", "sign")
            self._parts.append(next((kind, part) for kind, part in zip(kinds, found.groups(), strict=True) if part))
            at = found.end()
        self._at = 0

    def alternatives(self, *, inner: bool = False) -> _Node:
        """Everything up to the end, or to the closing bracket of an `inner` one."""
        ways: list[_Node] = [self._sequence()]
        while self._next() == ("sign", "|"):
            self._at += 1
            ways.append(self._sequence())
        if (self._next() == ("sign", ")")) != inner:
            raise CannotMakeError("has a bracket too many or too few")
        return ("ways", ways)

    def _sequence(self) -> _Node:
        items: list[_Node] = []
        while (part := self._next()) is not None and part not in (("sign", "|"), ("sign", ")")):
            self._at += 1
            kind, text = part
            if part == ("sign", "("):
                items.append(self.alternatives(inner=True))
                self._at += 1
            elif kind == "sign":
                if not items:
                    raise CannotMakeError("repeats nothing")
                items[-1] = (text, items[-1])
            else:
                items.append((kind, text))
        return ("all", items)

    def _next(self) -> tuple[str, str] | None:
        return self._parts[self._at] if self._at < len(self._parts) else None


def _say(node: _Node, rules: dict[str, _Node], draws: random.Random, depth: int) -> str:
    kind, given = node
    if depth > _DEEPEST:
        raise CannotMakeError("goes deeper than can be made here")
    if kind == "literal":
        try:
            return str(json.loads(str(given)))
        except ValueError:
            raise CannotMakeError("has a literal that is none") from None
    if kind == "class":
        return matching(str(given), draws)
    if kind == "name":
        if given not in rules:
            raise CannotMakeError("uses a rule that it does not have")
        return _say(rules[str(given)], rules, draws, depth + 1)
    if kind == "all" and isinstance(given, list):
        return "".join(_say(each, rules, draws, depth + 1) for each in given)
    if kind == "ways" and isinstance(given, list):
        # Deep inside the first way is taken: whoever writes a recursive rule mostly begins with what ends it.
        return _say(given[0] if depth > _DEEPEST // 2 else draws.choice(given), rules, draws, depth + 1)
    least = 1 if kind == "+" else 0
    most = 1 if kind == "?" else least + _MORE
    times = least if depth > _DEEPEST // 2 else draws.randint(least, most)
    assert isinstance(given, tuple)
    return "".join(_say(given, rules, draws, depth + 1) for _ in range(times))
