"""What a profile allows beyond its documents, in words: whoever reads a verdict has to see it."""

from collections.abc import Iterator

from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.profile import ANY, UNSUPPORTED
from streamgauge.contract.security import security_of

__all__ = ["key_needed", "widened"]

_ANY = {
    "error_envelope": "an error in any form where the document gives none",
    "error_code": "an error code of any type where the document leaves it open",
    "reasoning_field": "reasoning under either name",
    "usage_chunk": "usage anywhere in a stream",
}


def key_needed(operation: Operation, contract: Contract) -> bool:
    """
    Whether a request without the key has to be refused: because the profile says so or because the document does.

    A document says so by listing 401 or a security scheme; no profile can take that back.
    """
    schemes = security_of(operation)
    # An empty requirement among them means that the key may be left out (OpenAPI 3.1, 4.8.30).
    demanded = bool(schemes) and {} not in schemes
    return contract.profile.auth.required or 401 in operation.statuses or demanded


def widened(contract: Contract) -> Iterator[str]:
    """Everything that the profile lets pass and the documents, or the vendor's first choice, do not name."""
    profile, dialect = contract.profile, contract.profile.dialect
    listed = [set(operation.statuses) for operation in contract.operations]
    beyond = [status for status in profile.allowed_statuses if any(status not in own for own in listed)]
    if beyond:
        yield f"statuses beyond the document: {', '.join(map(str, beyond))}"
    for what, accepted in (
        ("a body that is no JSON", dialect.malformed_status),
        ("a model that does not exist", dialect.unknown_model_status),
    ):
        if len(accepted) > 1:
            yield f"{', '.join(map(str, accepted[1:]))} for {what}, beside {accepted[0]}"
    for switch, meaning in _ANY.items():
        if getattr(dialect, switch) == ANY:
            yield meaning
    for name, said in profile.features.items():
        if said == UNSUPPORTED:
            yield f"a refusal of {name}"
