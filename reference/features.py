"""What the documents offer and a model that reads only text cannot do: refused by name, never silently left out."""

from collections.abc import Callable
from typing import Any

from streamgauge.contract.features import FEATURES, features_used
from streamgauge.contract.profile import Profile
from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.rules import Asked

__all__ = ["UNSUPPORTED", "refuse_unsupported"]


def _has_media(messages: list[dict[str, Any]]) -> bool:
    return any(
        part.get("type", "text") != "text" or not isinstance(part.get("text"), str)
        for message in messages
        if isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _is_given(value: Any) -> bool:
    """Whether it asks for anything: neither false nor empty."""
    return value is not False and value not in ([], {}, "")


UNSUPPORTED: dict[str, Callable[[Any], bool]] = {"messages": _has_media, "data": _is_given}
"""Parameter → whether its value asks for something that this endpoint does not have."""


def refuse_unsupported(asked: Asked, profile: Profile) -> None:
    """
    Let pass only what the profile's vendor offers and the pseudo-model honours.

    Raises:
        Refusal: the request asks for something else.
    """
    for name in profile.unsupported(features_used(asked, asked.keys())):
        raise Refusal(Kind.UNPROCESSABLE, f"{FEATURES[name].meaning}: not supported here.", FEATURES[name].params[-1])
    for param, wanted in UNSUPPORTED.items():
        if param in asked and wanted(asked[param]):
            message = f"This value of `{param}` asks for a feature that the reference endpoint does not have."
            raise Refusal(Kind.UNPROCESSABLE, message, param)
