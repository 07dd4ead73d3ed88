"""`error.*`: what goes wrong with the status of a refusal, and when the rate is limited."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Stage, answers, fault, wholes
from streamgauge.reference.faults.telling import HTML, PLAIN, PROXY_PAGE, mistyped, tell, tell_raw, turn

_EVERY = 6


@fault(
    "error.500-empty",
    "A property of the wrong type makes the server fail, without a word",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=mistyped,
    seen=("vllm-project/vllm#23837", "vllm-project/vllm#17038"),
)
def empty_500(draft: Draft) -> None:
    """Neither body nor media type."""
    tell_raw(draft, 500, b"", PLAIN)


@fault(
    "error.500-text",
    "A property of the wrong type makes the server fail: Internal Server Error",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=mistyped,
    seen=("vllm-project/vllm#17036", "vllm-project/vllm-omni#1952"),
)
def text_500(draft: Draft) -> None:
    """The framework's own page."""
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


@fault(
    "error.500-html",
    "A property of the wrong type makes the server fail, and a proxy says so",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=mistyped,
)
def html_500(draft: Draft) -> None:
    """With a page for people."""
    tell_raw(draft, 500, PROXY_PAGE.replace(b"502 Bad Gateway", b"500 Internal Server Error"), HTML)


@fault(
    "error.500-json",
    "A property of the wrong type makes the server fail; its error is well told",
    caught_by="error.no-5xx",
    stage=Stage.ANSWER,
    concerns=mistyped,
)
def json_500(draft: Draft) -> None:
    """Only the status is wrong."""
    tell(draft, 500, "Internal error.")


@fault(
    "error.502-html",
    "Now and then a proxy's page comes in the place of an answer",
    caught_by=("error.no-5xx", "error.media-type"),
    stage=Stage.TEXT,
    concerns=answers,
)
def html_502(draft: Draft) -> None:
    """Where the document lists 502, it promises JSON for it."""
    if turn(draft, "error.502-html", _EVERY):
        tell_raw(draft, 502, PROXY_PAGE, HTML)


@fault(
    "error.503-empty",
    "Now and then an overloaded server answers 503 without a word",
    caught_by=("error.no-5xx", "error.envelope", "error.body"),
    stage=Stage.TEXT,
    concerns=answers,
)
def empty_503(draft: Draft) -> None:
    """And without Retry-After, which would make it a limited rate."""
    if turn(draft, "error.503-empty", _EVERY):
        tell_raw(draft, 503, b"", PLAIN)


@fault(
    "error.undocumented-status",
    "A property of the wrong type gets 409",
    caught_by="error.status-documented",
    stage=Stage.ANSWER,
    concerns=mistyped,
    seen=("vllm-project/vllm#17037",),
)
def undocumented_status(draft: Draft) -> None:
    """Which no document and no profile lists."""
    tell(draft, 409, "The body breaks the documented schema.")


@fault(
    "error.405-for-feature",
    "Who asks for log probabilities is told that the method is wrong",
    caught_by="error.status-fits",
    stage=Stage.ANSWER,
    concerns=lambda draft: wholes(draft) and bool(draft.asked.get("logprobs")),
    seen=("truefoundry/models#944",),
)
def feature_405(draft: Draft) -> None:
    """With an Allow field that names the method."""
    tell(draft, 405, "Log probabilities are not supported.")
    draft.headers.append(("Allow", "POST"))


@fault(
    "error.415-for-feature",
    "Who asks for log probabilities is told that the body is no JSON",
    caught_by="error.status-fits",
    stage=Stage.ANSWER,
    concerns=lambda draft: wholes(draft) and bool(draft.asked.get("logprobs")),
)
def feature_415(draft: Draft) -> None:
    """It is."""
    tell(draft, 415, "Log probabilities are not supported.")


@fault(
    "error.429-no-retry-after",
    "Now and then the rate is limited, and nobody says for how long",
    caught_by="error.retry-after",
    stage=Stage.ANSWER,
    concerns=answers,
    seen=("BerriAI/litellm#4695", "etalab-ia/OpenGateLLM#364", "anthropics/claude-code#23049"),
)
def no_retry_after(draft: Draft) -> None:
    """The same request is answered when it comes again."""
    if turn(draft, "error.429-no-retry-after", _EVERY):
        tell(draft, 429, "Rate limit exceeded.")


@fault(
    "error.429-html",
    "Now and then the rate is limited, by a proxy's page",
    caught_by="error.limit-envelope",
    stage=Stage.TEXT,
    concerns=answers,
)
def html_429(draft: Draft) -> None:
    """It says when to come back."""
    if turn(draft, "error.429-html", _EVERY):
        tell_raw(draft, 429, PROXY_PAGE.replace(b"502 Bad Gateway", b"429 Too Many Requests"), HTML)
        draft.headers.append(("Retry-After", "0"))


@fault(
    "error.429-empty",
    "Now and then the rate is limited, without a word",
    caught_by="error.limit-envelope",
    stage=Stage.TEXT,
    concerns=answers,
)
def empty_429(draft: Draft) -> None:
    """It says when to come back."""
    if turn(draft, "error.429-empty", _EVERY):
        tell_raw(draft, 429, b"", PLAIN)
        draft.headers.append(("Retry-After", "0"))


@fault(
    "error.retry-after-words",
    "Now and then the rate is limited; Retry-After is a word",
    caught_by="error.retry-after-form",
    stage=Stage.ANSWER,
    concerns=answers,
)
def retry_after_words(draft: Draft) -> None:
    """Neither seconds nor a date."""
    if turn(draft, "error.retry-after-words", _EVERY):
        tell(draft, 429, "Rate limit exceeded.")
        draft.headers.append(("Retry-After", "soon"))
