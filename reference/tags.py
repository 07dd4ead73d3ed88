"""Texts by structural tags: the legacy form of begin, schema and end, and xgrammar's form of nested formats."""

import random
from typing import Any

from streamgauge.reference.grammars import derived
from streamgauge.reference.patterns import CannotMakeError, matching
from streamgauge.reference.schemas import instance, to_text
from streamgauge.reference.words import VOCABULARY

__all__ = ["tagged"]

_DEEPEST = 20


def tagged(wanted: Any, draws: random.Random) -> str:
    """
    A text that a structural tag allows, with at least one tag in it.

    Args:
        wanted: the object with `structures` and `triggers` (legacy), or with `format`.
        draws: what the choice among several is taken from.

    Raises:
        CannotMakeError: it has a form that is not known here.
    """
    if not isinstance(wanted, dict):
        raise CannotMakeError("is no structural tag")
    if "format" in wanted:
        return _of_format(wanted["format"], draws, 0)
    structures, triggers = wanted.get("structures"), wanted.get("triggers")
    if not isinstance(structures, list) or not structures or not isinstance(triggers, list):
        raise CannotMakeError("has no tag")
    tag = draws.choice(structures)
    if not any(isinstance(trigger, str) and tag["begin"].startswith(trigger) for trigger in triggers):
        raise CannotMakeError("has a tag that no trigger begins")
    schema = tag.get("schema")
    return str(tag["begin"]) + to_text(instance({} if schema is None else schema, draws)) + str(tag["end"])


def _of_format(wanted: Any, draws: random.Random, depth: int) -> str:
    if not isinstance(wanted, dict) or depth > _DEEPEST:
        raise CannotMakeError("has a format that is none")
    try:
        return _known(wanted, draws, depth)
    except (KeyError, TypeError, AttributeError, IndexError):
        raise CannotMakeError("has a format with something wrong or missing in it") from None


def _known(wanted: dict[str, Any], draws: random.Random, depth: int) -> str:
    match wanted.get("type"):
        case "const_string":
            return str(wanted["value"])
        case "json_schema":
            return to_text(instance(wanted["json_schema"], draws))
        case "regex":
            return matching(wanted["pattern"], draws)
        case "grammar":
            return derived(wanted["grammar"], draws)
        case "any_text":
            return draws.choice(VOCABULARY)
        case "sequence":
            return "".join(_of_format(each, draws, depth + 1) for each in wanted["elements"])
        case "or":
            return _of_format(draws.choice(wanted["elements"]), draws, depth + 1)
        case "tag":
            end = wanted["end"]
            inner = _of_format(wanted["content"], draws, depth + 1)
            return str(wanted["begin"]) + inner + str(end[0] if isinstance(end, list) else end)
        case "triggered_tags" | "tags_with_separator":
            return _of_format({"type": "tag", **draws.choice(wanted["tags"])}, draws, depth + 1)
        case _:
            raise CannotMakeError("has a format that is not known here")
