"""
JUnit XML for CI servers: a test suite for each target and operation, a test case for each finding.

A load run is a suite of its own: how it ended, whether its requests succeeded, the client, and each objective.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from streamgauge.outcomes import Outcome
from streamgauge.reports.findings import Example, Finding
from streamgauge.reports.load import LoadReport
from streamgauge.reports.loadcases import load_cases
from streamgauge.reports.model import Report

__all__ = ["junit_xml"]

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_ELEMENT: dict[Outcome, str] = {
    Outcome.ERROR: "error",
    Outcome.INCONCLUSIVE: "skipped",
    Outcome.NOT_APPLICABLE: "skipped",
    Outcome.NOT_RUN: "skipped",
}
"""What stands in the test case where the gate does not fail; nothing for the others, whose evidence goes to system-out."""

_COUNTERS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit_xml(report: Report) -> bytes:
    """The report as JUnit XML, in UTF-8; characters that XML forbids are removed."""
    root = ET.Element("testsuites", name="streamgauge")
    for target, operation in report.columns:
        name = " ".join(part for part in (target, operation) if part)
        suite = ET.SubElement(root, "testsuite", name=_legal(name), timestamp=_timestamp(report))
        properties = ET.SubElement(suite, "properties")
        for property_, value in _properties(report, target, operation):
            ET.SubElement(properties, "property", name=property_, value=_legal(value))
        for finding in report.findings:
            if (finding.target, finding.operation) == (target, operation):
                suite.append(_case(finding))
        _count(suite)
    if report.load:
        root.append(_load_suite(report, report.load))
    _count(root)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _properties(report: Report, target: str, operation: str) -> Iterator[tuple[str, str]]:
    """What a suite was judged by, and what of."""
    for said in report.meta["targets"]:
        if said["name"] == target:
            yield from ((name, said[name]) for name in ("profile", "model", "base_url") if said[name])
            yield from (("document", each["document"]) for each in said["operations"] if each["name"] == operation)
            yield from (("widened", each["what"]) for each in said.get("widened", ()))
    yield from (("from", name) for name in report.meta.get("from", ()))


def _count(element: ET.Element) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    for attribute, name in _COUNTERS.items():
        element.set(attribute, str(len(list(element.iter(name)))))


def _timestamp(report: Report) -> str:
    """The start of the run, in the form that JUnit's readers expect: without a zone, in UTC."""
    return str(report.meta["started"]).removesuffix("Z").removesuffix("+00:00").split(".")[0]


def _case(finding: Finding) -> ET.Element:
    case = ET.Element("testcase", classname=_legal(finding.topic), name=_legal(finding.check))
    kind = _kind(finding)
    if kind is not None:
        told = ET.SubElement(case, kind, message=_legal(_message(finding)))
        if kind != "skipped":
            told.set("type", finding.outcome)
            told.text = _legal(_evidence(finding))
    elif finding.outcome is not Outcome.PASS:
        ET.SubElement(case, "system-out").text = _legal(f"{finding.outcome}: {_message(finding)}\n{_evidence(finding)}")
    else:
        lines = [f"{finding.outcome}: {finding.tally}"]
        if finding.widened:
            lines.append(f"passed only by the profile: {'; '.join(finding.widened)}")
        ET.SubElement(case, "system-out").text = _legal("\n".join(lines))
    return case


def _load_suite(report: Report, load: LoadReport) -> ET.Element:
    name = f"{load.figures.run.get('target', '')} load".strip()
    suite = ET.Element("testsuite", name=_legal(name), timestamp=_timestamp(report))
    for title, kind, told in load_cases(load):
        case = ET.SubElement(suite, "testcase", classname="load", name=_legal(title))
        if kind is None:
            ET.SubElement(case, "system-out").text = _legal(told)
        else:
            element = ET.SubElement(case, kind, message=_legal(told))
            if kind != "skipped":
                element.set("type", "fail" if kind == "failure" else "error")
    _count(suite)
    return suite


def _kind(finding: Finding) -> str | None:
    if finding.known:
        return "skipped"
    return "failure" if finding.breaks_must else _ELEMENT.get(finding.outcome)


def _message(finding: Finding) -> str:
    if finding.known:
        told = f"known until {finding.known['expires']}: {finding.known['reason']}"
    elif finding.reason:
        told = f"{finding.outcome}: {finding.reason}"
    elif finding.examples:
        told = f"expected {finding.examples[0].expected}; got {finding.examples[0].actual}"
    else:
        told = f"{finding.outcome}: {finding.title}"
    return f"{told} ({finding.tally})" if finding.tally else told


def _evidence(finding: Finding) -> str:
    lines = [f"{finding.level} {finding.title}", finding.requirement, finding.source, finding.tally]
    for example in finding.examples:
        lines += ["", *_example(example)]
    return "\n".join(line for index, line in enumerate(lines) if line or index > 3)


def _example(example: Example) -> list[str]:
    lines = [
        f"exchange {example.exchange} ({example.kind} {example.probe or 'unknown'}): {example.outcome}",
        f"expected: {example.expected}",
        f"actual:   {example.actual}",
    ]
    if example.recorded:
        lines.append(f"status {example.status or 'none'}; ended: {example.ending}")
    return [*lines, example.curl] if example.curl else lines


def _legal(text: str) -> str:
    return _ILLEGAL.sub("", text)
