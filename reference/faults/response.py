"""`response.*`: what goes wrong in an answer in one piece."""

import re
from collections.abc import Callable
from typing import Any

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import declare, each_body
from streamgauge.reference.faults.fault import Stage, fault, wholes

_SCHEMA = ("response.schema", "response.reference-shape")
"""Where the document leaves the answer open, the other form of the answer tells."""

Body = dict[str, Any]


def _chat_wholes(draft: Draft) -> bool:
    return wholes(draft) and draft.chat


def _declare(
    name: str,
    title: str,
    check: str | tuple[str, ...],
    change: Callable[[Body], Any],
    *seen: str,
    concerns: Callable[[Draft], bool] = wholes,
) -> None:
    """A fault in the JSON object."""
    declare(name, title, check, each_body(change), *seen, concerns=concerns)


def _bytes(name: str, title: str, check: str | tuple[str, ...], change: Callable[[bytes], bytes], *seen: str) -> None:
    """A fault in its bytes."""

    def bend(draft: Draft) -> None:
        draft.text = change(draft.text)

    fault(name, title, caught_by=check, stage=Stage.TEXT, concerns=wholes, seen=seen)(bend)


def _member(data: bytes) -> Callable[[bytes], bytes]:
    """One more member, which every document allows."""
    return lambda text: b"{" + data + b"," + text[1:]


# --- JSON -------------------------------------------------------------------------------------------------------------

_bytes(
    "response.trailing-bytes",
    "Something stands behind the JSON of a whole answer",
    "response.json",
    lambda text: text + b"}",
)
_bytes("response.twice", "The JSON of a whole answer comes twice", "response.json", lambda text: text + text)
_bytes("response.empty", "A whole answer has no byte", "response.json", lambda text: b"")
_bytes(
    "response.array",
    "A whole answer is an array",
    "response.json",
    lambda text: b"[" + text + b"]",
    "UKGovernmentBEIS/inspect_ai#3687",
)
_bytes(
    "response.nan",
    "A number is NaN",
    "response.strict-json",
    _member(b'"x":NaN'),
    "sgl-project/sglang#5984",
)
_bytes("response.not-utf8", "The JSON is ISO-8859-1", "response.strict-json", _member(b'"x":"caf\xe9"'))
_bytes("response.bom", "A byte order mark comes first", "response.strict-json", lambda text: b"\xef\xbb\xbf" + text)
_bytes("response.duplicate-key", "A name comes twice", "response.interoperable-json", _member(b'"x":1,"x":2'))
_bytes(
    "response.lone-surrogate", "Half a character is escaped", "response.interoperable-json", _member(b'"x":"\\ud83d"')
)
_bytes(
    "response.large-integer", "A double cannot hold an integer", "response.interoperable-json", _member(b'"x":2e400')
)


# --- the frame --------------------------------------------------------------------------------------------------------

_declare("response.id-empty", "The id of a whole answer is empty", "response.id", lambda body: body.update(id=""))
_declare("response.id-missing", "A whole answer has no id", "response.id", lambda body: body.pop("id"))
_declare(
    "response.object-wrong",
    "A whole answer calls itself a chunk",
    "response.object",
    lambda body: body.update(object="chunk"),
)
_declare(
    "response.object-missing",
    "A whole answer does not say what it is",
    "response.object",
    lambda body: body.pop("object"),
)
_declare(
    "response.created-milliseconds",
    "`created` of a whole answer is in milliseconds",
    "response.created-seconds",
    lambda body: body.update(created=body["created"] * 1000),
    "mlc-ai/web-llm#829",
    "Mintplex-Labs/anything-llm#2920",
)
_declare(
    "response.created-zero",
    "`created` of a whole answer is 0",
    "response.created-seconds",
    lambda body: body.update(created=0),
)
_bytes(
    "response.created-float",
    "`created` of a whole answer has a fraction",
    "response.created-integer",
    lambda text: re.sub(rb'"created":\d+', rb"\g<0>.254391", text),
    "BerriAI/litellm#4654",
    "spiceai/spiceai#5418",
)
_bytes(
    "response.created-exponent",
    "`created` of a whole answer is written with an exponent",
    "response.created-integer",
    lambda text: re.sub(rb'"created":(\d)(\d+)', rb'"created":\1.\2e9', text),
    "openai/openai-dotnet#1006",
)
_declare(
    "response.model-other",
    "A whole answer names another model",
    "response.model",
    lambda body: body.update(model="backend"),
    "triton-inference-server/server#7796",
)
_declare(
    "response.service-tier-unknown",
    "The service tier is none of the documented ones",
    "response.schema",
    lambda body: body.update(service_tier="gold"),
)


# --- the choices ------------------------------------------------------------------------------------------------------


def _each_choice(change: Callable[[Body], Any]) -> Callable[[Body], Any]:
    return lambda body: [change(choice) for choice in body["choices"]]


def _each_message(change: Callable[[Body], Any]) -> Callable[[Body], Any]:
    return lambda body: [change(choice["message"]) for choice in body["choices"]]


def _silent(choice: Body) -> None:
    part = choice.get("message", choice)
    part["content" if "message" in choice else "text"] = ""
    part.pop("reasoning", None)


def _unsaid(choice: Body) -> None:
    choice.pop("message" if "message" in choice else "text")


_declare(
    "response.choices-empty", "A whole answer has no choice", "response.choices", lambda body: body.update(choices=[])
)
_declare(
    "response.choices-fewer",
    "One choice comes, however many were asked for",
    "response.choices",
    (lambda body: body.update(choices=body["choices"][:1])),
)
_declare(
    "response.index-all-zero",
    "Every choice has the index 0",
    "response.choices",
    _each_choice(lambda choice: choice.update(index=0)),
    "BerriAI/litellm#3276",
)
_declare("response.choice-unsaid", "A choice has neither message nor text", _SCHEMA, _each_choice(_unsaid))
_declare(
    "response.text-missing",
    "A whole answer counts tokens and says nothing",
    "response.text",
    _each_choice(_silent),
    "triton-inference-server/server#7868",
)
_declare(
    "response.role-other",
    "The message has the role of the user",
    "response.role",
    _each_message(lambda message: message.update(role="user")),
    concerns=_chat_wholes,
)
_declare(
    "response.role-missing",
    "The message has no role",
    "response.role",
    _each_message(lambda message: message.pop("role")),
    concerns=_chat_wholes,
)
_declare(
    "response.tool-calls-empty",
    "Every message has an empty array of tool calls",
    "response.no-empty-calls",
    _each_message(lambda message: message.setdefault("tool_calls", [])),
    "vllm-project/vllm#44104",
    "openai/openai-node#1341",
    concerns=_chat_wholes,
)
_declare(
    "response.tool-calls-null",
    "The tool calls of every message are null",
    "response.schema",
    _each_message(lambda message: message.setdefault("tool_calls", None)),
    "triton-inference-server/server#7796",
    concerns=_chat_wholes,
)
