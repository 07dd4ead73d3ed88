"""The explorations: what is drawn, of which operations, and what share of the tokens it has."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamgauge.conformance.exploring.strategies import histories, pairs, prompts, schemas, stops, tools
from streamgauge.conformance.exploring.strategies.material import Material
from streamgauge.contract.contract import CHAT, Operation

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["DRAWING", "EXPLORATIONS", "PAIRS", "Exploration", "explorations_of", "shares"]

DRAWING = 0.6
"""How much of them is for drawing; the rest is for making small what departs, and for sending it again."""


PAIRS = "explore.pairs"
"""It draws nothing new: it looks for the properties behind what departs in the covering array."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """
    One kind of request that is drawn at random. Its oracle is every check that the run judges by.

    Attributes:
        id: `explore.name`; its exchanges have it as their probe.
        title: what is drawn.
        needs: properties of the request without any of which an operation is not explored; none for all operations.
        bodies: the requests.
        examples: how many are drawn at most.
        weight: its part of the tokens, in proportion to those of the others.
        both_forms: whether each is also asked for as a stream, where the operation streams.
        family: the only family that it is about; empty for both.
    """

    id: str
    title: str
    needs: tuple[str, ...]
    bodies: "Callable[[Material], SearchStrategy[dict[str, Any]]]"
    examples: int
    weight: int
    both_forms: bool = False
    family: str = ""

    def concerns(self, operation: Operation) -> bool:
        """Whether the operation can be explored so."""
        known = operation.properties
        return (not self.needs or any(name in known for name in self.needs)) and self.family in ("", operation.family)

    def declaration(self) -> dict[str, Any]:
        """The exploration as `streamgauge list explorations` shows it."""
        return {"id": self.id, "examples": self.examples, "title": self.title}


EXPLORATIONS: tuple[Exploration, ...] = (
    Exploration("explore.prompts", "Prompts of any Unicode text", (), prompts.bodies, 25, 3, both_forms=True),
    Exploration("explore.stops", "Stop strings out of earlier answers", ("stop",), stops.bodies, 25, 2),
    Exploration(
        "explore.schemas",
        "Schemas for the answer that no model meets by chance",
        ("response_format", "structured_outputs"),
        schemas.bodies,
        15,
        2,
    ),
    Exploration("explore.tools", "Definitions of tools", ("tools",), tools.bodies, 12, 3, family=CHAT),
    Exploration(PAIRS, "Parameters that depart together only", (), pairs.bodies, 4, 1),
    Exploration("explore.histories", "Histories of messages", ("messages",), histories.bodies, 15, 3, family=CHAT),
)
"""In the order in which they are listed; they run side by side."""


def explorations_of(operation: Operation, select: Iterable[str] = ()) -> list[Exploration]:
    """Those that concern the operation and are selected: by the topic or an id, as probes are; all when nothing is."""
    wanted = tuple(select)
    return [
        each
        for each in EXPLORATIONS
        if each.concerns(operation) and (not wanted or any(f"{each.id}.".startswith(f"{name}.") for name in wanted))
    ]


def shares(explorations: Iterable[Exploration], tokens: int) -> dict[str, int]:
    """What each one may draw with: fixed before anything is sent, so that no draw depends on how the others fare."""
    found = list(explorations)
    weights = sum(each.weight for each in found)
    return {each.id: int(tokens * DRAWING) * each.weight // weights for each in found}
