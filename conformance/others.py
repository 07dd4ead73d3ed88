"""The exchanges that a case stands among."""

from collections.abc import Hashable
from functools import cached_property
from typing import Any

from streamgauge.wire.exchange import Credential, Exchange

__all__ = ["Asked", "Others", "asked"]

Asked = tuple[str, Credential]
"""What was asked, in whichever form, and with which form of the key."""


def asked(exchange: Exchange) -> Asked:
    """The key of the exchange's group."""
    return exchange.question, exchange.request.credential


class Others(tuple[Exchange, ...]):
    """
    All exchanges of one operation of a target, in their order; its cases share them.

    Attributes:
        beside: the target's exchanges that belong to no operation: model list, metrics.
    """

    beside: tuple[Exchange, ...] = ()

    @cached_property
    def groups(self) -> dict[Asked, tuple[Exchange, ...]]:
        """Those that asked the same: both forms, and repetitions. Exchanges whose request is not held are in no group."""
        found: dict[Asked, list[Exchange]] = {}
        for exchange in self:
            if exchange.question:
                found.setdefault(asked(exchange), []).append(exchange)
        return {key: tuple(group) for key, group in found.items()}

    @cached_property
    def memory(self) -> dict[Hashable, Any]:
        """What has been reckoned over all of them; see :func:`streamgauge.conformance.once.once`."""
        return {}
