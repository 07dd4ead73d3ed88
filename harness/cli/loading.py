"""The load part of `load` and `run`: the options that both take, and the run itself."""

import dataclasses
import functools
import re
import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from streamgauge.bundle.writer import BundleWriter
    from streamgauge.target import Target

__all__ = ["LoadPart", "load_options"]

_COUNT = click.IntRange(min=1)


_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


def _seconds(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """A length of time in whole seconds, written as `90`, `20s`, `2m`, `1h` or `1m30s`."""
    found = _DURATION.fullmatch(value.strip())
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    total = 3600 * hours + 60 * minutes + seconds
    if total < 1:
        raise click.BadParameter(f"{value!r} is no length of time; write 20s, 2m or 1m30s", ctx, parameter)
    return total


@dataclasses.dataclass(frozen=True, slots=True)
class LoadPart:
    """The load part of a run; see `--help` for the meaning of each member."""

    users: int
    duration: int
    requests: int | None
    prompt_tokens: int
    max_tokens: int
    no_stream: bool
    seed: int
    operation: str | None
    locust_arguments: tuple[str, ...] = ()

    def require_sense(self, targets: "Sequence[Target]") -> None:
        """
        Refuse what cannot be run, before anything is sent.

        Raises:
            UsageError: there is no such operation, or Locust's own arguments contradict ours.
        """
        from streamgauge.load.command import refuse_owned
        from streamgauge.load.plan import plan_for

        refuse_owned(self.locust_arguments)
        plan_for(targets, self.operation)

    def run(self, targets: "Sequence[Target]", writer: "BundleWriter", console: "Console") -> tuple[ExitCode, str]:
        """Load one operation into an open bundle; the exit code that this alone would give, and the reason."""
        from streamgauge.load.measure import measure
        from streamgauge.load.plan import plan_for

        plan = plan_for(
            targets,
            self.operation,
            users=self.users,
            duration_s=self.duration,
            requests=self.requests,
            prompt_tokens=self.prompt_tokens,
            max_tokens=self.max_tokens,
            stream=not self.no_stream,
            seed=self.seed,
            locust_arguments=self.locust_arguments,
        )
        return measure(plan, writer, console)


_OPTIONS = (
    click.option(
        "--users",
        type=_COUNT,
        default=8,
        show_default=True,
        metavar="N",
        help="Users at once, each with one request at a time.",
    ),
    click.option(
        "--duration",
        callback=_seconds,
        default="20s",
        show_default=True,
        metavar="TIME",
        help="After it no new request begins: 20s, 2m, 1m30s.",
    ),
    click.option("--requests", type=_COUNT, metavar="N", help="Stop earlier, after so many requests in all."),
    click.option(
        "--prompt-tokens", type=_COUNT, default=64, show_default=True, metavar="N", help="Length of each prompt, about."
    ),
    click.option("--max-tokens", type=_COUNT, default=64, show_default=True, metavar="N", help="Limit of each answer."),
    click.option("--no-stream", is_flag=True, help="Ask for whole answers instead of streams."),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        metavar="N",
        help="Seed of the prompts. [default: drawn anew, so that no cache knows them]",
    ),
    click.option("--operation", metavar="NAME", help="Operation to load. [default: the first]"),
)


def load_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a load run; it receives them as `load`, a :class:`LoadPart`."""
    names = [field.name for field in dataclasses.fields(LoadPart) if field.name != "locust_arguments"]

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in names}
        given["seed"] = secrets.randbelow(2**31) if given["seed"] is None else given["seed"]
        return function(*args, load=LoadPart(**given), **kwargs)

    decorated: Callable[..., Any] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
