"""The target: one endpoint under test, and how a request to it is addressed and signed."""

import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import streamgauge
from streamgauge.contract.contract import Contract, Operation
from streamgauge.errors import ConfigError
from streamgauge.proxy import Proxy
from streamgauge.redaction import MINIMUM_SECRET_LENGTH, Redactor, is_secret_name
from streamgauge.signing import Signature, altered, sign
from streamgauge.wire.exchange import Credential

__all__ = ["Target", "join_url", "merged_headers"]

_SENDABLE = re.compile(r"[!-~]+")
"""What a URL is made of; anything else has to be percent-encoded first."""


@dataclass(frozen=True)
class Target:
    """
    One endpoint under test.

    Attributes:
        name: what findings call it.
        base_url: the prefix before an operation's path; empty for captures that do not tell it.
        contract: what it promises.
        model: id of the model to ask for; empty until the preflight has found the only one.
        key: the API key; None when the endpoint wants none. Never printed: it is kept out of `repr`.
        headers: further header fields to send.
        secret_headers: names of those whose values came from the environment: secrets, whatever they are called.
        paths: operation name → path that replaces the document's.
        ca_file: PEM file of certificates to trust instead of the system's.
        insecure: whether TLS certificates go unverified.
        client_cert: PEM file of the certificate to show, with its key unless `client_key` has that.
        client_key: PEM file of that key, without a passphrase.
        proxy: the proxy to go through; None for none.
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
    client_cert: str | None = None
    client_key: str | None = None
    proxy: Proxy | None = None

    def url(self, operation: Operation) -> str:
        """Where the operation's requests go; only their path where the base URL is not known, in captures."""
        if not self.base_url:
            return self.path(operation)
        return join_url(self.base_url, self.path(operation))

    def path(self, operation: Operation) -> str:
        """
        The operation's path: the user's, else one of the profile's, else the document's.

        Of the profile's paths it is the one whose start overlaps most with the base URL's end; the first one on a tie.
        """
        if operation.name in self.paths:
            return self.paths[operation.name]
        served = self.contract.profile.paths(operation.name) or (operation.path,)
        have = _segments(self.base_url.partition("://")[2])[1:]
        return max(served, key=lambda path: _overlap(have, _segments(path)))

    @property
    def models_urls(self) -> tuple[str, ...]:
        """Where the endpoint may list its models: beside its operations, else at `/v1/models` of the base URL."""
        operation = self.contract.operations[0]
        beside = self.url(operation).removesuffix("/completions").removesuffix("/chat")
        return tuple(dict.fromkeys((f"{beside}/models", join_url(self.base_url, "/v1/models"))))

    @property
    def redactor(self) -> Redactor:
        """
        Hides the key, what is sent as nearly the key, the user's own secret headers, and the proxy's password.

        Of headers the whole value and what stands behind its scheme.
        """
        sent = merged_headers(self.contract.profile.headers, self.headers)
        secrets = [value for name, value in sent.items() if self.is_secret_header(name)]
        further = [value.rpartition(" ")[2] for value in secrets] + (self.proxy.secrets if self.proxy else [])
        bare = [value for value in further if len(value) >= MINIMUM_SECRET_LENGTH]
        keys = [self.key, altered(self.key)] if self.key else []
        return Redactor([*keys, *secrets, *bare])

    def is_secret_header(self, name: str) -> bool:
        """Whether a header of this name carries a credential: by where its value came from, or by its name."""
        return name in self.secret_headers or is_secret_name(name)

    def signed(
        self, url: str, credential: Credential, changes: Iterable[tuple[str, str | None]] = ()
    ) -> tuple[str, list[tuple[str, str]]]:
        """
        URL and header fields of a JSON request, signed as `credential` says.

        Args:
            url: without the key.
            credential: the form of the key.
            changes: what stands in place of the fields of these names; None leaves one out.

        Returns:
            The URL, with the key where its form is a query, and the fields in their order; a name may come twice.
        """
        profile = self.contract.profile
        usual = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": f"streamgauge/{streamgauge.__version__}",
        }
        signature = sign(credential, profile.auth, self.key) if self.key else Signature()
        # Where the key belongs, nothing else is sent: a request without it is one.
        place = (profile.auth.header,) if self.key else ()
        given = merged_headers(usual, profile.headers, self.headers)
        fields = [*_without((*place, *(name for name, _ in signature.headers)), given.items()), *signature.headers]
        replaced = {name.lower(): value for name, value in changes}
        fields = [
            *_without(replaced, fields),
            *((name, value) for name, value in replaced.items() if value is not None),
        ]
        return (f"{url}{'&' if '?' in url else '?'}{signature.query}" if signature.query else url), fields

    def request_headers(self, credential: Credential) -> dict[str, str]:
        """The header fields of :meth:`signed` by name: for forms of the key that repeat none."""
        return dict(self.signed("", credential)[1])

    @property
    def credential(self) -> Credential:
        """The credential that a right request carries."""
        return Credential.VALID if self.key else Credential.UNCONFIGURED

    def tls(self) -> ssl.SSLContext:
        """
        The TLS settings.

        Raises:
            ConfigError: the CA file, or the client certificate or its key, cannot be used.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as problem:
            raise ConfigError(f"cannot be used as CA file: {problem}", where=self.ca_file or "") from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert:
            _show_certificate(context, self.client_cert, self.client_key)
        elif self.client_key:
            raise ConfigError(
                "a client key without its certificate", where=self.client_key, hint="Give --client-cert, too."
            )
        return context


def _show_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    for path in (certificate, *([key] if key else [])):  # load_cert_chain does not say which file it misses
        try:
            Path(path).open("rb").close()
        except OSError as problem:
            raise ConfigError(f"cannot be read: {problem.strerror}", where=path) from None

    def passphrase() -> str:
        raise ConfigError(
            "the client key has a passphrase, and nobody is asked for it",
            where=key or certificate,
            hint="Give a key without one, for instance by: openssl pkey -in KEY -out PLAIN-KEY",
        )

    try:
        context.load_cert_chain(certificate, key, passphrase)
    except ssl.SSLError as problem:
        mismatched = "KEY_VALUES_MISMATCH" in str(problem)
        raise ConfigError(
            "the key does not belong to the certificate"
            if mismatched
            else f"cannot be used as client certificate: {problem}",
            where=f"{certificate} and {key}" if key else certificate,
            hint="A PEM file holds the certificate, and its key unless --client-key names another file.",
        ) from None


def _without(names: Iterable[str], fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The fields that have other names."""
    left_out = {name.lower() for name in names}
    return [(name, value) for name, value in fields if name.lower() not in left_out]


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
    have, want = _segments(parts.path), _segments(path)
    closing = "/" if want and path.endswith("/") else ""
    return f"{parts.scheme}://{parts.netloc}/" + "/".join(have + want[_overlap(have, want) :]) + closing


def _segments(path: str) -> list[str]:
    return [segment for segment in path.split("/") if segment]


def _overlap(have: list[str], want: list[str]) -> int:
    """How many segments the end of the one and the beginning of the other share at most."""
    return next((n for n in range(min(len(have), len(want)), 0, -1) if have[-n:] == want[:n]), 0)
