"""Prompts of any Unicode text that UTF-8 can carry: everything but surrogates (RFC 3629, section 3)."""

from typing import Any

from hypothesis import strategies as st

from streamgauge.conformance.exploring.strategies.material import Material

__all__ = ["bodies", "texts"]

_TOKENS = 3
_LONG = 64

_FRAGMENTS = (
    "\u0000",
    "\u001b[31m",
    "\r\n",
    "\u0085\u2028\u2029",
    "data: [DONE]\n\n",
    "e\u0301",
    "a" + "\u0334" * 12,
    "\u202eabc\u202c",
    "\u200b\u2060\ufeff",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629",
    "\u96ea\u91ce\u539f",
    "\U0001f3f3\ufe0f\u200d\U0001f308",
    "\U0001d54f\U000e0041\U0010ffff",
    "\ufffd\ufffe",
    '\\u0041\\"',
    "{{ '' }}{% raw %}",
)
"""Controls, line ends, what a stream is made of, combining, right to left, invisible, wide, four bytes, escapes, a template."""


def texts() -> st.SearchStrategy[str]:
    """Texts of a few pieces; something is left when the white space around them is gone, which some servers take away."""
    anything = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
    long_word = st.tuples(st.sampled_from("aZ0é雪"), st.integers(20, _LONG)).map(lambda drawn: drawn[0] * drawn[1])
    piece = st.one_of(anything, st.sampled_from(_FRAGMENTS), long_word)
    return st.lists(piece, min_size=1, max_size=3).map("".join).filter(_says_something)


def _says_something(text: str) -> bool:
    return bool(text.replace("\0", "").replace("\ufeff", "").strip())


def bodies(material: Material) -> st.SearchStrategy[dict[str, Any]]:
    """The plain request with such a prompt."""
    return texts().map(lambda text: material.plain(text, _TOKENS))
