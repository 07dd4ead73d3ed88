"""`calls.*`: how an answer tells its tool calls, whatever the request said."""

from collections.abc import Iterator

from streamgauge.conformance.assembly import Call, Choice, answer_in
from streamgauge.conformance.callids import call_ids
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.law import given, refuses
from streamgauge.conformance.offered import CUT, TOOLS, is_json
from streamgauge.conformance.once import once
from streamgauge.conformance.posting import judged_by_body, said, shown
from streamgauge.conformance.predicates import ended, is_chat, object_answer, valid_request
from streamgauge.conformance.tokens import counts, limit_of
from streamgauge.outcomes import Level
from streamgauge.wire.exchange import Evidence
from streamgauge.wire.json import objects_in

__all__: list[str] = []

_NO_CALL = "no answer with a tool call"


def _choices(case: Case) -> list[Choice]:
    return list(answer_in(case.exchange).choices.values())


def _told(call: Call) -> str:
    return f"{call.name}({call.arguments})"


def _answered_with_calls(case: Case) -> bool:
    return (object_answer(case) or ended(case)) and any(each.calls for each in _choices(case))


def _reached_limit(case: Case) -> bool:
    """Whether the only choice has as many tokens as the request allows."""
    sent = case.exchange.sent
    limit = limit_of(sent, case.operation.properties) if isinstance(sent, dict) else None
    return limit is not None and len(_choices(case)) == 1 and counts(case.exchange, "completion_tokens") == [limit]


def _broken(case: Case) -> list[tuple[Choice, Call]]:
    """The calls whose arguments are no JSON, and that are not told to be cut."""
    return [
        (choice, call)
        for choice in _choices(case)
        for call in choice.calls
        if choice.finish not in CUT and _calls_functions(choice) and not is_json(call.arguments)
    ]


def _calls_functions(choice: Choice) -> bool:
    """Whether every call is one of a function: OpenAI's custom tools are given any text."""
    parts = [part.get("delta", part.get("message")) for part in choice.parts]
    calls = [call for part in parts if isinstance(part, dict) for call in objects_in(part.get("tool_calls"))]
    return all(call.get("type") in (None, "", "function") and "custom" not in call for call in calls)


@check(
    "calls.arguments-json",
    Level.SHOULD,
    "The arguments of a call are JSON",
    requirement="arguments: The arguments as a text that holds JSON.",
    source="/responses/200/content/application~1json/schema (tool_calls of a message)",
    applies=lambda case: _answered_with_calls(case) and not (_reached_limit(case) and _broken(case)),
    concerns=is_chat,
    absent=_NO_CALL,
    needs=(Evidence.REQUEST,),
)
def arguments_json(case: Case) -> Iterator[Departure]:
    """Clients parse them at once. A call that its limit cut is `calls.cut-told`'s."""
    for _, call in _broken(case):
        yield Departure("JSON", _told(call))


@check(
    "calls.cut-told",
    Level.MUST,
    "A call that the limit cut ends with the reason length",
    requirement="finish_reason: length: the choice ended at the token limit.",
    source="/responses/200/content/application~1json/schema (finish_reason of a choice)",
    applies=lambda case: _answered_with_calls(case) and _reached_limit(case),
    concerns=is_chat,
    absent="no call in an answer that reached its limit",
    needs=(Evidence.REQUEST,),
)
def cut_told(case: Case) -> Iterator[Departure]:
    """Half a call is taken for a whole one."""
    for choice, call in _broken(case):
        yield Departure("length", f"{choice.finish}, behind {_told(call)}")


@check(
    "calls.ids",
    Level.MUST,
    "Each call of an answer has an id of its own",
    requirement="id: identifier of the call.",
    source="/responses/200/content/application~1json/schema (tool_calls of a message)",
    applies=lambda case: _answered_with_calls(case) and bool(call_ids(case.exchange)),
    concerns=is_chat,
    absent=_NO_CALL,
)
def ids(case: Case) -> Iterator[Departure]:
    """Results are sent back under the id. One that a stream leaves out is `tools.stream-first-delta`'s."""
    for told in call_ids(case.exchange):
        texts = [each for each in told if isinstance(each, str)]
        if not case.exchange.wants_stream and "" in texts:
            yield Departure("an id", "an empty one")
        if len(set(texts)) < len(texts):
            yield Departure("ids that differ", ", ".join(map(repr, texts)))


@once
def _known_ids(case: Case) -> frozenset[str]:
    """The ids of all calls that the target's answers had."""
    return frozenset(
        id_
        for other in case.others
        if other.status == 200
        for told in call_ids(other)
        for id_ in told
        if isinstance(id_, str) and id_
    )


def _sends_back(case: Case) -> bool:
    """A conversation with a call that this server made, whole, and with the result of each; nothing else in it is odd."""
    messages = objects_in(case.exchange.sent.get("messages"))
    made = [call for message in messages for call in objects_in(message.get("tool_calls"))]
    results = [message.get("tool_call_id") for message in messages if message.get("role") == "tool"]
    return (
        bool(made)
        and all(isinstance(call.get("id"), str) and call["id"] in _known_ids(case) for call in made)
        and all(isinstance(call.get("function"), dict) and is_json(call["function"].get("arguments")) for call in made)
        and sorted(map(repr, results)) == sorted(repr(call["id"]) for call in made)
        and set(given(case)) <= {"model", "messages", "max_tokens", "temperature", "stream", TOOLS}
    )


@check(
    "calls.round-trip",
    Level.MUST,
    "A call that the server made, sent back with its result, is accepted",
    requirement="messages: tool_calls of an assistant's message; role: tool, tool_call_id.",
    source="/requestBody/content/application~1json/schema/properties/messages",
    applies=lambda case: (
        valid_request(case)
        and judged_by_body(case)
        and (case.exchange.status == 200 or refuses(case))
        and _sends_back(case)
    ),
    concerns=is_chat,
    absent="no call of this server was sent back to it",
    needs=(Evidence.REQUEST,),
)
def round_trip(case: Case) -> Iterator[Departure]:
    """Without the second turn nobody gets anything of the first one."""
    if case.exchange.status != 200:
        yield Departure("200", f"{shown(case)}: {said(case)}")
