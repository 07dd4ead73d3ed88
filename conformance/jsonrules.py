"""What RFC 8259 demands of JSON, and what it only advises: the defects of each."""

from dataclasses import dataclass
from typing import TypedDict

__all__ = ["INTEROPERABLE", "STRICT", "JsonRule"]


class _Declared(TypedDict):
    requirement: str
    source: str


@dataclass(frozen=True, slots=True)
class JsonRule:
    """One rule: the kinds of defect (of `streamgauge.wire.json`) that break it, and where it stands."""

    expected: str
    kinds: frozenset[str]
    declared: _Declared


STRICT = JsonRule(
    "strict JSON",
    frozenset({"not-a-number", "encoding", "bom"}),
    {
        "requirement": (
            "Numeric values that cannot be represented in the grammar below (such as Infinity and NaN) are not permitted. "
            "JSON text ... MUST be encoded using UTF-8. Implementations MUST NOT add a byte order mark."
        ),
        "source": "RFC 8259, sections 6 and 8.1",
    },
)

INTEROPERABLE = JsonRule(
    "unique names, whole characters, and numbers that a double holds",
    frozenset({"duplicate-key", "surrogate", "number"}),
    {
        "requirement": (
            "The names within an object SHOULD be unique. ... integers ... in the range [-(2**53)+1, (2**53)-1] are "
            "interoperable in the sense that implementations will agree exactly on their numeric values. "
            "... bit sequences that cannot encode Unicode characters; for example, "
            "a single unpaired UTF-16 surrogate [give] unpredictable [behavior]."
        ),
        "source": "RFC 8259, sections 4, 6 and 8.2",
    },
)
