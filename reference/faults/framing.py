"""`sse.*`: what goes wrong between the payloads of a stream."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Stage, fault, streams


@fault(
    "sse.no-done",
    "The stream ends without [DONE]",
    caught_by=("sse.done", "sse.done-undocumented"),
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("vllm-project/vllm#52852", "perplexityai/api-discussion#209"),
)
def no_done(draft: Draft) -> None:
    """The last payload is all that there is."""
    draft.chunks = [chunk for chunk in draft.chunks or () if chunk.body is not None]
