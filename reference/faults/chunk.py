"""`chunk.*`: what goes wrong in the payloads of a stream."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Stage, chat_streams, fault


@fault(
    "chunk.role-missing",
    "No delta names a role",
    caught_by="chunk.role-first",
    stage=Stage.ANSWER,
    concerns=chat_streams,
    seen=("sgl-project/sglang#18335",),
)
def role_missing(draft: Draft) -> None:
    """Neither the first delta nor any other."""
    for choice in draft.choices:
        choice["delta"].pop("role", None)
