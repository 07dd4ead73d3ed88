"""The target: one endpoint under test, and how a request to it is addressed and signed."""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import streamgauge
from streamgauge.contract.contract import Contract, Operation
from streamgauge.errors import ConfigError
from streamgauge.redaction import MINIMUM_SECRET_LENGTH, Redactor
from streamgauge.wire.exchange import Credential

__all__ = ["Target", "join_url", "merged_headers"]

_SENDABLE = re.compile(r"[!-~]+")
"""What a URL is made of; anything else has to be percent-encoded first."""

_SECRET_PARTS = ("auth", "key", "token", "secret", "cookie")
"""A header whose name holds one of these carries a credential."""

WRONG_KEY = "streamgauge-wrong-key-0000"
"""What is sent as the made-up key."""


@dataclass(frozen=True)
class Target:
    """
    One endpoint under test.

    Attributes:
        name: what findings call it.
        base_url: the prefix before an operation's path.
        contract: what it promises.
        model: id of the model to ask for; empty until the preflight has found the only one.
        key: the API key; None when the endpoint wants none. Never printed: it is kept out of `repr`.
        headers: further header fields to send.
        secret_headers: names of those whose values came from the environment: secrets, whatever they are called.
        paths: operation name → path that replaces the document's.
        ca_file: PEM file of certificates to trust instead of the system's.
        insecure: whether TLS certificates go unverified.
    """

    name: str
    base_url: str
    contract: Contract
    model: str = ""
    key: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    secret_headers: frozenset[str] = frozenset()
    paths: dict[str, str] = field(default_factory=dict)
    ca_file: str | None = None
    insecure: bool = False

    def url(self, operation: Operation) -> str:
        """Where the operation's requests go."""
        return join_url(self.base_url, self.paths.get(operation.name, operation.path))

    @property
    def models_urls(self) -> tuple[str, ...]:
        """Where the endpoint may list its models: beside its operations, else at `/v1/models` of the base URL."""
        operation = self.contract.operations[0]
        beside = self.url(operation).removesuffix("/completions").removesuffix("/chat")
        return tuple(dict.fromkeys((f"{beside}/models", join_url(self.base_url, "/v1/models"))))

    @property
    def redactor(self) -> Redactor:
        """Hides the key and the values of the user's own secret headers, without their scheme too."""
        secrets = [value for name, value in self.headers.items() if self.is_secret_header(name)]
        bare = [word for value in secrets if len(word := value.rpartition(" ")[2]) >= MINIMUM_SECRET_LENGTH]
        return Redactor([*([self.key] if self.key else []), *secrets, *bare])

    def is_secret_header(self, name: str) -> bool:
        """Whether a header of this name carries a credential: by where its value came from, or by its name."""
        return name in self.secret_headers or any(part in name.lower() for part in _SECRET_PARTS)

    def request_headers(self, credential: Credential) -> dict[str, str]:
        """The header fields of a JSON request, signed as `credential` says."""
        profile = self.contract.profile
        usual = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"streamgauge/{streamgauge.__version__}",
        }
        key = {Credential.VALID: self.key, Credential.WRONG: WRONG_KEY}.get(credential)
        signed = {} if key is None else {profile.auth.header: profile.auth.value(key)}
        return merged_headers(usual, profile.headers, self.headers, signed)

    @property
    def credential(self) -> Credential:
        """The credential that a right request carries."""
        return Credential.VALID if self.key else Credential.UNCONFIGURED

    def tls(self) -> ssl.SSLContext:
        """
        The TLS settings.

        Raises:
            ConfigError: the CA file cannot be used.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as problem:
            raise ConfigError(f"cannot be used as CA file: {problem}", where=self.ca_file or "") from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def merged_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Header fields in layers, a later one replacing what an earlier one says, however the names are spelled."""
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        merged |= {name.lower(): (name, value) for name, value in layer.items()}
    return dict(merged.values())


def join_url(base: str, path: str) -> str:
    """
    A base URL and an operation's path as one URL.

    The longest overlap, in whole segments, of the base's end and the path's start is removed once, so that a base
    which already ends in `/v1` is understood.

    Raises:
        ConfigError: the base is no http or https URL.
    """
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and bool(_SENDABLE.fullmatch(base)) and bool((parts.hostname or "").encode("idna"))
    except ValueError:  # a broken IPv6 address, a port that is no number, a label that is empty or too long
        usable = False
    if not usable:
        raise ConfigError(
            "not an http or https URL",
            where=base.rpartition("@")[2],  # a password may stand before it
            hint="For instance: --base-url http://127.0.0.1:8000",
        )
    if not path.isprintable():
        raise ConfigError("a path holds no control characters", where=repr(path))
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            "a base URL takes no user, query or fragment",
            where=f"{parts.scheme}://{parts.hostname}",
            hint="Give a key by the environment variable STREAMGAUGE_API_KEY or by --api-key-file.",
        )
    have = [segment for segment in parts.path.split("/") if segment]
    want = [segment for segment in path.split("/") if segment]
    overlap = next((n for n in range(min(len(have), len(want)), 0, -1) if have[-n:] == want[:n]), 0)
    closing = "/" if want and path.endswith("/") else ""
    return f"{parts.scheme}://{parts.netloc}/" + "/".join(have + want[overlap:]) + closing
