"""The load part of `load` and `run`: the options that both take, and the run itself."""

import dataclasses
import functools
import importlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.cli.sections import Section
from streamgauge.outcomes import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from streamgauge.bundle.writer import BundleWriter
    from streamgauge.load.child import Child
    from streamgauge.load.plan import LoadPlan
    from streamgauge.target import Target

__all__ = ["LoadPart", "load_options"]


@dataclasses.dataclass(frozen=True, slots=True)
class LoadPart:
    """
    The load part of a run.

    Attributes:
        settings: what flags and scenario file say, as `streamgauge.load.plan.plan_for` takes it.
        seed: the user's, or one drawn anew.
        locust_arguments: Locust's own.
        standby: the process that is going to send, if it was started already.
    """

    settings: Mapping[str, Any]
    seed: int
    locust_arguments: tuple[str, ...] = ()
    standby: "Child | None" = None

    def plan(self, targets: "Sequence[Target]") -> "LoadPlan":
        """
        The plan that this means for these targets.

        Raises:
            UsageError: it does not fit the targets, or Locust's own arguments contradict it.
        """
        from streamgauge.load.command import refuse_owned
        from streamgauge.load.plan import plan_for

        refuse_owned(self.locust_arguments)
        settings = {**self.settings, "seed": self.seed, "locust_arguments": self.locust_arguments}
        return plan_for(targets, **settings)

    def require_sense(self, targets: "Sequence[Target]") -> None:
        """
        Refuse what cannot be run, before anything is sent.

        Raises:
            UsageError: as :meth:`plan`, or the prompts cannot be used.
        """
        _ = self.plan(targets).workload

    def run(self, targets: "Sequence[Target]", writer: "BundleWriter", console: "Console") -> tuple[ExitCode, str]:
        """Load the target into an open bundle; the exit code that this alone would give, and the reason."""
        from streamgauge.load.measure import measure

        # What the report is made with is imported while this process has nothing to do but wait for Locust.
        threading.Thread(target=importlib.import_module, args=("streamgauge.reports.write",), daemon=True).start()
        return measure(self.plan(targets), writer, console, self.standby)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _part(values: Mapping[str, Any], scenario: Path | None) -> LoadPart:
    from streamgauge.load.scenario import load_scenario
    from streamgauge.load.settings import Given, read_settings

    flags = {name: Given(value, _flag(name)) for name, value in values.items() if value not in (None, False, ())}
    settings = read_settings(flags, load_scenario(scenario) if scenario else {})
    return LoadPart(settings, settings.get("seed", secrets.randbelow(2**31)))


_HOW_HARD = Section("How hard: users who wait for their answers (closed loop), or requests at a rate (open loop)")
_WHAT = Section("What is asked")
_JUDGED = Section("What counts, and when to give up")

