"""What a load run was told to do, in words, from load.json; what an earlier streamgauge left out there is left out here."""

from collections.abc import Iterator
from typing import Any

from streamgauge.reports.axes import figure

__all__ = ["asked"]

_PROCESSES = {
    "constant": "evenly spaced arrivals",
    "poisson": "Poisson arrivals (as of many people who know nothing of each other)",
    "gamma": "gamma arrivals of burstiness {} (1 is Poisson, below it comes in bursts, above it is more regular)",
}

_LENGTHS = {
    "uniform": "{} tokens (uniform: from, to)",
    "normal": "{} tokens (normal: mean, deviation)",
    "lognormal": "{} tokens (lognormal: median, sigma)",
}


def asked(run: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """
    Term and description of each thing that was asked for.

    Args:
        run: load.json.
    """
    loop = run.get("loop") or {"kind": "closed", "users": run["users"], "think_s": 0}
    parts = (
        ("Load", _open(loop, run) if loop["kind"] == "open" else _closed(loop, run)),
        ("Mix", _mix(run)),
        ("Prompts", _prompts(run)),
        ("Answers", f"at most {_length(run['max_tokens'])}"),
        ("Warm-up", _warm_up(run.get("warm_up_s"))),
        ("Judged", _judged(run.get("judge", 1.0))),
        ("Given up on", " or ".join(run.get("abort_on", ()))),
        ("Token budget", figure(run["budget_tokens"]) if run.get("budget_tokens") is not None else ""),
        ("Seed", str(run["seed"])),
    )
    return tuple((term, told) for term, told in parts if told)


def _closed(loop: dict[str, Any], run: dict[str, Any]) -> str:
    think = (
        f", thinking for {figure(loop['think_s'])} s on average between an answer and the next"
        if loop["think_s"]
        else ""
    )
    users = "1 user" if loop["users"] == 1 else f"{loop['users']} users"
    return f"closed loop of {users}, each with one request at a time{think}, for {figure(run['duration_s'])} s{_limit(run)}"


def _open(loop: dict[str, Any], run: dict[str, Any]) -> str:
    rates = ", then ".join(_segments(loop))
    process = _PROCESSES[loop["process"]].format(figure(loop["burstiness"]))
    many = f"{run['scheduled']} requests in all" if run.get("scheduled") is not None else ""
    return (
        f"open loop: requests arrive whether the earlier ones are answered or not, {rates}"
        f"{f'; {many}' if many else ''}{_limit(run)}; {process}; one beyond {figure(loop['max_in_flight'])} in flight in a "
        "process is dropped"
    )


def _segments(loop: dict[str, Any]) -> Iterator[str]:
    for segment in loop["segments"]:
        start, end = figure(segment["start"]), figure(segment["end"])
        yield f"{start if start == end else f'{start} to {end}'} a second for {figure(segment['seconds'])} s"


def _limit(run: dict[str, Any]) -> str:
    return f", at most {run['requests']} requests" if run.get("requests") is not None else ""


def _mix(run: dict[str, Any]) -> str:
    mix = run.get("mix") or [{"operation": run["operation"], "stream": run["stream"], "weight": 1}]
    weights = sum(part["weight"] for part in mix)
    return "; ".join(
        f"{figure(100 * part['weight'] / weights)} % " * (len(mix) > 1)
        + f"{part['operation']}, {'streamed' if part['stream'] else 'whole answers'}"
        for part in mix
    )


def _prompts(run: dict[str, Any]) -> str:
    made = f"of {run['dataset']}" if run.get("dataset") else f"about {_length(run['prompt_tokens'])}"
    shared = run.get("shared_prefix")
    return f"{made}, the first {shared} of them the same in each" if shared else f"{made}, each unlike all others"


def _length(written: str | int) -> str:
    kind, _, parameters = str(written).partition(":")
    return _LENGTHS[kind].format(parameters) if kind in _LENGTHS else f"{written} tokens"


def _warm_up(seconds: float | None) -> str:
    return f"{figure(seconds)} s; what was scheduled in it counts in no figure of a request" if seconds else ""


def _judged(share: float) -> str:
    if share >= 1:
        return "every answer, event by event"
    others = "at both ends only"
    return (
        f"{figure(100 * share)} % of the answers event by event, the others {others}" if share else f"answers {others}"
    )
