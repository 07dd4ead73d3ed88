"""What an assembled answer says, in a form that can be compared across the two forms of an answer."""

from collections.abc import Iterable
from typing import Any

from streamgauge.conformance.assembly import Answer, Call, Token, assemble

Said = tuple[str, str, tuple[Call, ...], str, tuple[Token, ...] | None]


def choice(
    text: str = "", reasoning: str = "", calls: tuple[Call, ...] = (), finish: str = "", tokens: Any = None
) -> Said:
    """What a choice says that tells only what is given."""
    return text, reasoning, calls, finish, tokens


def said(answer: Answer) -> dict[int, Said]:
    """What every choice of an answer says, however it was cut."""
    return {
        index: choice(each.text, each.reasoning, each.calls, each.finish, each.tokens)
        for index, each in answer.choices.items()
    }


def of_stream(payloads: Iterable[dict[str, Any]]) -> Answer:
    """The answer in a stream's payloads."""
    return assemble((payload, None) for payload in payloads)


def of_whole(body: dict[str, Any]) -> Answer:
    """The answer in one body."""
    return assemble([(body, None)])
