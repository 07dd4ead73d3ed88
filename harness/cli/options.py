"""Options that several commands share."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from streamgauge.config import TargetFlags
    from streamgauge.target import Target

__all__ = ["check_options", "output_options", "resolve_targets", "target_options"]

_PATH = click.Path(path_type=Path)


def _once(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The one value; Click itself would take the last of several without a word."""
    if len(values) > 1:
        raise click.BadParameter(f"given {len(values)} times; a run has one", ctx, parameter)
    return values[0] if values else None


_ONE: dict[str, Any] = {"multiple": True, "callback": _once}

_TARGET_OPTIONS = (
    click.option("--target", metavar="NAME", **_ONE, help="Target from streamgauge.yaml."),
    click.option(
        "--base-url", metavar="URL", **_ONE, help="Prefix before an operation's path, e.g. http://127.0.0.1:8000."
    ),
    click.option(
        "--spec",
        metavar="SPEC",
        multiple=True,
        help="What it has to keep: a bundled document (`list specs`), a path, a URL, or - (stdin). Repeatable.",
    ),
    click.option(
        "--profile",
        metavar="PROFILE",
        **_ONE,
        help="Vendor profile, by name or path. [default: the document's own]",
    ),
    click.option("--model", metavar="MODEL", **_ONE, help="Model to ask for. [default: the only one that is served]"),
    click.option(
        "--path",
        metavar="[OPERATION=]PATH",
        multiple=True,
        help="Path in place of the document's. Repeatable.",
    ),
    click.option(
        "--header",
        metavar="NAME=VALUE",
        multiple=True,
        help="Further header field; write a secret value as ${VARIABLE}. Repeatable.",
    ),
    click.option(
        "--api-key-file",
        type=_PATH,
        metavar="FILE",
        help="File with the key. [default: $STREAMGAUGE_API_KEY]",
    ),
    click.option("--ca-file", metavar="FILE", help="Certificates to trust instead of the system's (PEM)."),
    click.option("--insecure", is_flag=True, help="Leave TLS certificates unverified. The report says so."),
    click.option("--client-cert", metavar="FILE", help="Certificate to show, and its key unless --client-key (PEM)."),
    click.option("--client-key", metavar="FILE", help="Key of that certificate, without a passphrase (PEM)."),
    click.option(
        "--proxy-from-env",
        is_flag=True,
        help="Obey HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. [default: ask the target itself]",
    ),
    click.option("--remote-refs", is_flag=True, help="Let a document refer to files beside it and to its own host."),
    click.option("--config", type=_PATH, metavar="FILE", help="Configuration. [default: streamgauge.yaml]"),
)

_OUTPUT_OPTIONS = (
    click.option(
        "--output",
        type=_PATH,
        metavar="DIR",
        help="Directory of the bundle. [default: runs/<time>-<command>]",
    ),
    click.option("--quiet", "-q", is_flag=True, help="Only the verdict."),
)

_CHECK_OPTIONS = (
    click.option(
        "--select",
        metavar="PROBE",
        multiple=True,
        help="Send only these: a topic (form, pair, law, law.stop, isolation, alone, refusal, auth, generated, explore; "
        "poison with --destructive), or an id (`list probes`, `list explorations`). Repeatable.",
    ),
    click.option(
        "--budget-tokens",
        type=click.IntRange(min=0),
        metavar="N",
        help="Tokens that one operation may cost, those of --explore-tokens included. [default: 50000]",
    ),
    click.option(
        "--detect-rate",
        type=float,
        metavar="RATE",
        help="Repeat each probe but the generated ones until a fault that strikes at this rate shows with 99 % power: "
        "0.3 (3 requests in 10) takes 13 tries, 0.1 takes 44. What costs tokens is repeated as far as --budget-tokens "
        "goes. [default: one try]",
    ),
    click.option(
        "--explore-tokens",
        type=click.IntRange(min=0),
        metavar="N",
        help="Tokens of that budget that requests drawn at random may cost in each operation; 0 draws none. "
        "[default: 12000]",
    ),
    click.option(
        "--explore-seed",
        type=click.IntRange(min=0),
        metavar="N",
        help="Seed of those draws: the same seed draws the same from the same answers. [default: 0]",
    ),
    click.option(
        "--destructive",
        is_flag=True,
        help="Also send requests that have killed engines, one at a time, until one is lost. Only at a server that is yours "
        "alone. `--dry-run --destructive` names each.",
    ),
    click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Requests at once. [default: 8]"),
    click.option("--baseline", type=_PATH, metavar="FILE", help="Known findings; a stale or expired entry fails."),
    click.option("--write-baseline", type=_PATH, metavar="FILE", help="Write what fails now as a baseline."),
    click.option("--verbose", "-v", is_flag=True, help="Show warnings, refusals and passes, too."),
)


def _decorate(function: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name a target; it receives them as `target_flags`."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        from streamgauge.config import TargetFlags

        names = [field.name for field in dataclasses.fields(TargetFlags)]
        flags = TargetFlags(**{name: kwargs.pop(name) for name in names})
        return function(*args, target_flags=flags, **kwargs)

    return _decorate(command, _TARGET_OPTIONS)


def check_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of checking; it receives them as `check`, a `CheckPart`."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> Any:
        from streamgauge.baseline import load_baseline
        from streamgauge.cli.checking import CheckPart
        from streamgauge.runs import utc_now

        path = kwargs.pop("baseline")
        fields = {field.name for field in dataclasses.fields(CheckPart)} - {"baseline", "sections"}
        given = {name: kwargs.pop(name) for name in fields & kwargs.keys()}
        check = CheckPart(**given, baseline=load_baseline(path, utc_now().date()) if path else None)
        return function(*args, check=check, **kwargs)

    return _decorate(command, _CHECK_OPTIONS)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `output` and `quiet`."""
    return _decorate(function, _OUTPUT_OPTIONS)


def resolve_targets(target_flags: "TargetFlags") -> "list[Target]":
    """The targets that the flags, the environment and streamgauge.yaml mean; see :mod:`streamgauge.config`."""
    from streamgauge import config

    return config.resolve_targets(target_flags)
