"""Which form a request demands of the text."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from streamgauge.conformance.textforms import (
    Fit,
    TextForm,
    choice_form,
    json_form,
    regex_form,
    spacing_form,
    tag_form,
    triggered_form,
)

__all__ = ["DEMANDS", "FORMAT", "OUTPUTS", "Demand", "constraints_of", "lacks_schema"]

Asked = Mapping[str, Any]
Demand = Callable[[Asked], TextForm | None]
"""The form that a request demands; None where it demands none of the kind, or one that cannot be judged."""

FORMAT, OUTPUTS = "response_format", "structured_outputs"
_CONSTRAINTS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")

_OBJECT = {"type": "object"}


def _object(asked: Asked, name: str) -> dict[str, Any]:
    value = asked.get(name)
    return value if isinstance(value, dict) else {}


def constraints_of(asked: Asked) -> dict[str, Any]:
    """The constraints that a request sets."""
    given_ = _object(asked, OUTPUTS)
    return {name: given_[name] for name in _CONSTRAINTS if given_.get(name) not in (None, False)}


def _constraint(asked: Asked, name: str) -> Any:
    """The value of a constraint where it is the only one; None otherwise."""
    found = constraints_of(asked)
    return found[name] if found.keys() == {name} else None


def _format_of(asked: Asked, kind: str) -> dict[str, Any]:
    wanted = _object(asked, FORMAT)
    return wanted if wanted.get("type") == kind else {}


def _format_object(asked: Asked) -> TextForm | None:
    return json_form(_OBJECT, "a JSON object") if _format_of(asked, "json_object") else None


def _schema_of(asked: Asked) -> Any:
    return _object(_format_of(asked, "json_schema"), "json_schema").get("schema")


def _format_schema(asked: Asked) -> TextForm | None:
    schema = _schema_of(asked)
    return json_form(schema, "JSON by the schema") if isinstance(schema, dict) else None


def _format_regex(asked: Asked) -> TextForm | None:
    pattern = _format_of(asked, "regex").get("regex")
    return regex_form(pattern) if isinstance(pattern, str) else None


def _tag_within(described: Any) -> TextForm | None:
    """Formats of xgrammar that hold for the whole text; others are left alone."""
    if not isinstance(described, dict):
        return None
    if described.get("type") == "const_string" and isinstance(described.get("value"), str):
        return choice_form([described["value"]])
    content = described.get("content")
    begin, end = described.get("begin"), described.get("end")
    if not (described.get("type") == "tag" and isinstance(begin, str) and isinstance(end, str)):
        return None
    if not (isinstance(content, dict) and content.get("type") == "json_schema"):
        return None
    return tag_form(begin, content.get("json_schema"), end)


def _tags(wanted: Any) -> TextForm | None:
    """A structural tag in either of its forms."""
    if not isinstance(wanted, dict) or wanted.get("type") != "structural_tag":
        return None
    if "format" in wanted:
        return _tag_within(wanted["format"])
    tags, triggers = _listed(wanted.get("structures"), _is_tag), _listed(wanted.get("triggers"), _is_text)
    if not (tags and triggers):
        return None
    return triggered_form([(each["begin"], each.get("schema") or {}, each["end"]) for each in tags], triggers)


def _listed(value: Any, holds: Callable[[Any], bool]) -> list[Any]:
    """A list whose items are all as they should be; empty for anything else."""
    return value if isinstance(value, list) and all(map(holds, value)) else []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_tag(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("begin", "end"))


def _format_tag(asked: Asked) -> TextForm | None:
    wanted = _format_of(asked, "structural_tag")
    return _tags(wanted) if "format" in wanted else None


def _format_tags(asked: Asked) -> TextForm | None:
    wanted = _format_of(asked, "structural_tag")
    return _tags(wanted) if "format" not in wanted else None


def _read(text: Any) -> Any:
    """What a text holds as JSON; what is no text as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _outputs_schema(asked: Asked) -> dict[str, Any] | None:
    """The schema is given as an object, or as the text of one."""
    schema = _read(_constraint(asked, "json"))
    return schema if isinstance(schema, dict) else None


