"""The arguments that our locustfile adds to Locust's: declared once, and read back into a plan."""

import argparse
import functools
import json
import secrets
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamgauge.config import KEY_VARIABLE
from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import ConfigError, UsageError
from streamgauge.load.plan import LoadPlan, plan_for
from streamgauge.load.scenario import scenario_from_text, scenario_text
from streamgauge.load.settings import Given, read_settings
from streamgauge.target import Target

__all__ = ["HEADERS_VARIABLE", "add_arguments", "plan_from"]

HEADERS_VARIABLE = "STREAMGAUGE_HEADERS"
"""Environment variable with further header fields as a JSON object: for those whose values are secrets."""


def _scenario(path: str) -> str:
    """The text of a scenario file: workers get it from their master, wherever they run."""
    try:
        return scenario_text(Path(path))
    except UsageError as problem:
        raise argparse.ArgumentTypeError(" ".join(str(problem).split())) from None


def _defaults() -> dict[str, Any]:
    # Drawn when the command line is read, before Locust forks: all processes share one directory and one seed.
    return {
        "sg_output": f"runs/{datetime.now(UTC):%Y%m%dT%H%M%SZ}-locust",
        "sg_drawn_seed": secrets.randbelow(2**31),
    }


_SEVERAL: dict[str, Any] = {"action": "append", "default": [], "include_in_web_ui": False}

_TARGET: dict[str, dict[str, Any]] = {
    "--sg-spec": {
        **_SEVERAL,
        "help": "Document that the target keeps: a bundled name, or a path. Repeatable. Default: seekr-chat.",
    },
    "--sg-profile": {"default": "", "help": "Vendor profile, by name or path. Default: the document's own."},
    "--sg-path": {
        **_SEVERAL,
        "metavar": "[OPERATION=]PATH",
        "help": "Path in place of the document's. Repeatable.",
    },
    "--sg-model": {"default": "", "help": "Model to ask for."},
    "--sg-target": {"default": "target", "help": "Name of the target in the records."},
    "--sg-output": {"help": "Directory of the records. Default: runs/<time>-locust."},
    "--sg-ca-file": {"default": "", "help": "Certificates to trust instead of the system's (PEM)."},
    "--sg-client-cert": {"default": "", "help": "Certificate to show, and its key unless --sg-client-key (PEM)."},
    "--sg-client-key": {"default": "", "help": "Key of that certificate, without a passphrase (PEM)."},
    "--sg-insecure": {"action": "store_true", "help": "Leave TLS certificates unverified."},
    "--sg-header": {
        **_SEVERAL,
        "metavar": "NAME=VALUE",
        "help": f"Further header field. Secret ones: {HEADERS_VARIABLE}, a JSON object in the environment.",
    },
    "--sg-scenario": {
        "type": _scenario,
        "metavar": "FILE",
        "include_in_web_ui": False,
        "help": "Settings of the run as `streamgauge load` takes them; what is given here as well stands in their place.",
    },
}

_TEXT: dict[str, Any] = {"default": ""}

_SETTINGS: dict[str, dict[str, Any]] = {
    "rate": {**_TEXT, "help": "Open loop: requests per second: 50, 10..100 (a ramp), 10@30s,20@30s (steps)."},
    "arrivals": {**_TEXT, "help": "Open loop: poisson, constant or gamma:SHAPE. Default: poisson."},
    "think": {**_TEXT, "help": "Closed loop: mean pause of a user. Default: none."},
    "max_in_flight": {**_TEXT, "help": "Open loop: drop arrivals beyond so many requests in flight in one process."},
    "requests": {**_TEXT, "help": "Stop after so many requests in all."},
    "warm_up": {**_TEXT, "help": "What is scheduled before this time counts in no figure."},
    "prompt_tokens": {**_TEXT, "help": "Length of each prompt, about: 64, uniform:16..256, .... Default: 64."},
    "shared_prefix": {**_TEXT, "help": "Tokens in front of every prompt, the same for all."},
    "prompts": {**_TEXT, "help": "File of JSON lines with prompts."},
    "max_tokens": {**_TEXT, "help": "Limit of each answer. Default: 64."},
    "operation": {**_TEXT, "help": "Operation of the document. Default: its first."},
    "mix": {**_TEXT, "help": "Several operations by weight: seekr-chat=3,seekr-chat:whole=1."},
    "no_stream": {"action": "store_true", "help": "Ask for whole answers."},
    "judge": {**_TEXT, "help": "all, ends, or the share of answers judged event by event: 10%%. Default: all."},
    "slo": {**_SEVERAL, "help": "What has to hold: ttft:p95<=500ms. Repeatable."},
    "abort_on": {**_SEVERAL, "help": "When the run is given up: errors>50%%, consecutive>=20. Repeatable."},
    "load_budget_tokens": {**_TEXT, "help": "No new request once so many tokens are spent."},
    "server_metrics": {**_TEXT, "help": "The server's own counters: auto, off, or their URL. Default: auto."},
    "seed": {
        **_TEXT,
        "help": "Seed of arrivals, prompts and lengths. Default: drawn anew, so that no cache knows them.",
    },
}
"""Name of each setting of :mod:`streamgauge.load.settings` that Locust has no option for → its argument."""


