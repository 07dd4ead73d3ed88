"""Rules about texts: what they say that the schema beside them does not say, or says otherwise."""

import re
from collections.abc import Iterator
from typing import Any

from streamgauge.lint.grammar import Node
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Subject, types_of
from streamgauge.wire.json import is_number

__all__: list[str] = []


def _texts(subject: Subject) -> Iterator[tuple[Node, str]]:
    for node in subject.every():
        if isinstance(text := node.value.get("description"), str):
            yield node, " ".join(text.split())


def _phrase(text: str, start: int, end: int) -> str:
    """The words around a match, up to the ends of its sentence."""
    begin = max(text.rfind(mark, 0, start) + len(mark) if mark in text[:start] else 0 for mark in (". ", "; "))
    stop = text.find(". ", end)
    phrase = text[begin : stop if stop >= 0 else len(text)].strip().rstrip(".")
    return phrase if len(phrase) <= 110 else phrase[:107] + "..."


@rule(
    "text-lost-words",
    LintLevel.WARNING,
    "a text with an empty place where a word should stand",
    why="Something in angle brackets was probably taken for HTML and removed; what was named there cannot be known.",
    mend="Write the word; put angle brackets into backticks or escape them.",
    source="CommonMark 0.31, section 6.6 (raw HTML); fault catalogue Q1",
)
def _lost(subject: Subject) -> Iterator[Place]:
    for node, text in _texts(subject):
        for match in re.finditer(r"(?:(?<=[\s(])|^)``(?=[\s.,;:)]|$)", text):
            yield Place(
                (*node.path, "description"),
                f"an empty `` in: ...{text[max(0, match.start() - 40) : match.end() + 40]}...",
            )


@rule(
    "required-in-prose",
    LintLevel.ERROR,
    "a failure's text requires what the schema leaves optional",
    why="A request without it is valid by the schema and refused by the text of the answer: the document contradicts "
    "itself, and a tool that generates requests reports a fault that is none.",
    mend="Name the property in `required`.",
    source="JSON Schema 2020-12 validation, section 6.5.3; fault catalogue Q6",
)
def _required(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        body = subject.body(endpoint)
        optional = subject.properties(body).keys() - subject.required(body)
        for status, answer in subject.answers(endpoint):
            text = answer.value.get("description") if status[:1] == "4" else None
            for name in re.findall(r"`(\w+)` (?:is )?(?:missing|required)", text if isinstance(text, str) else ""):
                if name in optional:
                    yield Place(
                        (*answer.path, "description"),
                        f"{status} when `{name}` is missing; the schema does not require it",
                    )


_BOUND = re.compile(
    r"must be (>=|<=|>|<|at least|at most) ?(-?\d+(?:\.\d+)?)|\b(non-negative|positive) integer", re.IGNORECASE
)
_LOW = (">", ">=", "at least")


def _said(match: re.Match[str]) -> tuple[str, float]:
    if match[3]:
        return (">=", 0) if match[3].lower() == "non-negative" else (">=", 1)
    return match[1].lower(), float(match[2])


@rule(
    "bound-in-prose",
    LintLevel.WARNING,
    "a bound that only the text has",
    why="No tool reads it: values beyond the bound are generated as valid ones, and nobody is warned before the server is.",
    mend="Give `minimum`, `maximum` or `maxItems`.",
    source="JSON Schema 2020-12 validation, sections 6.2 and 6.4; fault catalogue Q11",
)
def _bound(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        text = node.value.get("description")
        for match in _BOUND.finditer(text if isinstance(text, str) else ""):
            sign, _ = _said(match)
            words = {"minimum", "exclusiveMinimum"} if sign in _LOW else {"maximum", "exclusiveMaximum"}
            forms = [form for form in subject.members(node) if types_of(form.value) & {"integer", "number"}]
            if forms and not any((words | {"enum"}) & form.value.keys() for form in forms):
                yield Place((*node.path, "description"), f"the text says `{match[0]}`, the schema has no bound")


@rule(
    "default-against-prose",
    LintLevel.WARNING,
    "a default that the text forbids",
    why="Whoever sends the defaults, or leaves them to the server, breaks the rule that the text states.",
    mend="Mend the default, or the text.",
    source="JSON Schema 2020-12 validation, section 9.2; fault catalogue Q11",
)
def _default(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        text = node.value.get("description")
        default: Any = node.value.get("default")
        if not isinstance(text, str):
            continue
        for match in _BOUND.finditer(text) if is_number(default) else ():
            sign, bound = _said(match)
            kept = {">": default > bound, "<": default < bound, "<=": default <= bound, "at most": default <= bound}
            if not kept.get(sign, default >= bound):
                yield Place((*node.path, "default"), f"default {default}, but the text says `{match[0]}`")
        for name in re.findall(r"[Cc]annot be used (?:at the same time as|together with|with) `(\w+)`", text):
            other = subject.at((*node.path[:-1], name)) if node.path[-2:-1] == ("properties",) else None
            if isinstance(other, dict) and other.get("default") not in (None, False, 0, "", [], {}):
                said = str(other["default"]).lower()
                yield Place((*node.path, "description"), f"cannot be used with `{name}`, which is {said} by default")


_RULES = re.compile(
    r"exactly one|must be used together with|cannot be used (?:at the same time|together)|must be (?:<=|>=|<|>) ?[a-z`]"
    r"|requires `|will raise an error if|only (?:together )?with `|should contain [^.]*keys"
    r"|(?:up to|at most) \d+ (?:sequences|items|entries|values|token)",
    re.IGNORECASE,
)


@rule(
    "prose-rule",
    LintLevel.INFO,
    "a rule that only the text states",
    why="The schema accepts what breaks the rule, so generators break it and call the refusal a fault. streamgauge's probes "
    "know the common ones.",
    mend="State it by `oneOf`, `dependentRequired` or `if`/`then` where that is possible.",
    source="JSON Schema 2020-12 core, sections 10.2.1.3 and 10.2.2; fault catalogue Q11",
)
def _prose_rule(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        text = node.value.get("description")
        text = " ".join(text.split()) if isinstance(text, str) else ""
        told = {"oneOf", "dependentRequired", "if", "minItems", "maxItems"} & node.value.keys()
        for match in _RULES.finditer(text) if not told else ():
            yield Place((*node.path, "description"), f"only the text says: {_phrase(text, *match.span())}")


_ONLY = re.compile(
    r"\b(?:only|a single|one) [\w ]{2,30}? (?:is|are) (?:(?:currently|at present) )?supported|only \w+ supported",
    re.IGNORECASE,
)


@rule(
    "text-contradicts-schema",
    LintLevel.WARNING,
    "the text allows less than the schema beside it",
    why="The schema offers several forms, and the text says that one of them works. Which of the two the server keeps "
    "can only be tried out.",
    mend="Take the forms that are not supported out of the schema, or mend the text.",
    source="fault catalogue Q17",
)
def _contradiction(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("schema"):
        text = node.value.get("description")
        match = _ONLY.search(" ".join(text.split())) if isinstance(text, str) else None
        if match and (forms := _forms(subject, node)) > 1:
            yield Place((*node.path, "description"), f"the text says `{match[0]}`, the schema has {forms} forms")


def _forms(subject: Subject, node: Node) -> int:
    listed: Any = node.value.get("enum")
    return len(listed) if isinstance(listed, list) else len(list(subject.members(node)))
