"""The HTTP proxy that the environment names, for those who ask to go through it."""

import base64
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from streamgauge.errors import ConfigError

__all__ = ["Proxy", "proxy_from_environment"]


@dataclass(frozen=True)
class Proxy:
    """
    An HTTP proxy. Plain requests are sent to it whole; https goes through a tunnel that CONNECT opens (RFC 9110, 9.3.6).

    Attributes:
        url: where it is, without credentials.
        credentials: `user:password` for it; empty for none. Never printed: it is kept out of `repr`.
    """

    url: str
    credentials: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What it wants to see (RFC 7617)."""
        return {"Proxy-Authorization": f"Basic {self._basic}"} if self.credentials else {}

    @property
    def secrets(self) -> list[str]:
        """The forms of the credentials that must not be stored."""
        if not self.credentials:
            return []
        return [self.credentials, self.credentials.partition(":")[2], self._basic]

    @property
    def _basic(self) -> str:
        return base64.b64encode(self.credentials.encode()).decode("ascii")


def proxy_from_environment(url: str) -> Proxy | None:
    """
    The proxy for requests to this URL, by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (or in lower case); None for none.

    Raises:
        ConfigError: it is a SOCKS or another proxy that we cannot use, or its address is none.
    """
    target = urlsplit(url)
    proxies = getproxies_environment()
    named = next((name for name in (target.scheme, "all") if proxies.get(name)), None)
    if named is None or proxy_bypass(target.netloc):
        return None
    variable = f"{named.upper()}_PROXY"
    address = proxies[named] if "://" in proxies[named] else f"http://{proxies[named]}"
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme and scheme != "http":
        raise ConfigError(
            f"a proxy of the kind {scheme} cannot be used, only http://",
            where=variable,
            hint="Name an HTTP proxy there, or leave --proxy-from-env out.",
        )
    if not host:
        raise ConfigError("no address of a proxy", where=variable, hint="For instance: http://127.0.0.1:3128")
    credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if "@" in parts.netloc else ""
    shown = f"[{host}]" if ":" in host else host
    return Proxy(f"http://{shown}:{port or 80}", credentials)
