"""How a fault lets a reply say no."""

from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.errors import Kind, Refusal, body_of

__all__ = ["HTML", "PLAIN", "PROXY_PAGE", "error_in", "mistyped", "reasoned", "tell", "tell_raw", "turn", "turned_down"]

HTML = "text/html"
PLAIN = "text/plain; charset=utf-8"
PROXY_PAGE = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n"
    b"<hr><center>proxy</center>\r\n</body>\r\n</html>\r\n"
)


def tell(draft: Draft, status: int, message: str = "This cannot be done.", kind: Kind = Kind.UNPROCESSABLE) -> None:
    """Turn the reply into a refusal with this status, told as its contract wants it; before the text is made."""
    assert draft.contract is not None
    refusal = Refusal(kind, message)
    draft.refusal, draft.status, draft.answer, draft.chunks = refusal, status, None, None
    draft.body = body_of(refusal, status, draft.contract.profile.dialect, draft.operation)


def tell_raw(draft: Draft, status: int, text: bytes, media_type: str) -> None:
    """Turn the reply into these bytes with this status; once the text is made."""
    draft.status, draft.answer, draft.chunks, draft.events = status, None, None, ()
    draft.text, draft.media_type = text, media_type


def turn(draft: Draft, name: str, every: int) -> bool:
    """Whether it is this reply's turn: each `every`-th one, so that a run survives."""
    draft.memory[name] = draft.memory.get(name, 0) + 1
    return bool(draft.memory[name] % every == 0)


def turned_down(draft: Draft) -> bool:
    """A request that is refused for its body."""
    kinds = (Kind.MALFORMED, Kind.UNPROCESSABLE, Kind.UNKNOWN_MODEL)
    return draft.operation is not None and draft.refusal is not None and draft.refusal.kind in kinds


def mistyped(draft: Draft) -> bool:
    """A request that is refused for one of its properties, the model's name left out."""
    if not turned_down(draft) or draft.refusal is None:
        return False
    return draft.refusal.kind is not Kind.UNKNOWN_MODEL and draft.refusal.param != "" and bool(draft.asked)


def error_in(draft: Draft) -> dict[str, Any]:
    """The object `error` of the reply; empty where there is none."""
    error = (draft.body or {}).get("error")
    return error if isinstance(error, dict) else {}


def reasoned(draft: Draft) -> bool:
    """A refusal whose body is an object `error`."""
    return draft.operation is not None and draft.refusal is not None and bool(error_in(draft))