_OPTIONS: tuple[tuple[Section, str, dict[str, Any]], ...] = (
    (
        _HOW_HARD,
        "users",
        {"metavar": "N", "help": "Closed loop: users at once, each with one request at a time. [default: 8]"},
    ),
    (
        _HOW_HARD,
        "think",
        {"metavar": "TIME", "help": "Closed loop: mean pause behind an answer, exponential. [default: none]"},
    ),
    (
        _HOW_HARD,
        "rate",
        {
            "metavar": "RATE",
            "help": "Open loop: requests per second, which arrive whether the earlier ones are answered or not. "
            "50; 10..100 (a ramp over the run); 10@30s,20@30s (steps).",
        },
    ),
    (
        _HOW_HARD,
        "arrivals",
        {
            "metavar": "PROCESS",
            "help": "Open loop: poisson, constant, or gamma:SHAPE (below 1 in bursts, above 1 more regular). "
            "[default: poisson]",
        },
    ),
    (
        _HOW_HARD,
        "max_in_flight",
        {
            "metavar": "N",
            "help": "Open loop: an arrival beyond so many requests in flight in one process is dropped, and counted so. "
            "[default: 10000]",
        },
    ),
    (
        _HOW_HARD,
        "duration",
        {
            "metavar": "TIME",
            "help": "After it no new request begins: 20s, 2m, 1m30s. [default: 20s, or what --rate says]",
        },
    ),
    (_HOW_HARD, "requests", {"metavar": "N", "help": "Stop earlier, after so many requests in all."}),
    (_HOW_HARD, "warm_up", {"metavar": "TIME", "help": "What is sent before counts in no figure. [default: none]"}),
    (
        _HOW_HARD,
        "drain",
        {"metavar": "TIME", "help": "So long may requests in flight go on after the end. [default: 30s]"},
    ),
    (
        _WHAT,
        "prompt_tokens",
        {
            "metavar": "LENGTH",
            "help": "Length of each prompt, about. 64; uniform:16..256; normal:128,32 (mean, deviation); "
            "lognormal:128,0.5 (median, sigma). [default: 64]",
        },
    ),
    (_WHAT, "max_tokens", {"metavar": "LENGTH", "help": "Limit of each answer, written likewise. [default: 64]"}),
    (
        _WHAT,
        "shared_prefix",
        {
            "metavar": "N",
            "help": "Put the same N tokens in front of every prompt, for prefix caches on purpose; what follows is new in "
            "each request. [default: 0]",
        },
    ),
    (
        _WHAT,
        "prompts",
        {
            "metavar": "FILE",
            "help": 'Prompts from JSON lines, {"prompt": ...} or {"messages": [...]}, with "max_tokens" if wanted; each once '
            "before any comes again. A number of its own is put in front of each, so that no prefix cache answers for "
            "the model.",
        },
    ),
    (_WHAT, "operation", {"metavar": "NAME", "help": "Operation to load. [default: the first]"}),
    (
        _WHAT,
        "mix",
        {"metavar": "MIX", "help": "Several operations by weight, streamed or whole: seekr-chat=3,seekr-chat:whole=1."},
    ),
    (_WHAT, "no_stream", {"is_flag": True, "help": "Ask for whole answers where --mix does not say."}),
    (
        _WHAT,
        "seed",
        {
            "metavar": "N",
            "help": "Seed of arrivals, prompts and lengths. [default: drawn anew, so that no cache knows them]",
        },
    ),
    (
        _JUDGED,
        "slo",
        {
            "metavar": "SLO",
            "multiple": True,
            "help": "What has to hold, or the run fails: ttft:p95<=500ms. Repeatable.",
        },
    ),
    (
        _JUDGED,
        "judge",
        {
            "metavar": "SHARE",
            "help": "Answers whose every event is held against the schema: all, 10%, or ends. Of the others, texts between "
            "the ends are not, which can cost the client less; their gaps are estimates. [default: all]",
        },
    ),
    (
        _JUDGED,
        "abort_on",
        {
            "metavar": "RULE",
            "multiple": True,
            "help": "Give the run up: errors>50% (of the latest requests), consecutive>=20. Repeatable.",
        },
    ),
    (
        _JUDGED,
        "load_budget_tokens",
        {
            "metavar": "N",
            "help": "No new request once prompts and answers of the load have cost so many tokens. [default: no limit]",
        },
    ),
    (
        _JUDGED,
        "server_metrics",
        {
            "metavar": "URL",
            "help": "The server's own counters, read beside the run and compared: their URL, off, or auto (/metrics of the "
            "target's host, if it has one). [default: auto]",
        },
    ),
)
"""Section, name of the setting, and what Click is to know of it. Values are read by `streamgauge.load.settings`."""


def load_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that takes a `scenario` the options of a load run; it receives all as `load`, a :class:`LoadPart`."""

    @functools.wraps(function)
    def command(*args: Any, scenario: Path | None, **kwargs: Any) -> Any:
        values = {name: kwargs.pop(name) for _, name, _ in _OPTIONS}
        return function(*args, load=_part(values, scenario), **kwargs)

    decorated: Callable[..., Any] = command
    for section, name, settings in reversed(_OPTIONS):
        decorated = section.option(_flag(name), **settings)(decorated)
    return decorated
