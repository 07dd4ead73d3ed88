"""Which requests a run is made of: one kind, or several by weight."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.contract.contract import Operation
from streamgauge.errors import UsageError
from streamgauge.load.texts import decimal, written
from streamgauge.target import Target

__all__ = ["MixEntry", "Part", "mix_for", "parse_mix"]

_FORMS = {"stream": True, "whole": False}
_WRITTEN = "Write for instance seekr-chat=3,seekr-chat:whole=1 (an operation, :stream or :whole, a weight)."


@dataclass(frozen=True, slots=True)
class Part:
    """
    One kind of request of the mix.

    Attributes:
        operation: what to ask for.
        stream: whether a stream is asked for.
        weight: how often, relative to the other parts.
    """

    operation: Operation
    stream: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class MixEntry:
    """
    One kind of request as the user names it.

    Attributes:
        name: of an operation.
        stream: whether a stream is wanted; None where the user does not say.
        weight: how often, relative to the other entries.
    """

    name: str
    stream: bool | None = None
    weight: float = 1.0

    def __str__(self) -> str:
        """The text that :func:`parse_mix` takes."""
        form = "" if self.stream is None else ":stream" if self.stream else ":whole"
        return f"{self.name}{form}={written(self.weight)}"


def parse_mix(text: str) -> tuple[MixEntry, ...]:
    """
    From `seekr-chat=3,seekr-chat:whole=1`.

    Raises:
        UsageError: it is no such list.
    """
    return tuple(_entry(item.strip()) for item in text.split(","))


def _entry(item: str) -> MixEntry:
    what, equals, weight = item.partition("=")
    name, colon, form = what.strip().partition(":")
    if not name or (colon and form not in _FORMS):
        raise UsageError(f"{item!r} is no part of a mix", hint=_WRITTEN)
    share = decimal(weight, "weight") if equals else 1.0
    if share <= 0:
        raise UsageError(f"{item!r} is never asked for: its weight is 0", hint=_WRITTEN)
    return MixEntry(name, _FORMS.get(form), share)


def mix_for(targets: Sequence[Target], entries: Sequence[MixEntry], *, stream: bool) -> tuple[Target, tuple[Part, ...]]:
    """
    The mix that the entries mean.

    Args:
        targets: with their operations.
        entries: none for the first target's first operation.
        stream: whether streams are wanted where an entry does not say; an operation that does not stream is asked for
            whole answers anyway.

    Returns:
        The target that has them all, and the parts.

    Raises:
        UsageError: no target has an operation of that name, it does not stream, or they are of several targets.
    """
    known = {found.name: (target, found) for target in reversed(targets) for found in target.contract.operations}
    entries = entries or [MixEntry(targets[0].contract.operations[0].name)]
    parts: list[Part] = []
    for entry in entries:
        if entry.name not in known:
            raise UsageError(f"no operation is called {entry.name}", hint=f"There are: {', '.join(sorted(known))}.")
        target, operation = known[entry.name]
        if target is not known[entries[0].name][0]:
            raise UsageError(
                f"{entries[0].name} and {entry.name} are of two vendors' profiles, and a load run has one target",
                hint="Leave one of them out, or give --profile for both.",
            )
        if entry.stream and not operation.streams:
            raise UsageError(f"{entry.name} has no streams", hint=f"Ask for {entry.name}:whole.")
        wanted = stream if entry.stream is None else entry.stream
        parts.append(Part(operation, wanted and operation.streams, entry.weight))
    return known[entries[0].name][0], tuple(parts)
