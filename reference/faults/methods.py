"""`request.*`: what goes wrong with other methods and other media types."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.errors import Kind
from streamgauge.reference.faults.fault import Stage, fault
from streamgauge.reference.faults.telling import PLAIN, tell, tell_raw


def _other_method(draft: Draft) -> bool:
    return draft.operation is not None and draft.refusal is not None and draft.refusal.kind is Kind.METHOD


def _other_media_type(draft: Draft) -> bool:
    return draft.operation is not None and draft.refusal is not None and draft.refusal.kind is Kind.MEDIA_TYPE


@fault(
    "request.method-404",
    "Another method on the path gets 404",
    caught_by="request.method",
    stage=Stage.ANSWER,
    concerns=_other_method,
)
def method_404(draft: Draft) -> None:
    """As if the path were wrong."""
    draft.headers = [field for field in draft.headers if field[0] != "Allow"]
    tell(draft, 404, "Not found.")


@fault(
    "request.method-answered",
    "GET on the path is answered by a page",
    caught_by="request.method",
    stage=Stage.TEXT,
    concerns=_other_method,
)
def method_answered(draft: Draft) -> None:
    """That says how to ask."""
    draft.headers = [field for field in draft.headers if field[0] != "Allow"]
    tell_raw(draft, 200, b"Use POST.", PLAIN)


@fault(
    "request.method-500",
    "Another method on the path makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=_other_method,
)
def method_500(draft: Draft) -> None:
    """It reads a body that is not there."""
    draft.headers = [field for field in draft.headers if field[0] != "Allow"]
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


@fault(
    "request.method-no-allow",
    "A 405 does not say which methods are allowed",
    caught_by="request.allow",
    stage=Stage.HEAD,
    concerns=_other_method,
)
def method_no_allow(draft: Draft) -> None:
    """Its status is right."""
    draft.headers = [field for field in draft.headers if field[0] != "Allow"]


@fault(
    "request.method-allow-others",
    "A 405 lists the method that it refuses in place of the one that the path takes",
    caught_by="request.allow-methods",
    stage=Stage.HEAD,
    concerns=_other_method,
)
def method_allow_others(draft: Draft) -> None:
    """A router answered that knows another table."""
    draft.headers = [field for field in draft.headers if field[0] != "Allow"] + [("Allow", draft.request.method)]


@fault(
    "request.media-type-500",
    "A body that is not called JSON makes the server fail",
    caught_by="error.no-5xx",
    stage=Stage.TEXT,
    concerns=_other_media_type,
    seen=("vllm-project/vllm#11171", "vllm-project/vllm#17036"),
)
def media_type_500(draft: Draft) -> None:
    """It takes it for something else."""
    tell_raw(draft, 500, b"Internal Server Error", PLAIN)


@fault(
    "request.media-type-405",
    "A body that is not called JSON is told that its method is wrong",
    caught_by="request.media-type",
    stage=Stage.ANSWER,
    concerns=_other_media_type,
)
def media_type_405(draft: Draft) -> None:
    """The framework found no handler for the two together."""
    tell(draft, 405, "Not allowed.")
    draft.headers.append(("Allow", "POST"))


@fault(
    "request.media-type-detail",
    "A body that is not called JSON is refused in the framework's own form",
    caught_by=("error.envelope-undocumented", "error.one-envelope"),
    stage=Stage.ANSWER,
    concerns=_other_media_type,
    seen=("vllm-project/vllm#17664",),
)
def media_type_detail(draft: Draft) -> None:
    """While every other refusal has the API's."""
    draft.body = {"detail": "Unsupported Media Type"}