def _flag(name: str) -> str:
    return f"--sg-{name.replace('_', '-')}"


def add_arguments(parser: Any) -> None:
    """Add them to Locust's parser."""
    for flag, settings in (*_TARGET.items(), *((_flag(name), each) for name, each in _SETTINGS.items())):
        parser.add_argument(flag, **settings)
    parser.set_defaults(**_defaults())


def plan_from(options: Namespace, host: str | None, environment: Mapping[str, str]) -> LoadPlan:
    """
    The plan that Locust's options, its host and the environment mean.

    Raises:
        ConfigError: host or model are missing, or a value makes no sense.
        UsageError: document, profile or prompts cannot be used, or an operation is not among the document's.
    """
    if not host:
        raise ConfigError("no target: name it by Locust's own --host, e.g. --host http://127.0.0.1:8000")
    if not options.sg_model:
        raise ConfigError("no model: name it by --sg-model")
    secret_headers = _secret_headers(environment.get(HEADERS_VARIABLE, ""))
    contracts = _contracts(tuple(options.sg_spec) or ("seekr-chat",), options.sg_profile or None)
    targets = [
        Target(
            name=options.sg_target,
            base_url=host,
            contract=contract,
            model=options.sg_model,
            key=environment.get(KEY_VARIABLE) or None,
            headers={**_plain_headers(options.sg_header), **secret_headers},
            secret_headers=frozenset(secret_headers),
            paths=_paths(options, contract),
            ca_file=options.sg_ca_file or None,
            insecure=options.sg_insecure,
            client_cert=options.sg_client_cert or None,
            client_key=options.sg_client_key or None,
        )
        for contract in contracts
    ]
    targets[0].url(contracts[0].operations[0])  # refuses a base that is no http(s) URL
    scenario = scenario_from_text(options.sg_scenario or "", "--sg-scenario")
    settings = read_settings(_flags(options, scenario), scenario, users=1, duration_s=0)
    return plan_for(targets, **{"seed": options.sg_drawn_seed, **settings})


def _flags(options: Namespace, scenario: Mapping[str, Given]) -> dict[str, Given]:
    """What was given on Locust's command line or in its web UI."""
    values = {name: getattr(options, f"sg_{name}") for name in _SETTINGS}
    flags = {name: Given(value, _flag(name)) for name, value in values.items() if value}
    # In an open loop Locust's users are the processes that send.
    if options.num_users and "rate" not in {**flags, **scenario}:
        flags["users"] = Given(str(options.num_users), "--users")
    if options.run_time:
        flags["duration"] = Given(str(options.run_time), "--run-time")
    return flags


@functools.cache
def _contracts(specs: tuple[str, ...], profile: str | None) -> list[Contract]:
    return load_contracts(specs, profile)


def _paths(options: Namespace, contract: Contract) -> dict[str, str]:
    """Operation → path; a path alone is that of the operation that is loaded."""
    pairs = [("", "", item) if item.startswith("/") else item.partition("=") for item in options.sg_path]
    if not all(path.startswith("/") for _, _, path in pairs):
        raise ConfigError("a path is given as /PATH or OPERATION=/PATH", where="--sg-path")
    loaded = options.sg_operation or contract.operations[0].name
    named = {name or loaded: path for name, _, path in pairs}
    return {name: path for name, path in named.items() if contract.operation(name)}


def _plain_headers(given: list[str]) -> dict[str, str]:
    pairs = [item.partition("=") for item in given]
    if not all(name and equals for name, equals, _ in pairs):
        raise ConfigError("a header is given as NAME=VALUE", where="--sg-header")
    return {name: value for name, _, value in pairs}


def _secret_headers(text: str) -> dict[str, str]:
    try:
        headers = json.loads(text or "{}")
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise ConfigError("has to be a JSON object of texts", where=HEADERS_VARIABLE)
    return headers
