"""Requests of the covering array that departed: drawn to be made smaller, down to the properties that it takes."""

from typing import Any

from hypothesis import strategies as st

from streamgauge.conformance.exploring.strategies.material import Material

__all__ = ["bodies"]


def bodies(material: Material) -> st.SearchStrategy[dict[str, Any]]:
    """Nothing where all of them were answered rightly."""
    return st.sampled_from(material.departed) if material.departed else st.nothing()
