"""
JSON Schemas that no model meets by chance, each made along with an instance of its own, so that it can be met.

Neither Schemathesis nor hypothesis-jsonschema makes schemas; they make instances of given ones.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from streamgauge.conformance.exploring.strategies.material import Material
from streamgauge.contract.validator import Validator

__all__ = ["MET", "bodies", "objects"]

_TOKENS = 48
_NAME = "note"

MET = tuple[dict[str, Any], Any]
"""A schema, and an instance that it accepts."""

_HEX = "0123456789abcdef"
_nonces = st.text(_HEX, min_size=6, max_size=6)
_names = st.text("abcdefghij", min_size=1, max_size=4)


def _const(nonce: str) -> MET:
    return {"const": nonce}, nonce


def _enum(nonces: list[str]) -> MET:
    return {"type": "string", "enum": nonces}, nonces[0]


def _pattern(drawn: tuple[str, str]) -> MET:
    prefix, rest = drawn
    return {"type": "string", "pattern": f"^{prefix}[0-9a-f]{{{len(rest)}}}$"}, prefix + rest


def _number(drawn: tuple[int, int]) -> MET:
    low, width = drawn
    return {"type": "integer", "minimum": low, "maximum": low + width}, low


def _leaves() -> st.SearchStrategy[MET]:
    return st.one_of(
        _nonces.map(_const),
        st.lists(_nonces, min_size=2, max_size=3, unique=True).map(_enum),
        st.tuples(st.text("ghijk", min_size=2, max_size=3), _nonces).map(_pattern),
        st.tuples(st.integers(-9999, 9999), st.integers(0, 9)).map(_number),
        st.booleans().map(lambda value: ({"type": "boolean"}, value)),
    )


def _object(members: dict[str, MET]) -> MET:
    schema = {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in members.items()},
        "required": list(members),
        "additionalProperties": False,
    }
    return schema, {name: instance for name, (_, instance) in members.items()}


def _array(drawn: tuple[MET, int]) -> MET:
    (schema, instance), size = drawn
    return {"type": "array", "items": schema, "minItems": size, "maxItems": size}, [instance] * size


def _accepts_its_own(met: MET) -> bool:
    schema, instance = met
    return Validator(schema).accepts(instance)


def objects(*, most: int = 3, nested: bool = True) -> st.SearchStrategy[MET]:
    """
    Schemas of objects, every member required and no other allowed (as OpenAI's strict mode wants it).

    Args:
        most: members at most.
        nested: whether members may be objects and arrays.
    """
    leaves = _leaves()
    inner = st.one_of(
        leaves,
        st.dictionaries(_names, leaves, min_size=1, max_size=2).map(_object),
        st.tuples(leaves, st.integers(1, 2)).map(_array),
    )
    members = st.dictionaries(_names, inner if nested else leaves, min_size=1, max_size=most)
    return members.map(_object).filter(_accepts_its_own)


def bodies(material: Material) -> st.SearchStrategy[dict[str, Any]]:
    """The plain request with such a schema, in each of the forms that the document has."""
    known = [form for form in (_response_format, _structured_outputs) if _knows(material, form)]
    if not known:
        return st.nothing()
    plain = material.plain("Answer with a JSON object that keeps to the schema.", _TOKENS)
    return st.tuples(st.sampled_from(known), objects()).map(lambda drawn: {**plain, **drawn[0](drawn[1][0])})


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    named = {"name": _NAME, "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _structured_outputs(schema: dict[str, Any]) -> dict[str, Any]:
    return {"structured_outputs": {"json": schema}}


def _knows(material: Material, form: Callable[[dict[str, Any]], dict[str, Any]]) -> bool:
    """Whether the document has the form's property, and takes it."""
    example = form({"type": "object"})
    operation = material.operation
    return example.keys() <= operation.properties.keys() and operation.request.accepts(
        {**material.plain("x", 1), **example}
    )
