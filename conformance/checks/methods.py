"""`request.*`: methods and media types."""

from collections.abc import Iterator

from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.posting import admitted, media_type_sent, shown
from streamgauge.conformance.predicates import answered, sends_key
from streamgauge.contract.media import is_json
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence


@check(
    "request.method",
    Level.SHOULD,
    "Another method on the path gets 405",
    requirement=(
        "The 405 (Method Not Allowed) status code indicates that the method received in the request-line is known by the "
        "origin server but not supported by the target resource."
    ),
    source="RFC 9110, section 15.5.6",
    applies=lambda case: (
        answered(case)
        and sends_key(case)
        and case.exchange.request.method not in {*case.operation.methods, case.operation.method, "OPTIONS"}
        and case.exchange.status < 500
    ),
    needs=(Evidence.REQUEST,),
)
def method(case: Case) -> Iterator[Departure]:
    """404 hides that the path is right."""
    if case.exchange.status != 405:
        yield Departure("405", shown(case))


@check(
    "request.allow",
    Level.MUST,
    "A 405 names the methods that are allowed",
    requirement="The origin server MUST generate an Allow header field in a 405 response.",
    source="RFC 9110, section 15.5.6",
    applies=lambda case: case.exchange.status == 405,
    absent="no answer was a 405",
)
def allow(case: Case) -> Iterator[Departure]:
    """An empty field is one, too: then no method is."""
    if case.exchange.response.header("allow") is None:
        yield Departure("an Allow field", "none")


def _lists_methods(case: Case) -> bool:
    """A 405 to another method than the operation's, or an answer to OPTIONS, with an Allow field."""
    asked, exchange = case.exchange.request.method, case.exchange
    tells = exchange.status == 405 or (asked == "OPTIONS" and 200 <= exchange.status < 300)
    return tells and asked != case.operation.method and exchange.response.header("allow") is not None


@check(
    "request.allow-methods",
    Level.MUST,
    "Allow lists the operation's method, and not the one that was just refused",
    requirement=(
        "The origin server MUST generate an Allow header field in a 405 response containing a list of the target resource's "
        "currently supported methods."
    ),
    source="RFC 9110, sections 15.5.6 and 10.2.1",
    applies=_lists_methods,
    absent="no answer told the methods",
    needs=(Evidence.REQUEST,),
)
def allow_methods(case: Case) -> Iterator[Departure]:
    """Clients and gateways read it to find out how to ask. What it lists beyond the document is the server's own affair."""
    exchange = case.exchange
    told = exchange.response.header("allow") or ""
    listed = {method.strip().upper() for method in told.split(",")}
    if case.operation.method not in listed:
        yield Departure(f"Allow with {case.operation.method}", f"Allow: {told}")
    elif exchange.status == 405 and exchange.request.method in listed:
        yield Departure(f"Allow without {exchange.request.method}", f"Allow: {told}")


def _called_otherwise(case: Case) -> bool:
    sent = media_type_sent(case)
    return admitted(case) and sent is not None and not is_json(sent) and case.exchange.status < 500


@check(
    "request.media-type",
    Level.SHOULD,
    "A body that is not called JSON is refused for that, or read all the same",
    requirement=(
        "The 415 (Unsupported Media Type) status code indicates that the origin server is refusing to service the request "
        "because the content is in a format not supported by this method on the target resource."
    ),
    source=f"RFC 9110, section 15.5.16; {CLIENTS}",
    applies=_called_otherwise,
    absent="no request called its body anything but JSON",
    needs=(Evidence.REQUEST,),
)
def media_type(case: Case) -> Iterator[Departure]:
    """What `curl -d` sends by itself: any other status makes its user look for the mistake in another place."""
    dialect = case.contract.profile.dialect
    read = {*dialect.malformed_status, *dialect.unknown_model_status, 400, 422}
    if not 200 <= case.exchange.status < 300 and case.exchange.status not in {415, *read}:
        yield Departure("415, or what the same body gets as JSON", shown(case))
