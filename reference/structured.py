"""Text of a form that the request wants: `response_format` and `structured_outputs`."""

import functools
import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema_rs

from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.grammars import derived
from streamgauge.reference.patterns import CannotMakeError, matching
from streamgauge.reference.rules import CONSTRAINTS, Asked
from streamgauge.reference.schemas import instance, to_text
from streamgauge.reference.tags import tagged
from streamgauge.reference.words import VOCABULARY

__all__ = ["script_of"]

Make = Callable[[random.Random], str]


def script_of(asked: Asked) -> Callable[[str], str] | None:
    """
    What makes the text from a seed; None where the text is free.

    Raises:
        Refusal: no text of that form can be made here.
    """
    for param, make_of in (("structured_outputs", _of_outputs), ("response_format", _of_format)):
        if param not in asked:
            continue
        try:
            make = make_of(asked[param])
            if make is None:
                continue
            # Made once to find out whether it can be made at all, before anything is answered.
            make(_chance(""))
        except CannotMakeError as reason:
            raise Refusal(Kind.UNPROCESSABLE, f"The form in `{param}` {reason}.", param) from None
        return functools.partial(_careful, make)
    return None


def _careful(make: Make, seed: str) -> str:
    """With this seed or, should chance have led nowhere, with the one that was tried."""
    try:
        return make(_chance(seed))
    except CannotMakeError:
        return make(_chance(""))


def _chance(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - no secret


def _of_format(wanted: dict[str, Any]) -> Make | None:
    kind = wanted.get("type", "regex" if "regex" in wanted else "json_schema" if "json_schema" in wanted else "text")
    match kind:
        case "text":
            return None
        case "json_object":
            return _any_object
        case "json_schema":
            schema = wanted["json_schema"]["schema"]
            return lambda draws: to_text(instance(schema, draws))
        case "regex":
            return lambda draws: matching(wanted["regex"], draws)
        case _:
            return lambda draws: tagged(wanted, draws)


def _of_outputs(wanted: dict[str, Any]) -> Make | None:
    kind = next(name for name in CONSTRAINTS if wanted.get(name) is not None)
    given: Any = wanted[kind]
    match kind:
        case "json":
            schema = _read(given) if isinstance(given, str) else given
            closed = _closed(schema) if wanted.get("disable_additional_properties") else schema
            return lambda draws: _spaced(_with_more(instance(closed, draws), closed), wanted, draws)
        case "regex":
            return lambda draws: matching(given, draws)
        case "choice":
            if not given:
                raise CannotMakeError("leaves no choice")
            return lambda draws: draws.choice(given)
        case "grammar":
            return lambda draws: derived(given, draws)
        case "json_object":
            return _any_object if given else None
        case _:
            tag = _read(given)
            return lambda draws: tagged(tag, draws)


def _with_more(value: Any, schema: Any) -> Any:
    """A model that may add a member which the schema does not name does so, where nothing tells it not to."""
    if not isinstance(value, dict) or not isinstance(schema, dict) or "additionalProperties" in schema:
        return value
    more = {**value, "more": 1}
    return more if jsonschema_rs.is_valid(schema, more) else value


def _spaced(value: Any, wanted: dict[str, Any], draws: random.Random) -> str:
    """JSON with the white space that is wanted; a model that may put it anywhere does so."""
    if wanted.get("disable_any_whitespace"):
        return to_text(value)
    pattern = wanted.get("whitespace_pattern")
    gap = "\n " if pattern is None else matching(pattern, draws)
    if gap.strip(" \t\n\r"):
        raise CannotMakeError("wants white space that is none")
    return json.dumps(value, ensure_ascii=False, separators=(f",{gap}", f":{gap}"))


def _any_object(draws: random.Random) -> str:
    one, other = draws.sample(VOCABULARY, 2)
    return to_text({one.strip(): other.strip()})


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise CannotMakeError("is no JSON") from None


def _closed(node: Any) -> Any:
    """The schema with every object that has properties closed against others."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    inner = {name: _closed(each) for name, each in node.items()}
    return {"additionalProperties": False, **inner} if isinstance(node.get("properties"), dict) else inner
