"""`streamgauge lint`."""

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from streamgauge.lint.run import Finding

__all__ = ["command"]

LEVELS = click.Choice(["error", "warning", "info"])


@click.command("lint")
@click.argument("documents", nargs=-1, required=True, metavar="DOCUMENT...")
@click.option("--level", type=LEVELS, default="info", help="The least level that is shown. [default: info]")
@click.option("--rule", "only", multiple=True, metavar="ID", help="Only this rule. Repeatable.")
@click.option("--ignore", multiple=True, metavar="ID", help="Not this rule. Repeatable.")
@click.option("--fail-on", type=LEVELS, default="error", help="The least level that fails. [default: error]")
@click.option("--json", "as_json", is_flag=True, help="As JSON: one list of findings.")
def command(
    documents: tuple[str, ...],
    level: str,
    only: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    as_json: bool,
) -> int:
    """
    Say what is wrong with OpenAPI documents, with line and pointer: a path, a URL, a bundled name, or - for standard input.

    An error makes a tool or client that follows the document go wrong, a warning misleads, an info is worth knowing.
    Nothing is sent to the endpoint that a document describes.

    \b
    Examples:
      streamgauge lint openapi.yaml
      streamgauge lint seekr-chat --level warning
      curl -s http://127.0.0.1:8000/openapi.json | streamgauge lint - --json
      streamgauge lint openapi.yaml --fail-on warning --ignore spec.server-real-host
      streamgauge list rules
      streamgauge explain spec.nullable-in-31

    \b
    Exit codes: 0 no error, 1 at least one (or what --fail-on says), 2 wrong use: no such document, no such rule.
    """
    from streamgauge.lint.rule import LintLevel
    from streamgauge.lint.run import lint
    from streamgauge.outcomes import ExitCode

    _require_known({*only, *ignore})
    found = [
        finding
        for document in documents
        for finding in lint(document)
        if (not only or finding.rule.id in only) and finding.rule.id not in ignore
    ]
    shown = [finding for finding in found if finding.rule.level.weight >= LintLevel(level).weight]
    if as_json:
        click.echo(json.dumps([finding.line() for finding in shown], indent=1, ensure_ascii=False))
    else:
        _print(shown, found, len(documents))
    failed = any(finding.rule.level.weight >= LintLevel(fail_on).weight for finding in found)
    return int(ExitCode.GATE_FAILED if failed else ExitCode.PASS)


def _require_known(ids: set[str]) -> None:
    from streamgauge.errors import UsageError
    from streamgauge.lint.rule import RULES

    if unknown := sorted(ids - RULES.keys()):
        raise UsageError(f"no rule is called {unknown[0]}", hint="`streamgauge list rules` shows them.")


def _print(shown: "list[Finding]", found: "list[Finding]", documents: int) -> None:
    from streamgauge.lint.rule import LintLevel
    from streamgauge.text import one_line

    colours = {"error": "red", "warning": "yellow", "info": "blue"}
    for finding in shown:
        level = finding.rule.level.value
        more = f" (and {len(finding.also)} more)" if finding.also else ""
        place = finding.pointer or "(the whole)"
        message = one_line(finding.message, 300)
        click.echo(f"{finding.where} {click.style(level, colours[level])} {finding.rule.id} {place}: {message}{more}")
    counts = {level: sum(finding.rule.level is level for finding in found) for level in LintLevel}
    said = ", ".join(f"{count} {level}{'s' if count != 1 else ''}" for level, count in counts.items())
    what = "1 document" if documents == 1 else f"{documents} documents"
    click.echo(f"{what}: {said}" + (f"; {len(found) - len(shown)} below the level" if len(found) > len(shown) else ""))
