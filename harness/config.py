"""Where targets come from: flags first, then the environment, then streamgauge.yaml."""

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from streamgauge import catalog
from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.contract.source import Reach
from streamgauge.errors import ConfigError
from streamgauge.proxy import proxy_from_environment
from streamgauge.target import Target, join_url
from streamgauge.yamlfile import Located, load_yaml

__all__ = ["CONFIG_FILE", "KEY_VARIABLE", "TargetFlags", "resolve_targets"]

CONFIG_FILE = "streamgauge.yaml"
KEY_VARIABLE = "STREAMGAUGE_API_KEY"

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile("[\0-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclasses.dataclass(frozen=True, slots=True)
class TargetFlags:
    """
    What the user said about the target, on the command line or in the environment.

    Attributes:
        target: name in streamgauge.yaml.
        spec: bundled names, paths or URLs of documents; `-` for standard input.
        remote_refs: whether a document may refer to files beside it and to URLs on its own host.
        path: `PATH`, or `OPERATION=PATH` (repeatable).
        header: `NAME=VALUE` or `NAME=${VARIABLE}`.
        api_key_file: file that holds the key and nothing else.
        client_cert, client_key: PEM files; the key may be in the certificate's file.
        proxy_from_env: whether HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY are obeyed.
        config: the configuration file; `streamgauge.yaml` in the current folder by default.
    """

    target: str | None = None
    base_url: str | None = None
    spec: tuple[str, ...] = ()
    profile: str | None = None
    model: str | None = None
    path: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    api_key_file: Path | None = None
    ca_file: str | None = None
    insecure: bool = False
    client_cert: str | None = None
    client_key: str | None = None
    proxy_from_env: bool = False
    remote_refs: bool = False
    config: Path | None = None

    def with_environment(self, environment: Mapping[str, str]) -> "TargetFlags":
        """The flags, with what they leave out taken from STREAMGAUGE_TARGET, _BASE_URL, _SPEC, _PROFILE and _MODEL."""
        filled: dict[str, Any] = {
            name: environment[variable]
            for name in ("target", "base_url", "profile", "model")
            if getattr(self, name) is None and environment.get(variable := f"STREAMGAUGE_{name.upper()}")
        }
        if not self.spec and environment.get("STREAMGAUGE_SPEC"):
            filled["spec"] = tuple(part.strip() for part in environment["STREAMGAUGE_SPEC"].split(","))
        if self.target is not None:
            filled.pop("base_url", None)
        elif self.base_url is not None:
            filled.pop("target", None)
        return dataclasses.replace(self, **filled)

    @property
    def about_sending(self) -> list[str]:
        """The options given that make sense only where something is sent."""
        offline = ("spec", "profile", "model", "path")
        return [
            f"--{each.name.replace('_', '-')}"
            for each in dataclasses.fields(self)
            if each.name not in offline and getattr(self, each.name) != each.default
        ]

    @property
    def names_a_target(self) -> bool:
        """Whether the user said at all whom to ask."""
        return self.target is not None or self.base_url is not None


def resolve_targets(flags: TargetFlags, environment: Mapping[str, str] | None = None) -> list[Target]:
    """
    The targets that the user means: one for each profile that the documents go with.

    Raises:
        ConfigError: the flags, the environment or the file are wrong.
        DocumentError: a document or profile cannot be used.
    """
    environment = os.environ if environment is None else environment
    flags = flags.with_environment(environment)
    key = _key_from(flags, environment)
    if flags.target is not None:
        settings = _settings(flags, environment, key)
    elif flags.base_url is not None:
        settings = {"base_url": flags.base_url, "spec": []}
    else:
        raise ConfigError(
            "no target named",
            hint="Name one: --base-url URL --spec NAME, or --target NAME from streamgauge.yaml.",
        )
    specs = list(flags.spec) or settings["spec"]
    if not specs:
        raise ConfigError(
            "no document named for the target",
            hint=(
                f"Name what it has to keep: --spec with one of {', '.join(catalog.DOCUMENTS)}, "
                "or the path or URL of an OpenAPI file."
            ),
        )
    reach = Reach(
        remote_refs=flags.remote_refs or settings.get("remote_refs", False),
        ca_file=flags.ca_file or settings.get("ca_file"),
        insecure=flags.insecure or settings.get("insecure", False),
    )
    contracts = load_contracts(specs, flags.profile or settings.get("profile"), reach)
    operations = [operation.name for contract in contracts for operation in contract.operations]
    paths = {**settings.get("paths", {}), **_paths(flags.path, operations)}
    for name in paths:
        if name not in operations:
            raise ConfigError(f"no operation is called {name}", hint=f"There are: {', '.join(operations)}.")
    base_url = flags.base_url or settings["base_url"]
    join_url(base_url, "/")
    written = {**settings.get("headers", {}), **_header_flags(flags.header)}
    certificate = flags.client_cert or settings.get("client_cert")
    through_proxy = flags.proxy_from_env or settings.get("proxy_from_env", False)
    return [
        Target(
            name=_name(flags, contract, alone=len(contracts) == 1),
            base_url=base_url,
            contract=contract,
            model=flags.model or settings.get("model", ""),
            key=key if key is not None else settings.get("api_key"),
            headers={name: _header(name, value, environment, where) for name, (value, where) in written.items()},
            secret_headers=frozenset(name for name, (value, _) in written.items() if _REFERENCE.search(value)),
            paths={name: path for name, path in paths.items() if contract.operation(name)},
            ca_file=reach.ca_file,
            insecure=reach.insecure,
            client_cert=certificate,
            client_key=flags.client_key or (None if flags.client_cert else settings.get("client_key")),
            proxy=proxy_from_environment(base_url) if through_proxy else None,
        )
        for contract in contracts
    ]


def _name(flags: TargetFlags, contract: Contract, *, alone: bool) -> str:
    if flags.target is None:
        return contract.profile.name
    return flags.target if alone else f"{flags.target}-{contract.profile.name}"


def _key_from(flags: TargetFlags, environment: Mapping[str, str]) -> str | None:
    if flags.api_key_file is None:
        return _sendable(environment.get(KEY_VARIABLE, "").strip(), "the key", KEY_VARIABLE) or None
    try:
        key = flags.api_key_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"cannot be read as key file: {problem}", where=str(flags.api_key_file)) from None
    if not key or "\n" in key:
        raise ConfigError("a key file holds one line: the key", where=str(flags.api_key_file))
    return _sendable(key, "the key", str(flags.api_key_file))


