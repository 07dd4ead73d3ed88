"""One request of a load run, ready to be sent."""

from dataclasses import dataclass

from streamgauge.contract.contract import Operation

__all__ = ["LoadRequest"]


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """
    One request, ready to be sent.

    Attributes:
        id: unique in the run.
        target: name of the target, for the record.
        operation: whose contract the answer is judged by.
        url: whole URL.
        body: the JSON text.
        stream: whether it asks for a stream.
        max_tokens: how many tokens it asks for.
    """

    id: str
    target: str
    operation: Operation
    url: str
    body: bytes
    stream: bool
    max_tokens: int
