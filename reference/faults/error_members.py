"""`error.*`: what goes wrong in the members of an error body."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Stage, fault
from streamgauge.reference.faults.telling import error_in, mistyped, reasoned

_TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/opt/engine/serving/api.py", line 114, in create\n'
    "    request = Request(**body)\n"
    "TypeError: unexpected type"
)


@fault(
    "error.code-string",
    "The error code is a word",
    caught_by=("error.envelope", "error.code-type"),
    stage=Stage.ANSWER,
    concerns=reasoned,
    seen=("weaviate/weaviate#4068",),
)
def code_string(draft: Draft) -> None:
    """Right in OpenAI's dialect, wrong in Seekr's."""
    error_in(draft)["code"] = "bad_request"


@fault(
    "error.code-integer",
    "The error code is the status as a number",
    caught_by="error.code-type",
    stage=Stage.ANSWER,
    concerns=reasoned,
    seen=("sgl-project/sglang#32808", "openai/openai-python#3531", "Alishahryar1/free-claude-code#146"),
)
def code_integer(draft: Draft) -> None:
    """Right in Seekr's dialect and vLLM's, wrong where the code is OpenAI's."""
    error_in(draft)["code"] = draft.status


@fault(
    "error.code-other-status",
    "The error code is another status than the answer's",
    caught_by="error.code",
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def code_other_status(draft: Draft) -> None:
    """The status of the server behind a gateway, for instance."""
    error_in(draft)["code"] = 409


@fault(
    "error.param-object",
    "`param` holds the offending value",
    caught_by=("error.envelope", "error.member-types"),
    stage=Stage.ANSWER,
    concerns=reasoned,
    seen=("ray-project/ray#64833",),
)
def param_object(draft: Draft) -> None:
    """In the place of the property's name."""
    error_in(draft)["param"] = {"n": "two"}


@fault(
    "error.type-number",
    "`type` is a number",
    caught_by=("error.envelope", "error.member-types"),
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def type_number(draft: Draft) -> None:
    """The status once more."""
    error_in(draft)["type"] = draft.status


@fault(
    "error.param-other",
    "`param` names another property than the wrong one",
    caught_by="error.param",
    stage=Stage.ANSWER,
    concerns=lambda draft: reasoned(draft) and mistyped(draft),
)
def param_other(draft: Draft) -> None:
    """A property that every request has."""
    error_in(draft)["param"] = "model"


@fault(
    "error.none-strings",
    'What is missing in an error is the word "None"',
    caught_by="error.none-strings",
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def none_strings(draft: Draft) -> None:
    """`str(None)`."""
    error_in(draft)["param"] = "None"


@fault(
    "error.message-empty",
    "An error has an empty message",
    caught_by="error.none-strings",
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def message_empty(draft: Draft) -> None:
    """Its type has to do."""
    error_in(draft)["message"] = ""


@fault(
    "error.message-missing",
    "An error has no message",
    caught_by=("error.envelope", "error.envelope-undocumented"),
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def message_missing(draft: Draft) -> None:
    """Not even an empty one."""
    del error_in(draft)["message"]


@fault(
    "error.stack-trace",
    "An error shows the server's stack trace",
    caught_by="error.no-internals",
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def stack_trace(draft: Draft) -> None:
    """Python's."""
    error_in(draft)["message"] = _TRACE


@fault(
    "error.path-leak",
    "An error shows the path of a source file",
    caught_by="error.no-internals",
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def path_leak(draft: Draft) -> None:
    """The text of a failed assertion."""
    error_in(draft)["message"] = "GGML_ASSERT(n_tokens > 0) failed at /build/src/llama-batch.cpp:77"


@fault(
    "error.upstream-url",
    "An error shows the address of the server behind",
    caught_by="error.no-internals",
    stage=Stage.ANSWER,
    concerns=reasoned,
)
def upstream_url(draft: Draft) -> None:
    """A gateway that passes on what its HTTP client said."""
    error_in(draft)["message"] = "400 Bad Request for url: http://10.4.2.17:8000/v1/generate"
