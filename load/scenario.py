"""Scenario files: the settings of a load run, kept with its target's other files, and a plan written as one."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.errors import ConfigError
from streamgauge.load.arrivals import ClosedLoop, OpenLoop
from streamgauge.load.mix import MixEntry
from streamgauge.load.plan import LoadPlan
from streamgauge.load.rate import rate_of
from streamgauge.load.settings import OFF, Given
from streamgauge.load.texts import time_text, written
from streamgauge.yamlfile import Located, load_yaml

__all__ = ["load_scenario", "scenario_from_text", "scenario_of", "scenario_text"]


def load_scenario(path: Path) -> dict[str, Given]:
    """
    Read a scenario file, YAML or JSON; a relative path of prompts is taken from the file's folder.

    Raises:
        ConfigError: it cannot be read, or holds what `spec/scenario.schema.json` does not allow.
    """
    located = load_yaml(path, error=ConfigError)
    _require_valid(located)
    texts = {name: _text(value) for name, value in located.data.items()}
    if "prompts" in texts:
        texts["prompts"] = str(path.parent / texts["prompts"])
    return {name: Given(value, located.where([name])) for name, value in texts.items()}


def _require_valid(located: Located) -> None:
    schema = catalog.schema("scenario")
    for error in Draft202012Validator(schema).iter_errors(located.data):
        steps = list(error.absolute_path)
        known = schema["properties"]
        if error.validator == "additionalProperties" and not steps:
            unknown = [name for name in located.data if name not in known]
            raise ConfigError(
                f"there is no setting {', '.join(map(str, unknown))}",
                where=located.where(unknown[:1]),
                hint=f"There are: {', '.join(known)}.",
            )
        name = steps[0] if steps else "a scenario"
        hint = known[name]["description"] if name in known else f"A mapping of: {', '.join(known)}."
        raise ConfigError(f"{name}: {error.message}", where=located.where(steps), hint=hint)


def _text(value: Any) -> Any:
    """A value of the file as the flag would be written."""
    if isinstance(value, dict):
        return ",".join(f"{name}={written(weight)}" for name, weight in value.items())
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value if isinstance(value, str | bool) else written(value)


def scenario_text(path: Path) -> str:
    """
    A scenario file, read and found right, as JSON whose paths are absolute: to be handed to other processes.

    Raises:
        ConfigError: as :func:`load_scenario`.
    """
    return json.dumps({name: item.value for name, item in load_scenario(path.resolve()).items()})


def scenario_from_text(text: str, where: str) -> dict[str, Given]:
    """What :func:`scenario_text` wrote; nothing for an empty text."""
    return {name: Given(value, where) for name, value in json.loads(text or "{}").items()}


def scenario_of(plan: LoadPlan) -> dict[str, Any]:
    """
    The plan's settings as a scenario file has them: read again, they make the same plan for the same target.

    Only `locust_arguments` are not among them.
    """
    settings: dict[str, Any] = {
        **(_closed(plan.loop, plan.duration_s) if isinstance(plan.loop, ClosedLoop) else _open(plan.loop)),
        "mix": ",".join(str(MixEntry(part.operation.name, part.stream, part.weight)) for part in plan.mix),
        "max_tokens": str(plan.max_tokens),
        "shared_prefix": plan.shared_prefix,
        "seed": plan.seed,
        "warm_up": time_text(plan.warm_up_s),
        "drain": time_text(plan.drain_s),
        "judge": f"{written(round(plan.judge * 100, 10))}%",
        "slo": [str(slo) for slo in plan.slos],
        "abort_on": [str(rule) for rule in plan.abort_on],
        "server_metrics": plan.metrics_url or OFF,
    }
    if plan.dataset is None:
        settings["prompt_tokens"] = str(plan.prompt_tokens)
    else:
        settings["prompts"] = str(plan.dataset.resolve())
    limits = {"requests": plan.requests, "load_budget_tokens": plan.budget_tokens}
    return settings | {name: limit for name, limit in limits.items() if limit is not None}


def _closed(loop: ClosedLoop, duration_s: int) -> dict[str, Any]:
    lasting = {"duration": time_text(duration_s)} if duration_s else {}
    return {"users": loop.users, "think": time_text(loop.think_s), **lasting}


def _open(loop: OpenLoop) -> dict[str, Any]:
    process = f"gamma:{written(loop.burstiness)}" if loop.process == "gamma" else loop.process
    return {"rate": rate_of(loop.segments), "arrivals": process, "max_in_flight": loop.max_in_flight}
