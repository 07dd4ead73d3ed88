"""Writes all outputs of a bundle."""

from collections.abc import Callable
from pathlib import Path

from streamgauge.errors import BundleError
from streamgauge.reports.html import report_html
from streamgauge.reports.junit import junit_xml
from streamgauge.reports.model import Report, report_of
from streamgauge.reports.summary import summary_json

__all__ = ["OUTPUTS", "write_all"]

OUTPUTS: dict[str, Callable[[Report], bytes]] = {
    "report.html": report_html,
    "junit.xml": junit_xml,
    "summary.json": summary_json,
}
"""File name → what writes it."""


def write_all(bundle_path: Path, output: Path | None = None) -> list[Path]:
    """
    Compute every output of a bundle and write it; the same bundle gives the same bytes.

    Args:
        bundle_path: the bundle's directory.
        output: where to write, made if need be; None for the bundle's own directory.

    Returns:
        What was written.

    Raises:
        BundleError: there is no bundle that this version reads, or nothing can be written there.
    """
    report = report_of(bundle_path)
    directory = output or bundle_path
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, render in OUTPUTS.items():
            path = directory / name
            path.write_bytes(render(report))
            written.append(path)
    except OSError as problem:
        raise BundleError(f"cannot be written: {problem.strerror or problem}", where=str(directory)) from None
    return written
