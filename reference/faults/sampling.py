"""`sampling.*`: sampling parameters that have no effect, or another one."""

from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare, ignoring
from streamgauge.reference.faults.fault import Stage, requests, wholes

__all__: list[str] = []


def _taking(
    name: str, title: str, check: str, asked: Callable[[dict[str, Any]], bool], instead: dict[str, Any], *seen: str
) -> None:
    """A fault that takes some values of a property for others."""

    def concerned(draft: Draft) -> bool:
        return requests(draft) and asked(draft.asked)

    def bend(draft: Draft) -> None:
        ask(draft, {**draft.asked, **instead})

    declare(name, title, check, bend, *seen, concerns=concerned, stage=Stage.REQUEST)


ignoring("sampling.temperature-ignored", "The temperature is ignored", "sampling.temperature", "temperature")
ignoring("sampling.top-k-ignored", "top_k is ignored", "sampling.top-k", "top_k")
ignoring("sampling.top-p-ignored", "top_p is ignored", "sampling.top-p", "top_p")
ignoring("sampling.min-p-ignored", "min_p is ignored", "sampling.min-p", "min_p")
ignoring("sampling.seed-ignored", "The seed is ignored", "sampling.seed", "seed")
ignoring("sampling.beams-ignored", "No beams are searched", "sampling.beams", "use_beam_search")
for _name in ("presence", "frequency", "repetition"):
    ignoring(
        f"sampling.{_name}-penalty-ignored",
        f"{_name}_penalty is ignored",
        f"sampling.{_name}-penalty",
        f"{_name}_penalty",
    )


def _above(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda asked: isinstance(asked.get(name), int) and asked[name] > 1


_taking("sampling.n-ignored", "n is ignored", "sampling.n", _above("n"), {"n": 1})


def _copies(draft: Draft) -> None:
    first = draft.choices[0]
    for choice in draft.choices[1:]:
        choice.update({name: value for name, value in first.items() if name != "index"})


declare(
    "sampling.choices-copied",
    "One text is drawn, and told as often as choices were asked for",
    "sampling.n-drawn",
    _copies,
    concerns=lambda draft: (
        wholes(draft)
        and _above("n")(draft.asked)
        and draft.asked.get("temperature") == 2
        and not draft.asked.get("echo")
    ),
)
_taking(
    "sampling.zero-warm",
    "Temperature 0 is taken for none, and 1 is the default",
    "sampling.greedy",
    lambda asked: asked.get("temperature") == 0,
    {"temperature": 1},
)
_taking(
    "sampling.top-k-zero-narrows",
    "top_k 0 leaves one token",
    "sampling.zero-is-off",
    lambda asked: asked.get("top_k") == 0,
    {"top_k": 1},
)
_taking(
    "sampling.n-zero-answered",
    "No choice is taken for one",
    "sampling.n-below-one",
    lambda asked: type(asked.get("n")) is int and asked["n"] < 1,
    {"n": 1},
)
_taking(
    "sampling.frequency-penalty-negated",
    "A penalty of what came often makes it likelier",
    "sampling.frequency-penalty",
    _above("frequency_penalty"),
    {"frequency_penalty": -2},
)
