"""Which of a document's answers is meant by a status, and which of its media types by another."""

import re
from collections.abc import Iterable

__all__ = ["JSON", "SSE", "is_json", "matching_media_type", "matching_status"]

JSON = "application/json"
SSE = "text/event-stream"

_RANGE = re.compile(r"[1-5]XX", re.IGNORECASE)


def matching_status(keys: Iterable[str], status: int) -> str | None:
    """
    The key of a Responses Object that is about a status: the code itself, else its range, else `default`.

    "If a response is defined using an explicit code, the explicit code definition takes precedence over the range
    definition for that code" (OpenAPI 3.1.1, 4.8.16.2).
    """
    listed = list(keys)
    candidates = [
        str(status),
        *(key for key in listed if _RANGE.fullmatch(key) and key[0] == str(status)[0]),
        "default",
    ]
    return next((key for key in candidates if key in listed), None)


def matching_media_type(keys: Iterable[str], wanted: str) -> str | None:
    """
    The key of a `content` that is about a media type: the type itself, for JSON one in `+json`, else a range.

    "For requests that match multiple keys, only the most specific key is applicable. e.g. `text/plain` overrides `text/*`"
    (OpenAPI 3.1.1, 4.8.14.1). Parameters such as a charset are not compared. An event stream is not meant by a range:
    its schema is one of payloads, and `*/*` is written by generators that know of no streams.
    """
    essences = {key: _essence(key) for key in keys}
    wanted = _essence(wanted)
    exact = [key for key, essence in essences.items() if essence == wanted]
    if exact or wanted == SSE:
        return exact[0] if exact else None
    if wanted == JSON and (suffixed := [key for key, essence in essences.items() if is_json(essence)]):
        return suffixed[0]
    ranges = (f"{wanted.partition('/')[0]}/*", "*/*")
    return next((key for each in ranges for key, essence in essences.items() if essence == each), None)


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON, by itself or by its suffix (RFC 6839, 3.1)."""
    essence = _essence(media_type)
    return essence == JSON or (essence.startswith("application/") and essence.endswith("+json"))


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()
