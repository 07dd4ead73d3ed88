"""`stop.*`: does an answer end where the request says?"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import Case, Departure
from streamgauge.conformance.law import given, ignored, law
from streamgauge.outcomes import Level

__all__: list[str] = []


def _strings(asked: Mapping[str, Any]) -> list[str]:
    """The stop strings of a request."""
    stop = asked.get("stop", [])
    return [text for text in ([stop] if isinstance(stop, str) else stop) if text]


@law(
    "stop.honoured",
    Level.MUST,
    "No text goes on past a stop string",
    properties="stop",
    requirement="The returned text will not contain the stop sequence.",
    source="OpenAI, create completion: stop",
    asks=lambda asked: bool(_strings(asked)) and not asked.get("include_stop_str_in_output"),
)
def honoured(case: Case) -> Iterator[Departure]:
    """A text that holds one proves it, whatever else the model might have said."""
    strings = _strings(given(case))
    for choice in answer_in(case.exchange).choices.values():
        for text in strings:
            if text in choice.text:
                yield ignored(f"a text that ends before {text!r}", f"{choice.text!r}")
                return
