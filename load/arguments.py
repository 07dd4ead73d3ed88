"""The arguments that our locustfile adds to Locust's: declared once, read back into a plan, written by our own runner."""

import functools
import json
import secrets
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from streamgauge.config import KEY_VARIABLE
from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import ConfigError
from streamgauge.load.plan import LoadPlan
from streamgauge.target import Target

__all__ = ["HEADERS_VARIABLE", "add_arguments", "plan_from"]

HEADERS_VARIABLE = "STREAMGAUGE_HEADERS"
"""Environment variable with further header fields as a JSON object: for those whose values are secrets."""


def _defaults() -> dict[str, Any]:
    # Drawn when the command line is read, before Locust forks: all processes share one directory and one seed.
    return {
        "sg_output": f"runs/{datetime.now(UTC):%Y%m%dT%H%M%SZ}-locust",
        "sg_seed": secrets.randbelow(2**31),
    }


_ARGUMENTS: dict[str, dict[str, Any]] = {
    "--sg-spec": {"default": "seekr-chat", "help": "Document that the target keeps: a bundled name, or a path."},
    "--sg-profile": {"default": "", "help": "Vendor profile, by name or path. Default: the document's own."},
    "--sg-operation": {"default": "", "help": "Operation of the document. Default: its first."},
    "--sg-path": {"default": "", "help": "Path in place of the document's."},
    "--sg-model": {"default": "", "help": "Model to ask for."},
    "--sg-target": {"default": "target", "help": "Name of the target in the records."},
    "--sg-prompt-tokens": {"type": int, "default": 64, "help": "Length of each prompt, about."},
    "--sg-max-tokens": {"type": int, "default": 64, "help": "Limit of each answer."},
    "--sg-no-stream": {"action": "store_true", "help": "Ask for whole answers."},
    "--sg-seed": {"type": int, "help": "Seed of the prompts. Default: drawn anew, so that no cache knows them."},
    "--sg-requests": {"type": int, "default": None, "help": "Stop after so many requests in all."},
    "--sg-output": {"help": "Directory of the records. Default: runs/<time>-locust."},
    "--sg-ca-file": {"default": "", "help": "Certificates to trust instead of the system's (PEM)."},
    "--sg-client-cert": {"default": "", "help": "Certificate to show, and its key unless --sg-client-key (PEM)."},
    "--sg-client-key": {"default": "", "help": "Key of that certificate, without a passphrase (PEM)."},
    "--sg-insecure": {"action": "store_true", "help": "Leave TLS certificates unverified."},
    "--sg-header": {
        "action": "append",
        "default": [],
        "metavar": "NAME=VALUE",
        "include_in_web_ui": False,
        "help": f"Further header field. Secret ones: {HEADERS_VARIABLE}, a JSON object in the environment.",
    },
}


def add_arguments(parser: Any) -> None:
    """Add them to Locust's parser."""
    for flag, settings in _ARGUMENTS.items():
        parser.add_argument(flag, **settings)
    parser.set_defaults(**_defaults())


def plan_from(options: Namespace, host: str | None, environment: Mapping[str, str]) -> LoadPlan:
    """
    The plan that Locust's options, its host and the environment mean.

    Raises:
        ConfigError: host or model are missing, or a value makes no sense.
        DocumentError: document or profile cannot be used.
    """
    if not host:
        raise ConfigError("no target: name it by Locust's own --host, e.g. --host http://127.0.0.1:8000")
    if not options.sg_model:
        raise ConfigError("no model: name it by --sg-model")
    for name in ("sg_prompt_tokens", "sg_max_tokens", "sg_requests"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConfigError("has to be at least 1", where=f"--{name.replace('_', '-')}")
    secret_headers = _secret_headers(environment.get(HEADERS_VARIABLE, ""))
    contract = _contract(options.sg_spec, options.sg_profile or None)
    operation = contract.operation(_operation_name(options.sg_operation, contract))
    assert operation is not None
    target = Target(
        name=options.sg_target,
        base_url=host,
        contract=contract,
        model=options.sg_model,
        key=environment.get(KEY_VARIABLE) or None,
        headers={**_plain_headers(options.sg_header), **secret_headers},
        secret_headers=frozenset(secret_headers),
        paths={operation.name: options.sg_path} if options.sg_path else {},
        ca_file=options.sg_ca_file or None,
        insecure=options.sg_insecure,
        client_cert=options.sg_client_cert or None,
        client_key=options.sg_client_key or None,
    )
    target.url(operation)  # refuses a base that is no http(s) URL
    return LoadPlan(
        target,
        operation,
        users=int(options.num_users or 1),
        duration_s=int(options.run_time or 0),
        requests=options.sg_requests,
        prompt_tokens=options.sg_prompt_tokens,
        max_tokens=options.sg_max_tokens,
        stream=not options.sg_no_stream,
        seed=options.sg_seed,
    )


@functools.cache
def _contract(spec: str, profile: str | None) -> Contract:
    return load_contracts([spec], profile)[0]


def _operation_name(wanted: str, contract: Contract) -> str:
    names = [operation.name for operation in contract.operations]
    if wanted and wanted not in names:
        raise ConfigError(f"no operation is called {wanted}; there are: {', '.join(names)}", where="--sg-operation")
    return wanted or names[0]


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
