"""Stop strings out of what the model says: anywhere in it, so across the borders of its tokens."""

from typing import Any

from hypothesis import strategies as st

from streamgauge.conformance.exploring.strategies.material import Answered, Material

__all__ = ["bodies"]

_LONGEST = 8
_MOST = 4
"""Stop strings of one request: what OpenAI takes."""


def bodies(material: Material) -> st.SearchStrategy[dict[str, Any]]:
    """A request that was answered before, with strings out of that answer, which may overlap, and others beside them."""
    if not material.answered:
        return st.nothing()
    return st.sampled_from(material.answered).flatmap(lambda answered: _stopped(material, answered))


def _stopped(material: Material, answered: Answered) -> st.SearchStrategy[dict[str, Any]]:
    known = material.operation.properties
    cut = st.tuples(st.integers(0, len(answered.text) - 1), st.integers(1, _LONGEST)).map(
        lambda drawn: answered.text[drawn[0] : drawn[0] + drawn[1]]
    )
    other = st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1, max_size=3)
    several = st.lists(st.one_of(cut, cut, other), min_size=1, max_size=_MOST, unique=True)
    further = {"n": 2, "include_stop_str_in_output": True, **({"stream": True} if material.operation.streams else {})}
    optional = {name: st.just(value) for name, value in further.items() if name in known}
    options = st.fixed_dictionaries({"stop": st.one_of(cut, several)}, optional=optional)
    return options.map(lambda drawn: {**answered.body, **drawn})
