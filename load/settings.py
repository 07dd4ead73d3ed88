"""
The settings of a load run as people write them: read, weighed against each other, and made a plan's attributes.

A setting has one name everywhere: `prompt_tokens` in a scenario file, `--prompt-tokens` as a flag of `streamgauge load`, and
`--sg-prompt-tokens` as one of Locust's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.errors import ConfigError, UsageError
from streamgauge.load.abort import AbortRule
from streamgauge.load.arrivals import PROCESSES, ClosedLoop, OpenLoop
from streamgauge.load.lengths import Lengths
from streamgauge.load.mix import MixEntry, parse_mix
from streamgauge.load.plan import AUTO
from streamgauge.load.rate import Rate
from streamgauge.load.texts import decimal, seconds, time_text, whole_number, whole_seconds
from streamgauge.metrics.slo import Slo
from streamgauge.target import join_url

__all__ = ["OFF", "Given", "read_settings"]

OFF = "off"
_ALL, _ENDS = "all", "ends"

_MOST_USERS = 100_000
"""More than one machine has ports for, to one server."""


@dataclass(frozen=True, slots=True)
class Given:
    """
    One setting as the user gave it.

    Attributes:
        value: a text; a list of texts where a setting is repeatable; a bool where it is a switch.
        where: the flag, or `file:line:column`.
    """

    value: Any
    where: str


def _arrivals(text: str) -> tuple[str, float]:
    """`poisson`, `constant`, or `gamma:0.5`: the process, and its burstiness."""
    name, colon, shape = text.strip().partition(":")
    if name not in PROCESSES or bool(colon) != (name == "gamma"):
        raise UsageError(
            f"{text!r} is no process of arrivals", hint="Write poisson, constant, or gamma:0.5 (its shape)."
        )
    burstiness = decimal(shape, "shape") if colon else 1.0
    if not 0.01 <= burstiness <= 1000:
        raise UsageError(f"{text!r} has a shape out of reach", hint="It lies between 0.01 (bursts) and 1000 (regular).")
    return name, burstiness


def _judge(text: str) -> float:
    """`all`, `10%`, or `ends`: the share of answers judged event by event."""
    if text in (_ALL, _ENDS):
        return float(text == _ALL)
    if not text.endswith("%") or (percent := decimal(text[:-1], "share")) > 100:
        raise UsageError(f"{text!r} does not say what to judge", hint="Write all, ends, or a share such as 10%.")
    return percent / 100


def _server_metrics(text: str) -> str | None:
    if text in (AUTO, OFF):
        return text if text == AUTO else None
    try:
        join_url(text, "")
    except ConfigError:
        raise UsageError(
            "not an http or https URL without user, query and fragment",
            hint="Write auto, off, or for instance http://127.0.0.1:8000/metrics.",
        ) from None
    return text


@dataclass(frozen=True, slots=True)
class _Setting:
    """
    One setting.

    Attributes:
        parse: the reader of its text; of a repeatable one, of each of its texts.
        attribute: what :func:`plan_for` calls it; empty for those that the loop is made of.
        repeatable: whether there may be several.
    """

    parse: Callable[[Any], Any]
    attribute: str = ""
    repeatable: bool = False


_SETTINGS: dict[str, _Setting] = {
    "users": _Setting(lambda text: whole_number(text, most=_MOST_USERS)),
    "rate": _Setting(Rate.parse),
    "arrivals": _Setting(_arrivals),
    "think": _Setting(seconds),
    "max_in_flight": _Setting(whole_number),
    "duration": _Setting(whole_seconds),
    "requests": _Setting(whole_number, "requests"),
    "warm_up": _Setting(seconds, "warm_up_s"),
    "drain": _Setting(lambda text: whole_seconds(text, least=0), "drain_s"),
    "prompt_tokens": _Setting(Lengths.parse, "prompt_tokens"),
    "max_tokens": _Setting(Lengths.parse, "max_tokens"),
    "shared_prefix": _Setting(lambda text: whole_number(text, least=0, most=1_000_000), "shared_prefix"),
    "prompts": _Setting(Path, "dataset"),
    "operation": _Setting(lambda text: (MixEntry(text),), "entries"),
    "mix": _Setting(parse_mix, "entries"),
    "no_stream": _Setting(lambda switch: not switch, "stream"),
    "judge": _Setting(_judge, "judge"),
    "slo": _Setting(Slo.parse, "slos", repeatable=True),
    "abort_on": _Setting(AbortRule.parse, "abort_on", repeatable=True),
    "load_budget_tokens": _Setting(whole_number, "budget_tokens"),
    "server_metrics": _Setting(_server_metrics, "metrics_url"),
    "seed": _Setting(lambda text: whole_number(text, least=0), "seed"),
}

_OPPOSITES: tuple[tuple[str, str, str], ...] = (
    ("users", "rate", "a closed loop (so many users) or an open one (so many requests per second)"),
    ("operation", "mix", "one operation, or several by weight"),
    ("prompts", "prompt_tokens", "prompts of a file, or made ones of a length"),
    ("rate", "think", "requests at a rate, or users who think between two of them"),
    ("users", "arrivals", "users, or arrivals at a rate"),
    ("users", "max_in_flight", "users, each with one request at a time, or a rate and the most in flight"),
)
"""Two settings that contradict each other, and what the choice is."""

_NEED_A_RATE = ("arrivals", "max_in_flight")


def read_settings(
    flags: Mapping[str, Given], scenario: Mapping[str, Given], *, users: int = 8, duration_s: int = 20
) -> dict[str, Any]:
    """
    What flags and a scenario file mean, as :func:`streamgauge.load.plan.plan_for` takes it.

    A flag stands in place of what the file says, and of what there contradicts the flag.

    Args:
        flags: settings of the command line, by name.
        scenario: settings of the file, by name.
        users: of a closed loop, where nobody says.
        duration_s: where nobody says; 0 for a run that nothing ends.

    Raises:
        ConfigError: a setting cannot be read, or two contradict each other.
    """
    given = _merged(flags, scenario)
    found = {name: _read(name, item) for name, item in given.items()}
    named = {_SETTINGS[name].attribute: value for name, value in found.items() if _SETTINGS[name].attribute}
    loop, lasting_s = _loop({"users": users, "duration": duration_s, **found}, given)
    if lasting_s and named.get("warm_up_s", 0) >= lasting_s:
        raise ConfigError(f"nothing is left of {time_text(lasting_s)} after it", where=given["warm_up"].where)
    return {**named, "loop": loop, "duration_s": lasting_s}


def _merged(flags: Mapping[str, Given], scenario: Mapping[str, Given]) -> dict[str, Given]:
    aside = {other for one, other, _ in _OPPOSITES if one in flags} | {
        one for one, other, _ in _OPPOSITES if other in flags
    }
    if "rate" in flags and "@" in flags["rate"].value:
        aside.add("duration")
    given = {**{name: item for name, item in scenario.items() if name not in aside}, **flags}
    for one, other, choice in _OPPOSITES:
        if one in given and other in given:
            raise ConfigError(
                f"{one} contradicts {other} ({given[other].where})", where=given[one].where, hint=f"Choose: {choice}."
            )
    for name in _NEED_A_RATE:
        if name in given and "rate" not in given:
            raise ConfigError("is for an open loop only", where=given[name].where, hint="Give a rate, too.")
    return given


def _read(name: str, given: Given) -> Any:
    setting = _SETTINGS[name]
    try:
        return tuple(map(setting.parse, given.value)) if setting.repeatable else setting.parse(given.value)
    except UsageError as problem:
        raise ConfigError(problem.what, where=given.where, hint=problem.hint) from None


def _loop(found: Mapping[str, Any], given: Mapping[str, Given]) -> tuple[ClosedLoop | OpenLoop, int]:
    """The loop, and the whole seconds that it lasts."""
    if "rate" not in found:
        return ClosedLoop(found["users"], found.get("think", 0.0)), found["duration"]
    try:
        segments = found["rate"].segments(found["duration"], given="duration" in given)
    except UsageError as problem:
        raise ConfigError(problem.what, where=given["rate"].where, hint=problem.hint) from None
    said = {"max_in_flight": found["max_in_flight"]} if "max_in_flight" in found else {}
    if "arrivals" in found:
        said["process"], said["burstiness"] = found["arrivals"]
    loop = OpenLoop(segments, **said)
    return loop, int(loop.seconds)
