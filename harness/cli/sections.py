"""Options in named sections of `--help`."""

from typing import Any

import click

__all__ = ["Section", "SectionedCommand"]


class Section:
    """
    Makes options that stand together in `--help`.

    Args:
        title: what they are about.
    """

    def __init__(self, title: str) -> None:
        self._title = title

    def option(self, *declarations: str, **settings: Any) -> Any:
        """A decorator as `click.option` is one."""
        return click.option(*declarations, cls=_SectionedOption, section=self._title, **settings)


class _SectionedOption(click.Option):
    def __init__(self, *args: Any, section: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose `--help` shows the sections in the order of their options, then all options of no section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write them."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for title, records in sorted(sections.items(), key=lambda item: item[0] == "Options"):
            with formatter.section(title):
                formatter.write_dl(records)
