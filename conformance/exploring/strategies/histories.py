"""
Conversations as clients send them back: who speaks by turns, parts, names, calls and their results.

User and assistant take turns and nothing is called that is not there, since many a chat template demands that.
"""

from typing import Any

from hypothesis import strategies as st

from streamgauge.conformance.exploring.strategies.material import Material
from streamgauge.conformance.exploring.strategies.tools import names

__all__ = ["bodies"]

_TOKENS = 2
_MOST_TURNS = 2

_texts = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs")), min_size=1, max_size=8)
_said = _texts.filter(lambda text: bool(text.strip()))

Messages = list[dict[str, Any]]


def _content() -> st.SearchStrategy[Any]:
    """A text, or parts of text."""
    part = _said.map(lambda text: {"type": "text", "text": text})
    return st.one_of(_said, st.lists(part, min_size=1, max_size=2))


def _user() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"role": st.just("user"), "content": _content()},
        optional={"name": st.text("abcdef", min_size=1, max_size=4)},
    )


def _assistant() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"role": st.just("assistant"), "content": st.one_of(_said, st.just(""))})


def _calling(name: str) -> st.SearchStrategy[Messages]:
    """Calls of the tool, with a content that is null, absent or empty, and their results."""
    ids = st.lists(st.text("abc123", min_size=9, max_size=9), min_size=1, max_size=2, unique=True)
    contents: list[dict[str, Any]] = [{"content": None}, {}, {"content": ""}]

    def spoken(drawn: tuple[list[str], dict[str, Any], str]) -> Messages:
        ids, said, result = drawn
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": '{"text": "x"}'}} for id_ in ids
        ]
        results = [{"role": "tool", "tool_call_id": id_, "content": result} for id_ in ids]
        return [{"role": "assistant", **said, "tool_calls": calls}, *results]

    return st.tuples(ids, st.sampled_from(contents), st.one_of(_said, st.just(""))).map(spoken)


def _turns(name: str) -> st.SearchStrategy[Messages]:
    """A user's message, and what is said to it."""
    answer = st.one_of(_assistant().map(lambda message: [message]), _called_and_told(name))
    return st.tuples(_user(), answer).map(lambda drawn: [drawn[0], *drawn[1]])


def _called_and_told(name: str) -> st.SearchStrategy[Messages]:
    return st.tuples(_calling(name), _assistant()).map(lambda drawn: [*drawn[0], drawn[1]])


def _histories(name: str) -> st.SearchStrategy[Messages]:
    system = st.lists(_said.map(lambda text: {"role": "system", "content": text}), max_size=1)
    turns = st.lists(_turns(name), max_size=_MOST_TURNS).map(lambda drawn: [each for turn in drawn for each in turn])
    last = st.one_of(
        _user().map(lambda message: [message]),
        st.tuples(_user(), _calling(name)).map(lambda drawn: [drawn[0], *drawn[1]]),
    )
    return st.tuples(system, turns, last).map(lambda drawn: [*drawn[0], *drawn[1], *drawn[2]])


def _with_tools(plain: dict[str, Any], name: str, messages: Messages) -> dict[str, Any]:
    """The request; it has the tool where a message calls it."""
    body = {**plain, "messages": messages}
    if any("tool_calls" in message for message in messages):
        parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
        body["tools"] = [{"type": "function", "function": {"name": name, "parameters": parameters}}]
    return body


def bodies(material: Material) -> st.SearchStrategy[dict[str, Any]]:
    """The plain request with such a conversation, as far as the document allows it."""
    plain = material.plain("", _TOKENS)
    found = names().flatmap(lambda name: _histories(name).map(lambda messages: _with_tools(plain, name, messages)))
    return found.filter(material.operation.request.accepts)
