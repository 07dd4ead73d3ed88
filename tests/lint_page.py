"""Writes docs/lint.md from the rules and from the examples that prove them."""

from textwrap import indent

from lint_cases import CASES

import streamgauge.lint.rules  # noqa: F401 - declares every rule
from streamgauge.lint.rule import RULES, LintLevel

__all__ = ["page"]

HEAD = """\
# What `streamgauge lint` finds

`streamgauge lint openapi.yaml` says what is wrong with an OpenAPI *document*, before anybody calls an endpoint a liar for
what its document got wrong. Each finding is one line, `file:line:column level rule pointer: message`; places that say the
same are folded into the first one, with their number. `--json` gives every pointer.

| level | meaning |
|---|---|
| error | the document is invalid or contradicts itself: a tool or client that follows it goes wrong |
| warning | it misleads: a tool, client or reader will believe something that does not hold, or cannot tell |
| info | worth knowing: legitimate, and still a thing that tools stumble over or cannot check |

The exit code is 1 when there is an error (`--fail-on warning`: or a warning), 2 when the command itself is wrong.
`--rule` and `--ignore` select by id, `streamgauge explain ID` shows a rule. Rules about sampling parameters, answers and
`model` apply to POST paths that end in `/chat/completions` or `/completions` (where there is none, to operations whose request
has the fields of one), all others to any OpenAPI 3.0 or 3.1 document.

The examples are fragments; the tests put them into a whole document and see that the first is found and the second is not.
"""


def page() -> str:
    """The whole page."""
    rows = [f"| [`{rule.id}`](#{_anchor(rule.id)}) | {rule.level} | {rule.title} |" for rule in RULES.values()]
    counts = ", ".join(f"{sum(rule.level is level for rule in RULES.values())} {level}s" for level in LintLevel)
    table = "\n".join(["| rule | level | what is wrong |", "|---|---|---|", *rows])
    return "\n".join([HEAD, f"{len(RULES)} rules: {counts}.\n", table, *map(_section, RULES)])


def _anchor(id_: str) -> str:
    return id_.replace(".", "")


def _section(id_: str) -> str:
    rule, case = RULES[id_], CASES[id_]
    version = f" (OpenAPI {case.version})" if case.version != "3.1.0" else ""
    place = "the whole text" if case.where == "text" else f"in the {case.where}"
    lines = ["", f"## {id_}", "", f"{rule.level.capitalize()}: {rule.title}. {rule.why}", ""]
    lines += [f"To mend it: {rule.mend}", "", f"Source: {rule.source}.", "", f"Wrong, {place}{version}:", ""]
    lines += [indent(case.wrong.strip(), "    ")]
    if case.where != "text" and case.right != "{}":
        lines += ["", "Right:", "", indent(case.right.strip(), "    ")]
    return "\n".join(lines) + ("\n" if id_ == list(RULES)[-1] else "")
