"""Rules about keys, headers and hosts."""

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from streamgauge.lint.grammar import Node
from streamgauge.lint.rule import LintLevel, Place, rule
from streamgauge.lint.subject import Subject

__all__: list[str] = []


def _schemes(subject: Subject) -> dict[str, Node]:
    paths = subject.below_components("securitySchemes")
    return {str(path[-1]): subject.followed(path, "security scheme") for path in paths}


@rule(
    "key-without-bearer",
    LintLevel.WARNING,
    "a key in the Authorization header that is no Bearer token",
    why="Every OpenAI SDK sends `Authorization: Bearer KEY`, and HTTP wants a scheme's name before the credentials. By this "
    "document a drop-in client is refused, unless the server is more lenient than its document.",
    mend="`type: http`, `scheme: bearer`; or say that both forms are taken.",
    source="RFC 9110, section 11.6.2; RFC 6750, section 2.1; fault catalogue Q14",
)
def _without_bearer(subject: Subject) -> Iterator[Place]:
    for name, scheme in _schemes(subject).items():
        value = scheme.value
        header = value.get("type") == "apiKey" and value.get("in") == "header"
        if header and str(value.get("name", "")).lower() == "authorization":
            yield Place(scheme.path, f"`{name}` puts the bare key into Authorization")


@rule(
    "security-unknown",
    LintLevel.ERROR,
    "a security requirement names a scheme that does not exist",
    why="Nobody can tell how to send the credentials.",
    mend="Describe the scheme under `components/securitySchemes`, or mend the name.",
    source="OAS 3.1, section 4.8.30 (each name MUST correspond to a security scheme)",
)
def _unknown(subject: Subject) -> Iterator[Place]:
    known = _schemes(subject).keys()
    for node in subject.nodes("document", "operation"):
        listed = node.value.get("security")
        for index, requirement in enumerate(listed if isinstance(listed, list) else ()):
            for name in requirement if isinstance(requirement, dict) else ():
                if name not in known:
                    yield Place((*node.path, "security", index, name), f"no security scheme is called `{name}`")


_KEY = re.compile(r"(^|[-_])(api[-_]?key|token|authorization|secret)$", re.IGNORECASE)


@rule(
    "key-as-parameter",
    LintLevel.WARNING,
    "a key that is described as an ordinary parameter",
    why="Tools make up values for parameters and log them; they keep credentials only where a security scheme says so. An "
    "optional parameter also says that a request without a key is fine.",
    mend="Describe it under `components/securitySchemes` and require it by `security`.",
    source="OAS 3.1, section 4.8.27",
)
def _as_parameter(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("parameter"):
        name = str(node.value.get("name", ""))
        place = node.value.get("in")
        likely = place == "header" or (place in ("query", "cookie") and "key" in name.lower())
        if likely and name.lower() != "authorization" and _KEY.search(name):
            yield Place(node.path, f"`{name}` looks like a key, but is an ordinary parameter")


@rule(
    "parameter-ignored",
    LintLevel.WARNING,
    "a header parameter that OpenAPI ignores",
    why="`Accept`, `Content-Type` and `Authorization` are described by media types and security schemes; as parameters they "
    "SHALL be ignored, so what is said here has no effect.",
    mend="Use the media types of content, or a security scheme.",
    source="OAS 3.1, section 4.8.12.2 (name)",
)
def _ignored(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("parameter"):
        name = str(node.value.get("name", ""))
        if node.value.get("in") == "header" and name.lower() in ("accept", "content-type", "authorization"):
            yield Place(node.path, f"the header parameter `{name}` is ignored")


@rule(
    "no-security",
    LintLevel.INFO,
    "an operation that needs no key",
    why="By the document anybody may call it. Where that is not meant, tests of missing and wrong keys have nothing to go by.",
    mend="Name the scheme under `security`; `security: []` where the operation is really open.",
    source="OAS 3.1, section 4.8.30; OWASP API Security Top 10 2023, API2",
)
def _no_security(subject: Subject) -> Iterator[Place]:
    if "security" in subject.data:
        return
    for endpoint in subject.endpoints:
        if "security" not in endpoint.node.value:
            yield Place(endpoint.node.path, "nothing is said about a key")


@rule(
    "security-mismatch",
    LintLevel.WARNING,
    "401 is documented, but no key is asked for",
    why="The answer cannot happen by the rest of the document: either the operation needs a key, or 401 is left over.",
    mend="Add the `security` requirement, or strike the 401.",
    source="RFC 9110, section 15.5.2; OAS 3.1, section 4.8.30",
)
def _mismatch(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        required = endpoint.node.value.get("security", subject.data.get("security"))
        for status, _ in subject.answers(endpoint) if not required else ():
            if status == "401":
                yield Place((*endpoint.node.path, "responses", status), "401 without any `security`")


@rule(
    "server-real-host",
    LintLevel.INFO,
    "`servers` names a real host",
    why="Tools send their requests there unless they are told otherwise: a test run from a checkout reaches production. "
    "streamgauge never does: it asks for the base URL.",
    mend="Nothing, if the document is for that host's clients; give test tools a base URL.",
    source="OAS 3.1, section 4.8.5",
)
def _real_host(subject: Subject) -> Iterator[Place]:
    for node in subject.nodes("server"):
        try:
            host = urlsplit(str(node.value.get("url", ""))).hostname or ""
        except ValueError:
            continue
        if host and "{" not in host and not _made_up(host):
            yield Place((*node.path, "url"), f"requests go to {host} by default")


def _made_up(host: str) -> bool:
    """Whether a host is this machine, or a name that is reserved for examples (RFC 2606)."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        ends = ("localhost", ".test", ".example", ".invalid", ".local", "example.com", "example.org", "example.net")
        return host.endswith(ends) or "." not in host
