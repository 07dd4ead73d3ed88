"""The rules, by topic; importing this package fills :data:`streamgauge.lint.rule.RULES`."""

from streamgauge.lint.rules import (
    answers,
    keywords,
    openai,
    prose,
    references,
    security,
    structure,
    unions,
    values,
)

__all__ = ["answers", "keywords", "openai", "prose", "references", "security", "structure", "unions", "values"]
