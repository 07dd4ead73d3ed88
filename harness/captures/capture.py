"""A capture: one answer as a file holds it, with as much of its request as is known."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from streamgauge.captures.secrets import redact_query, redact_text, redactor_of
from streamgauge.wire.exchange import Credential, Ending, Evidence, Exchange, SentRequest
from streamgauge.wire.http import Read

__all__ = ["Capture", "NotJudged"]


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A capture that is left out, and why; `target` is empty where it concerns none."""

    capture: str
    reason: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Capture:
    """
    One answer, and what is known about its request.

    Attributes:
        name: of the file, with the number of the entry where the file holds several.
        wire: head and body; empty when nothing came back.
        holds: the evidence that the file gives.
        method: empty when unknown.
        url: URL or path, query included; empty when unknown.
        headers, body: of the request; empty when unknown.
        started: ISO 8601, UTC; empty when unknown.
        secrets: what has to be kept out of everything that is stored; the key first, where one is known.
    """

    name: str
    wire: bytes
    holds: frozenset[Evidence]
    method: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    credential: Credential = Credential.UNKNOWN
    ending: Ending = Ending.COMPLETE
    detail: str = ""
    started: str = ""
    secrets: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The URL's path; empty when unknown."""
        return urlsplit(self.url).path

    @property
    def origin(self) -> str:
        """Scheme and authority of the URL; empty when unknown."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""

    def exchange(
        self, id: str, *, target: str, operation: str, method: str, more_secrets: Iterable[str] = ()
    ) -> Exchange:
        """
        The capture as an exchange, its secrets blotted out.

        Args:
            id: of the exchange.
            target: whose answer it is taken for.
            operation: the name of what it answers.
            method: the operation's, for a capture that does not tell its own.
            more_secrets: of other captures.
        """
        keep_out = redactor_of((*self.secrets, *more_secrets))
        wire, redacted = keep_out.wire(self.wire)
        holds = self.holds
        if (
            redacted
            and self.credential is Credential.VALID
            and redacted != redactor_of(self.secrets[:1]).wire(self.wire)[1]
        ):
            holds -= {Evidence.CREDENTIAL}  # something blotted out here is not the key: nobody can tell what was echoed
        return Exchange(
            id=id,
            target=target,
            operation=operation,
            probe=keep_out.text(redact_text(self.name)),
            request=SentRequest(
                method=self.method or method,
                url=keep_out.text(redact_query(self.url)),
                headers=tuple((name, keep_out.text(value)) for name, value in self.headers),
                body=keep_out.wire(self.body)[0],
                credential=self.credential,
            ),
            started=self.started,
            wire=wire,
            reads=(Read(0.0, len(wire)),) if wire else (),
            ending=self.ending,
            detail=keep_out.text(self.detail),
            redacted=tuple(redacted),
            holds=holds,
        )
