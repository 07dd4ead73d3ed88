"""The report as one HTML file that needs nothing beside itself, and no script or style to be understood."""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import jinja2

from streamgauge.metrics.client import Bar
from streamgauge.metrics.definitions import METRICS, RATES
from streamgauge.outcomes import HONOUR_MEANING, OUTCOME_MEANING, Outcome
from streamgauge.reports.axes import figure
from streamgauge.reports.findings import SHOWN, Finding
from streamgauge.reports.kinds import kind_of
from streamgauge.reports.model import Report
from streamgauge.reports.words import plural

__all__ = ["report_html"]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Characters that nobody sees, that turn the direction of others, or that HTML or UTF-8 forbid."""

_REASONS = 6
"""How many of the gate's reasons are shown at once; the others are folded away."""

_ATTENTION = 20
"""How many lines of what needs attention in the honour table are shown at once; the others are folded away."""


def report_html(report: Report) -> bytes:
    """The report as HTML in UTF-8."""
    page = (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            topics_shown=[topic for topic in report.topics if any(found.outcome in SHOWN for found in topic.findings)],
            opened=set(_first_of_each_check(report.findings)),
            widened=report.widened,
            passed=[found for found in report.findings if found.outcome is Outcome.PASS],
            unjudged=[found for found in report.findings if found.outcome in (Outcome.NOT_APPLICABLE, Outcome.NOT_RUN)],
        )
    )
    return page.encode("utf-8")


def _first_of_each_check(findings: Iterable[Finding]) -> Iterator[str]:
    """Anchors of the failures that are shown open: what the same check found elsewhere looks alike."""
    seen: set[str] = set()
    for found in findings:
        if found.outcome is Outcome.FAIL and not found.known and found.check not in seen:
            seen.add(found.check)
            yield found.anchor


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("streamgauge.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(figure=figure, plural=plural, bar=_bar)
    environment.globals.update(
        shown=SHOWN,
        reasons_shown=_REASONS,
        attention_shown=_ATTENTION,
        outcome_meaning=OUTCOME_MEANING,
        honour_meaning=HONOUR_MEANING,
        metrics=METRICS,
        rates=RATES,
        kind_of=kind_of,
    )
    return environment


def _bar(bar: Bar | None, value: float) -> str:
    """By how much the client's own delays may have moved a value, where the digits shown can tell; else empty."""
    ends = ((bar.low, "\u2212", value - bar.low), (bar.high, "+", bar.high - value)) if bar else ()
    moved = [f"{sign}{figure(float(f'{by:.2g}'))}" for end, sign, by in ends if by > 0 and figure(end) != figure(value)]
    return f"client {', '.join(moved)}" if moved else ""


def _seen(value: Any) -> Any:
    """What goes into the page: text with its unseen characters spelt out, markup as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return _UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", value)
    return value
