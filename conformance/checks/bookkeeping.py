"""`bookkeeping.*`: what a request carries for accounting, tracing and scheduling."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.check import Case, Departure
from streamgauge.conformance.law import given, ignored, law
from streamgauge.conformance.predicates import payloads
from streamgauge.contract.contract import JSON, Contract, Operation
from streamgauge.outcomes import Level

__all__: list[str] = []


def _told(case: Case, member: str) -> list[Any]:
    """What the answer says under this name: once, or in each chunk."""
    if case.exchange.wants_stream:
        return [chunk.object.get(member) for chunk in payloads(case)]
    return [case.exchange.json.value.get(member)]


def _promises_id(operation: Operation, contract: Contract) -> bool:
    """Whether the document says so: elsewhere it may name the request in the vendor's own records only."""
    return "response" in operation.schemas.resolved(operation.properties["request_id"]).get("description", "")


@law(
    "bookkeeping.request-id",
    Level.MUST,
    "The answer's id holds the request's own",
    properties="request_id",
    requirement="This id is used throughout the inference process and returned in the response.",
    source="/requestBody/content/application~1json/schema/properties/request_id/description",
    asks=lambda asked: isinstance(asked.get("request_id"), str) and asked["request_id"] != "",
    concerns=_promises_id,
)
def request_id(case: Case) -> Iterator[Departure]:
    """Servers put their own prefix before it."""
    wanted = given(case)["request_id"]
    for id_ in _told(case, "id"):
        if not (isinstance(id_, str) and wanted in id_):
            yield ignored(f"an id that holds {wanted}", repr(id_))
            return


def _tells_tier(operation: Operation, contract: Contract) -> bool:
    return "service_tier" in operation.response_properties(200, JSON)


@law(
    "bookkeeping.service-tier",
    Level.SHOULD,
    "An answer to a request with a scheduling class names the class that it was made in",
    properties="service_tier",
    requirement="Scheduling class that the answer was made in.",
    source="/responses/200/content/application~1json/schema/properties/service_tier/description",
    asks=lambda asked: bool(asked.get("service_tier")),
    concerns=_tells_tier,
)
def service_tier(case: Case) -> Iterator[Departure]:
    """It may be another than the one that was asked for."""
    if not any(isinstance(tier, str) and tier for tier in _told(case, "service_tier")):
        yield ignored("service_tier: the class that the answer was made in", "no class is named")
