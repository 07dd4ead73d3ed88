"""`streamgauge explain`."""

import click

from streamgauge.errors import UsageError

__all__ = ["command"]


@click.command("explain")
@click.argument("id_", metavar="ID")
def command(id_: str) -> None:
    """
    Explain a check, a metric, an outcome or a rule of `lint`, with the sentence it comes from.

    \b
    Examples:
      streamgauge explain sse.done
      streamgauge explain ttft
      streamgauge explain inconclusive
      streamgauge explain spec.nullable-in-31
    """
    from streamgauge.cli.list_ import KINDS

    for kind in ("checks", "metrics", "outcomes", "profiles", "specs", "rules"):
        for row in KINDS[kind]():
            if row["id"] == id_:
                click.echo(f"{id_} ({kind.removesuffix('s')})")
                for name, value in row.items():
                    if name != "id":
                        click.echo(click.wrap_text(f"{name}: {value}", 100, "  ", "      "))
                return
    raise UsageError(
        f"nothing is called {id_}",
        hint="`streamgauge list checks` (or metrics, outcomes, profiles, specs, rules) shows every id.",
    )
