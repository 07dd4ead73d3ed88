"""The forms that a request may demand of a text, and whether a text has them."""

import enum
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import regex

from streamgauge.contract.validator import DISPUTED, Validator
from streamgauge.errors import DocumentError

__all__ = ["Fit", "TextForm", "choice_form", "json_form", "regex_form", "spacing_form", "tag_form", "triggered_form"]

_PATIENCE_S = 0.5
"""How long a pattern may be tried: somebody else's may take for ever."""


class Fit(enum.Enum):
    """How a text stands to a form."""

    HAS = "has"
    """It has the form."""

    LACKS = "lacks"
    """It cannot have come about under the form, whatever might follow where it was cut."""

    ALMOST = "almost"
    """It is of the form's kind, but breaks its rules: JSON, but not by its schema."""

    OPEN = "open"
    """Nobody can tell: it was cut too early, or nothing in it shows the form."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """
    What a text has to look like.

    Attributes:
        words: the form in words, as in "a text that is ...".
        fit: judges a text; the second argument says whether it came to its own end.
    """

    words: str
    fit: Callable[[str, bool], Fit]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_SPACE = " \t\n\r"


def _parsed(text: str) -> tuple[Any] | None:
    """The value of a JSON text, as the only item; None where it is no JSON."""
    try:
        return (json.loads(text, parse_constant=_no_constant),)
    except (ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=256)
def _compiled(schema: str) -> Validator | None:
    try:
        return Validator(json.loads(schema))
    except DocumentError:
        return None


def _validator(schema: Any) -> Validator | None:
    return _compiled(json.dumps(schema, sort_keys=True))


_STARTS = {"object": "{", "array": "[", "string": '"', "boolean": "tf", "null": "n"}
_NUMBER = "-0123456789"
_ANY_START = "".join(_STARTS.values()) + _NUMBER


def _starts(schema: Any) -> str:
    """The characters with which a JSON text may begin that the schema accepts."""
    if not isinstance(schema, dict):
        return _ANY_START
    if "const" in schema:
        return json.dumps(schema["const"])[0]
    if isinstance(schema.get("enum"), list):
        return "".join(json.dumps(each)[0] for each in schema["enum"])
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    return "".join(_STARTS.get(each, _NUMBER) for each in kinds) or _ANY_START


def _may_begin(schema: Any, text: str) -> bool:
    """Whether a text may be the beginning of JSON by the schema, as far as its first character tells."""
    begun = text.lstrip(_SPACE)
    return not begun or begun[0] in _starts(schema)


def _judged(validator: Validator, value: Any) -> Fit:
    """One that only one of the two validators refuses is left open."""
    problems = validator.problems(value)
    if not problems:
        return Fit.HAS
    return Fit.OPEN if problems[0].keyword == DISPUTED else Fit.ALMOST


def json_form(schema: Any, words: str) -> TextForm | None:
    """A JSON text by a schema; None where that is no JSON Schema, or refers to others."""
    validator = _validator(schema)
    if validator is None:
        return None

    def fit(text: str, complete: bool) -> Fit:
        if not complete:
            return Fit.OPEN if _may_begin(schema, text) else Fit.LACKS
        value = _parsed(text)
        if value is None:
            return Fit.LACKS
        found = _judged(validator, value[0])
        # Prose may be a number, or a word in quotes, by chance.
        return Fit.LACKS if found is Fit.ALMOST and not isinstance(value[0], dict | list) else found

    return TextForm(words, fit)


def choice_form(choices: Iterable[str]) -> TextForm:
    """One of some texts."""
    texts = tuple(choices)

    def fit(text: str, complete: bool) -> Fit:
        if complete:
            return Fit.HAS if text in texts else Fit.LACKS
        return Fit.OPEN if any(each.startswith(text) for each in texts) else Fit.LACKS

    return TextForm(f"one of {', '.join(map(repr, texts))}" if len(texts) > 1 else repr(texts[0]), fit)


def regex_form(pattern: str) -> TextForm | None:
    """A text that a pattern matches from its beginning to its end; None where the pattern cannot be read."""
    try:
        compiled = regex.compile(pattern, regex.DOTALL)  # to xgrammar a dot is any character
    except (regex.error, RecursionError, OverflowError):
        return None

    def fit(text: str, complete: bool) -> Fit:
        try:
            found = compiled.fullmatch(text, partial=not complete, timeout=_PATIENCE_S)
        except TimeoutError:
            return Fit.OPEN
        if found is None:
            return Fit.LACKS
        return Fit.HAS if complete else Fit.OPEN

    return TextForm(f"a match of {pattern!r}", fit)


_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def _gaps(text: str) -> Iterator[tuple[str, str]]:
    """Every white space between the tokens of a JSON text, and the character before it."""
    bare = _STRING.sub('""', text.strip(_SPACE))
    for found in re.finditer(r"[ \t\n\r]+", bare):
        yield bare[found.start() - 1], found.group()


def spacing_form(allowed: Callable[[str, str], bool], words: str, *, needs_gap: bool) -> TextForm:
    """
    JSON whose white space is held to a rule.

    Args:
        allowed: whether a white space may stand behind a character.
        words: the rule.
        needs_gap: whether JSON without any white space leaves open whether the rule is kept.
    """

    def fit(text: str, complete: bool) -> Fit:
        if not complete or _parsed(text) is None:
            return Fit.OPEN
        gaps = list(_gaps(text))
        if any(not allowed(*gap) for gap in gaps):
            return Fit.LACKS
        return Fit.OPEN if needs_gap and not gaps else Fit.HAS

    return TextForm(words, fit)


@dataclass(frozen=True, slots=True)
class _Tag:
    begin: str
    schema: Any
    end: str

    def fit(self, text: str, complete: bool) -> tuple[Fit, int]:
        """How a text that should begin with the tag stands to it, and where the tag ends in it."""
        short = Fit.LACKS if complete else Fit.OPEN
        if not text.startswith(self.begin):
            return (short if self.begin.startswith(text) else Fit.LACKS), 0
        inner = text[len(self.begin) :]
        begun = inner.lstrip(_SPACE)
        if not _may_begin(self.schema, inner):
            return Fit.LACKS, 0
        try:
            value, length = _DECODER.raw_decode(begun)
        except (ValueError, RecursionError):
            return short, 0
        rest = begun[length:].lstrip(_SPACE)
        validator = _validator(self.schema)
        if not complete and not rest:
            return Fit.OPEN, 0
        if validator is None or (found := _judged(validator, value)) is Fit.OPEN:
            return Fit.OPEN, 0
        if found is Fit.ALMOST:
            return Fit.LACKS, 0
        if rest.startswith(self.end):
            return Fit.HAS, len(text) - len(rest) + len(self.end)
        return (short if self.end.startswith(rest) else Fit.LACKS), 0


def tag_form(begin: str, schema: Any, end: str) -> TextForm:
    """Nothing but one tag with JSON in it."""
    tag = _Tag(begin, schema, end)

    def fit(text: str, complete: bool) -> Fit:
        found, length = tag.fit(text, complete)
        return Fit.LACKS if found is Fit.HAS and text[length:] else found

    return TextForm(f"{begin!r}, JSON by a schema, and {end!r}", fit)


def triggered_form(tags: Iterable[tuple[str, Any, str]], triggers: Iterable[str]) -> TextForm:
    """Free text in which each trigger begins a tag; a text without any trigger leaves it open."""
    known, words = [_Tag(*tag) for tag in tags], [each for each in triggers if each]

    def fit(text: str, complete: bool) -> Fit:
        seen, at = False, 0
        while found := [(place, trigger) for trigger in words if (place := text.find(trigger, at)) >= 0]:
            place, trigger = min(found)
            fits = [tag.fit(text[place:], complete) for tag in known if tag.begin.startswith(trigger)]
            ends = [length for each, length in fits if each is Fit.HAS]
            if not ends:
                return Fit.OPEN if any(each is Fit.OPEN for each, _ in fits) else Fit.LACKS
            seen, at = True, place + max(ends)
        return Fit.HAS if seen else Fit.OPEN

    begins = " or ".join(repr(tag.begin) for tag in known)
    return TextForm(f"one where {' or '.join(map(repr, words))} only comes up as a whole tag ({begins} ...)", fit)
