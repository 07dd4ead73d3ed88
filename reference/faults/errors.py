"""`error.*`: what goes wrong with the body of a refusal."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.errors import Kind
from streamgauge.reference.faults.fault import Stage, fault, refusals
from streamgauge.reference.faults.telling import HTML, PLAIN, PROXY_PAGE, turned_down

_FORM = ("error.envelope", "error.envelope-undocumented")


def _message(draft: Draft) -> str:
    return draft.refusal.message if draft.refusal else ""


@fault(
    "error.no-body",
    "A refusal has no body",
    caught_by=("error.envelope", "error.body"),
    stage=Stage.TEXT,
    concerns=refusals,
    seen=("huggingface/chat-ui#1343",),
)
def no_body(draft: Draft) -> None:
    """Its status is right."""
    draft.text = b""


@fault(
    "error.no-content-type",
    "A refusal does not say what its body is",
    caught_by="error.media-type",
    stage=Stage.HEAD,
    concerns=refusals,
)
def no_content_type(draft: Draft) -> None:
    """It is JSON all the same."""
    draft.headers = [field for field in draft.headers if field[0] != "Content-Type"]


@fault(
    "error.as-text",
    "The JSON of a refusal is called text/plain",
    caught_by="error.media-type",
    stage=Stage.TEXT,
    concerns=refusals,
)
def as_text(draft: Draft) -> None:
    """Clients that look at the media type show it as it is."""
    draft.media_type = PLAIN


@fault(
    "error.plain-text",
    "A refusal is a sentence, no JSON",
    caught_by=_FORM,
    stage=Stage.TEXT,
    concerns=refusals,
    seen=("sgl-project/sglang#3805", "ggml-org/llama.cpp#5961"),
)
def plain_text(draft: Draft) -> None:
    """It is not even called JSON."""
    draft.text, draft.media_type = _message(draft).encode(), PLAIN


@fault(
    "error.html",
    "A proxy's page stands in the place of a refusal",
    caught_by=_FORM,
    stage=Stage.TEXT,
    concerns=refusals,
)
def html(draft: Draft) -> None:
    """With the status of the refusal."""
    draft.text, draft.media_type = PROXY_PAGE.replace(b"502 Bad Gateway", b"Error"), HTML


@fault(
    "error.flat-envelope",
    'A refusal is {"object": "error", "message": ...}, without `error` around it',
    caught_by=_FORM,
    stage=Stage.ANSWER,
    concerns=refusals,
    seen=("vllm-project/vllm#12886",),
)
def flat_envelope(draft: Draft) -> None:
    """The older form of vLLM."""
    draft.body = {"object": "error", "message": _message(draft), "type": "BadRequestError", "code": draft.status}


@fault(
    "error.status-envelope",
    'A refusal is {"code": ..., "statusText": ..., "message": ...}',
    caught_by=_FORM,
    stage=Stage.ANSWER,
    concerns=refusals,
    seen=("labring/FastGPT#422", "truefoundry/models#944"),
)
def status_envelope(draft: Draft) -> None:
    """A gateway's own form."""
    draft.body = {"code": draft.status, "statusText": "error", "message": _message(draft)}


@fault(
    "error.detail-envelope",
    'A refusal is {"detail": "..."}, the framework\'s own',
    caught_by=_FORM,
    stage=Stage.ANSWER,
    concerns=refusals,
    seen=("ray-project/ray#64833", "tenstorrent/tt-inference-server#2771"),
)
def detail_envelope(draft: Draft) -> None:
    """A text, for every status."""
    draft.body = {"detail": _message(draft)}


@fault(
    "error.string-error",
    'A refusal is {"error": "..."}: a text where clients read an object',
    caught_by=_FORM,
    stage=Stage.ANSWER,
    concerns=refusals,
    seen=("huggingface/huggingface.js#1079",),
)
def string_error(draft: Draft) -> None:
    """One of two forms in Seekr's documents."""
    draft.body = {"error": _message(draft)}


@fault(
    "error.list",
    "A refusal is an array of errors",
    caught_by=_FORM,
    stage=Stage.TEXT,
    concerns=refusals,
)
def as_list(draft: Draft) -> None:
    """Clients look for a member of it."""
    draft.text = b"[" + draft.text + b"]"


@fault(
    "error.envelopes-mixed",
    "An unknown model is told in another form than everything else",
    caught_by=("error.one-envelope", *_FORM),
    stage=Stage.ANSWER,
    concerns=lambda draft: turned_down(draft) and bool(draft.refusal and draft.refusal.kind is Kind.UNKNOWN_MODEL),
    seen=("tenstorrent/tt-inference-server#2771",),
)
def envelopes_mixed(draft: Draft) -> None:
    """A text `error`: right in Seekr's documents, if all were."""
    draft.body = {"error": _message(draft)}
