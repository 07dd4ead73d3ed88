"""Stop strings and tokens: taken out of what the model says without them, so that they surely come up."""

from collections.abc import Callable, Iterator
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.probes.pairs import UNICODE
from streamgauge.conformance.probes.probe import Answered, FollowUp, Probe, worst_case_tokens
from streamgauge.conformance.stopping import most_stop_strings
from streamgauge.conformance.told_ids import ids_of
from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["stop", "streamed", "telling_ids"]

_TOKENS = 16
"""Enough for a text with a middle."""

NEVER = "\u241e"
"""A character that no model says unless it is asked for it."""

_STRINGS = 4
"""How many stop strings a list has where the document sets no limit: as many as OpenAI's allows."""

_NO_TEXT = "no text to take a stop string from"

Find = Callable[[str], Any]
"""The value of `stop` out of a text; nothing where the text does not give one."""


def stop(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """The texts, each twice and streamed, so that it shows whether they stay the same; then the stop strings and tokens."""
    if "stop" not in operation.properties:
        return
    plain = plain_request(operation, model, max_tokens=_TOKENS)
    yield from _asked_often("law.stop.text", operation, plain)
    unicode = {**plain, **prompt_member(operation, UNICODE)}
    yield from _asked_often("law.stop.unicode-text", operation, unicode)
    for form in (dict, lambda body: streamed(operation, body)):
        suffix = "" if form is dict else "-stream"
        if suffix and not operation.streams:
            break
        yield _taken(f"law.stop.string{suffix}", plain, "law.stop.text", _middle, form)
        yield _taken(f"law.stop.end{suffix}", plain, "law.stop.text", _last_and_more, form)
        yield _taken(f"law.stop.unicode{suffix}", unicode, "law.stop.unicode-text", _foreign, form)
    yield _taken("law.stop.list", plain, "law.stop.text", lambda text: _list(operation, text))
    yield _taken("law.stop.overlapping", plain, "law.stop.text", _overlapping)
    logprobs = {**plain, "logprobs": True if operation.family == CHAT else 1}
    yield _taken("law.stop.logprobs", logprobs, "law.stop.text", _middle)
    if "include_stop_str_in_output" in operation.properties:
        yield _taken("law.stop.included", {**plain, "include_stop_str_in_output": True}, "law.stop.text", _middle)
    yield Probe("law.stop.empty-list", {**plain, "stop": []})
    yield Probe("law.stop.empty-text", {**plain, "stop": ""})
    if (most := most_stop_strings(operation)) is not None:
        many = {**plain, "stop": [f"{NEVER}{number}" for number in range(most + 1)]}
        yield Probe("law.stop.too-many", many, free=True)
    yield from _tokens(operation, plain)


def streamed(operation: Operation, body: dict[str, Any]) -> dict[str, Any]:
    """The request for a stream, with usage where the document offers that."""
    options = {"stream_options": {"include_usage": True}} if "stream_options" in operation.properties else {}
    return {**body, "stream": True, **options}


def _asked_often(name: str, operation: Operation, body: dict[str, Any]) -> Iterator[Probe]:
    yield from [Probe(name, body)] * 2
    if operation.streams:
        yield Probe(f"{name}-stream", streamed(operation, body))


def _taken(
    name: str, body: dict[str, Any], source: str, find: Find, form: Callable[[dict[str, Any]], dict[str, Any]] = dict
) -> FollowUp:
    """The request with a stop string out of the text of another."""

    def make(answered: Answered) -> dict[str, Any] | str:
        found = find(_text(answered, source))
        return form({**body, "stop": found}) if found else _NO_TEXT

    return FollowUp(name, worst_case_tokens(body), make)


def _text(answered: Answered, source: str) -> str:
    exchange = answered.get(source)
    choices = answer_in(exchange).choices if exchange is not None else {}
    return choices[0].text if 0 in choices else ""


def _middle(text: str) -> str:
    """A few characters from the middle of a text, over the border of two words where there is one: several tokens."""
    half = len(text) // 2
    border = text.find(" ", half, len(text) - 3)
    start = border - 2 if border >= 2 else half
    return text[start : start + 5] if len(text) >= 8 else ""


def _last_and_more(text: str) -> str:
    """The end of a text, and what does not follow: a server has to hold back that end until nothing more comes."""
    return text[-3:] + NEVER if len(text) >= 8 and NEVER not in text else ""


def _foreign(text: str) -> str:
    """The first character beyond ASCII behind the beginning of the text."""
    return next((character for character in text[2:] if not character.isascii() and character != "\ufffd"), "")


def _list(operation: Operation, text: str) -> list[str]:
    """As many as the document allows; only the last one comes up."""
    found, count = _middle(text), most_stop_strings(operation) or _STRINGS
    return [*(f"{NEVER}{number}" for number in range(count - 1)), found] if found else []


def _overlapping(text: str) -> list[str]:
    """One that begins earlier, and one within it, which is complete earlier."""
    start = len(text) // 2
    outer = text[start - 2 : start + 6]
    return [outer, outer[2:5]] if len(text) >= 16 else []


def telling_ids(operation: Operation, plain: dict[str, Any]) -> dict[str, Any] | None:
    """The plain request for an answer that tells its token ids; None where the document has no way to ask for one."""
    if "return_token_ids" in operation.properties:
        return {**plain, "return_token_ids": True}
    if "return_tokens_as_token_ids" in operation.properties and operation.family != CHAT:
        return {**plain, "logprobs": 1, "return_tokens_as_token_ids": True}
    return None


def _tokens(operation: Operation, plain: dict[str, Any]) -> Iterator[Probe | FollowUp]:
    """A token that first comes up in the middle as the stop."""
    body = telling_ids(operation, plain)
    if "stop_token_ids" not in operation.properties or body is None:
        return
    yield from [Probe("law.stop.ids", body)] * 2

    def make(answered: Answered) -> dict[str, Any] | str:
        exchange = answered.get("law.stop.ids")
        ids = (ids_of(exchange, 0) if exchange is not None else None) or ()
        firsts = [at for at, token in enumerate(ids) if ids.index(token) == at and at < len(ids) - 1]
        if not firsts:
            return "no token to take as a stop"
        middle = min(firsts, key=lambda at: abs(at - len(ids) // 2))
        return {**body, "stop_token_ids": [ids[middle]]}

    yield FollowUp("law.stop.token", worst_case_tokens(body), make)