def _outputs_json(asked: Asked) -> TextForm | None:
    schema = _outputs_schema(asked)
    return json_form(schema, "JSON by the schema") if schema is not None else None


def _outputs_regex(asked: Asked) -> TextForm | None:
    pattern = _constraint(asked, "regex")
    return regex_form(pattern) if isinstance(pattern, str) else None


def _outputs_choice(asked: Asked) -> TextForm | None:
    choices = _listed(_constraint(asked, "choice"), _is_text)
    return choice_form(choices) if choices else None


_LITERALS = re.compile(r'\s*(?:root|start)\s*(?:::=|:)\s*("[^"\\]*"(?:\s*\|\s*"[^"\\]*")*)\s*')


def _outputs_grammar(asked: Asked) -> TextForm | None:
    """Of grammars only the simplest: one of some texts."""
    grammar = _constraint(asked, "grammar")
    found = _LITERALS.fullmatch(grammar) if isinstance(grammar, str) else None
    return choice_form(re.findall(r'"([^"]*)"', found[1])) if found else None


def _outputs_object(asked: Asked) -> TextForm | None:
    return json_form(_OBJECT, "a JSON object") if _constraint(asked, "json_object") is True else None


def _outputs_tag(asked: Asked) -> TextForm | None:
    return _tags(_read(_constraint(asked, "structural_tag")))


def _flag(asked: Asked, name: str) -> Any:
    """A flag that is set beside a schema."""
    return _object(asked, OUTPUTS).get(name) if _outputs_schema(asked) is not None else None


def _tight(asked: Asked) -> TextForm | None:
    """No *arbitrary* white space: backends put one space behind a comma or a colon all the same."""
    if _flag(asked, "disable_any_whitespace") is not True:
        return None
    return spacing_form(
        lambda before, space: space == " " and before in ",:",
        "JSON without white space, but for a space behind a comma or a colon",
        needs_gap=False,
    )


_OPENING = {"additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if"}
"""Keywords by which a schema names members beside its `properties`, or says itself what becomes of others."""


def _closed(asked: Asked) -> TextForm | None:
    schema = _outputs_schema(asked) or {}
    names = schema.get("properties")
    if (
        _flag(asked, "disable_additional_properties") is not True
        or not isinstance(names, dict)
        or _OPENING & schema.keys()
    ):
        return None

    def fit(text: str, complete: bool) -> Fit:
        value = _read(text) if complete else None
        if not isinstance(value, dict):
            return Fit.OPEN
        return Fit.HAS if value.keys() <= set(names) else Fit.LACKS

    return TextForm(f"an object without members other than {', '.join(map(repr, names))}", fit)


def _spaced(asked: Asked) -> TextForm | None:
    pattern = _flag(asked, "whitespace_pattern")
    inner = regex_form(pattern) if isinstance(pattern, str) else None
    if inner is None:
        return None
    return spacing_form(
        lambda _, space: inner.fit(space, True) is not Fit.LACKS,
        f"JSON with white space that matches {pattern!r}",
        needs_gap=True,
    )


DEMANDS: dict[str, Demand] = {
    "json-object": _format_object,
    "json-schema": _format_schema,
    "format-regex": _format_regex,
    "format-tag": _format_tag,
    "format-tags": _format_tags,
    "json": _outputs_json,
    "regex": _outputs_regex,
    "choice": _outputs_choice,
    "grammar": _outputs_grammar,
    "any-object": _outputs_object,
    "structural-tag": _outputs_tag,
    "tight": _tight,
    "closed": _closed,
    "spacing": _spaced,
}
"""Name of the demand, which is that of its law → the form that a request demands by it."""


def lacks_schema(asked: Asked) -> bool:
    """Whether a request wants JSON by a schema and does not give one, here or beside the type as some vendors have it."""
    wanted = _format_of(asked, "json_schema")
    return bool(wanted) and "schema" not in wanted and not isinstance(_schema_of(asked), dict)
