"""
Nonces: texts that tell one request from all others, wherever they come up.

A nonce proves itself: its second half is a digest of its first. So one that stands in an answer and not in its request was
taken from another request, of this operation or of any other; no model makes one up.
"""

import hashlib
import re

__all__ = ["nonce", "nonces_in"]

_FORM = re.compile(r"sg-nonce-([0-9a-f]{8})([0-9a-f]{8})")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def nonce(operation: str, number: int) -> str:
    """The nonce of an operation's request of this number; the same in every run."""
    first = _digest(f"{operation} {number}")
    return f"sg-nonce-{first}{_digest(first)}"


def nonces_in(text: str) -> frozenset[str]:
    """Every nonce that stands in a text; what only looks like one is left out."""
    return frozenset(found[0] for found in _FORM.finditer(text) if _digest(found[1]) == found[2])