def _sendable(value: str, what: str, where: str) -> str:
    """The value, if a header field can carry it (RFC 9110, 5.5)."""
    if _CONTROL.search(value):
        raise ConfigError(f"{what} holds a control character, which no header can carry", where=where)
    return value


def _settings(flags: TargetFlags, environment: Mapping[str, str], key: str | None) -> dict[str, Any]:
    path = flags.config or Path(CONFIG_FILE)
    if not path.exists():
        raise ConfigError(
            f"there is no {path} to look the target {flags.target} up in",
            hint="Write one (see examples/streamgauge.yaml), or give --base-url and --spec.",
        )
    located = load_yaml(path, error=ConfigError)
    for error in Draft202012Validator(catalog.schema("config")).iter_errors(located.data):
        raise ConfigError(_in_words(error), where=located.where(error.absolute_path))
    targets: dict[str, Any] = located.data["targets"]
    if flags.target not in targets:
        raise ConfigError(
            f"no target is called {flags.target}",
            where=located.where(["targets"]),
            hint=f"There are: {', '.join(targets)}.",
        )
    settings = dict(targets[flags.target])
    for name in settings.keys() - {"api_key", "headers"}:
        _refuse_references(settings[name], located, ["targets", flags.target, name])
    if "api_key" in settings and key is None:
        where = located.where(["targets", flags.target, "api_key"])
        settings["api_key"] = _sendable(_expanded(settings["api_key"], environment, where).strip(), "the key", where)
    settings["headers"] = {
        name: (value, located.where(["targets", flags.target, "headers", name]))
        for name, value in settings.get("headers", {}).items()
    }
    if isinstance(settings["spec"], str):
        settings["spec"] = [settings["spec"]]
    return settings


def _in_words(error: ValidationError) -> str:
    # The schema's own message would print what stands there: it may be a key that somebody wrote in.
    if error.absolute_path and error.absolute_path[-1] == "api_key":
        return "api_key has to be ${VARIABLE}, the name of an environment variable; a key in a file is a key given away"
    name = error.absolute_path[-1] if error.absolute_path else "the file"
    wanted: Any = error.validator_value
    match error.validator:
        case "type":
            return f"{name} has to be of type {wanted}"
        case "anyOf":
            return f"{name} has to be one of: {', '.join(str(branch.get('type')) for branch in wanted)}"
        case "pattern" if error.absolute_path:
            return f"{name} has to match {wanted}"
    return error.message


def _refuse_references(value: Any, located: Located, path: list[str | int]) -> None:
    if isinstance(value, str) and _REFERENCE.search(value):
        raise ConfigError(
            "${...} is for secrets only: api_key and headers",
            where=located.where(path),
            hint="Write the value itself, or use a flag.",
        )
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_references(item, located, [*path, step])


def _expanded(value: str, environment: Mapping[str, str], where: str) -> str:
    def replace(match: re.Match[str]) -> str:
        found = environment.get(match.group(1))
        if not found:
            raise ConfigError(f"the environment variable {match.group(1)} is not set", where=where)
        return found

    return _REFERENCE.sub(replace, value)


def _paths(given: tuple[str, ...], operations: list[str]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for item in given:
        name, equals, path = item.partition("=")
        if not equals:
            if len(operations) != 1:
                raise ConfigError(
                    f"--path {item} fits {len(operations)} operations",
                    hint=f"Say which: --path OPERATION=PATH, with one of {', '.join(operations)}.",
                )
            name, path = operations[0], item
        if not path.startswith("/"):
            raise ConfigError(f"a path begins with /: {path or item}", where="--path")
        paths[name] = path
    return paths


def _header_flags(given: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Header fields as written, by name, with where that stands."""
    headers = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals:
            raise ConfigError("a header is given as NAME=VALUE", where="--header")
        headers[name] = (value, "--header")
    return headers


def _header(name: str, value: str, environment: Mapping[str, str], where: str) -> str:
    """The value to send, its references to the environment followed."""
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"no name of a header: {name}", where=where)
    return _sendable(_expanded(value, environment, where).strip(), f"the header {name}", where)
