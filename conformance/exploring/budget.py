"""What is known of explorations without Hypothesis, which takes a while to load."""

__all__ = ["EXPLORE_TOKENS", "TOPIC"]

TOPIC = "explore"
"""The first part of the ids of what explorations send."""

EXPLORE_TOKENS = 12_000
"""Tokens that the explorations of one operation may cost together unless the user says otherwise."""
