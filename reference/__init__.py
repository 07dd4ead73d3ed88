"""
The built-in endpoint: an inference server without a model that keeps the bundled documents to the letter.

Targets are tested against the contract; this one shows that the contract can be kept, and that the checks
pass when it is.
"""

from streamgauge.reference.settings import DEFAULT_KEY, DEFAULT_MODEL

__all__ = ["DEFAULT_KEY", "DEFAULT_MODEL"]
