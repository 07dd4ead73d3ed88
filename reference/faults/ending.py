"""`ending.*`: how a stream ends that should have gone on, and how one goes on that should have ended."""

from dataclasses import replace

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.fault import Stage, fault, streams
from streamgauge.reference.framing import LAST_CHUNK, chunk
from streamgauge.reference.messages import End, Write

_LATE_S = 12


def _half(writes: list[Write]) -> list[Write]:
    """The head, and the first half of what follows."""
    return writes[: max(len(writes) // 2, 1)]


@fault(
    "ending.cut-between-events",
    "The connection is closed between two events",
    caught_by="ending.not-cut",
    stage=Stage.WIRE,
    concerns=streams,
    seen=("vllm-project/vllm#22341",),
)
def cut_between_events(draft: Draft) -> None:
    """What came is whole; that it is not all shows by the missing last chunk alone."""
    draft.writes, draft.end = _half(list(draft.writes)), End.CLOSE


@fault(
    "ending.cut-in-event",
    "The connection is closed in the middle of an event",
    caught_by="ending.not-cut",
    stage=Stage.WIRE,
    concerns=streams,
)
def cut_in_event(draft: Draft) -> None:
    """And so in the middle of a chunk of the transfer coding."""
    *before, last = list(draft.writes)[: len(_half(list(draft.writes))) + 1]
    draft.writes, draft.end = [*before, replace(last, data=last.data[: len(last.data) // 2])], End.CLOSE


@fault(
    "ending.cut-behind-head",
    "The connection is closed before the first event",
    caught_by="ending.not-cut",
    stage=Stage.WIRE,
    concerns=streams,
)
def cut_behind_head(draft: Draft) -> None:
    """The status was 200 already."""
    draft.writes, draft.end = list(draft.writes)[:1], End.CLOSE


@fault(
    "ending.reset",
    "The connection is reset in the middle of the stream",
    caught_by="ending.no-reset",
    stage=Stage.WIRE,
    concerns=streams,
)
def reset(draft: Draft) -> None:
    """As a process does that dies."""
    draft.writes, draft.end = _half(list(draft.writes)), End.RESET


@fault(
    "ending.hang",
    "The stream falls silent in the middle",
    caught_by="ending.no-hang",
    stage=Stage.WIRE,
    concerns=streams,
)
def hang(draft: Draft) -> None:
    """The connection stays open."""
    draft.writes, draft.end = _half(list(draft.writes)), End.HANG


@fault(
    "ending.hang-behind-finish",
    "Neither [DONE] nor the end follows the finish reason",
    caught_by="ending.no-hang",
    stage=Stage.WIRE,
    concerns=streams,
    seen=("waybarrios/vllm-mlx#101",),
)
def hang_behind_finish(draft: Draft) -> None:
    """Everything has been said, the usage as well."""
    draft.writes, draft.end = [write for write in draft.writes if not _ends(write)], End.HANG


@fault(
    "ending.hang-behind-done",
    "The message never ends behind [DONE]",
    caught_by="ending.no-hang",
    stage=Stage.WIRE,
    concerns=streams,
    seen=("waybarrios/vllm-mlx#101",),
)
def hang_behind_done(draft: Draft) -> None:
    """Clients that read to the end wait for ever."""
    draft.writes, draft.end = [write for write in draft.writes if not write.data.startswith(LAST_CHUNK)], End.HANG


def _ends(write: Write) -> bool:
    """Whether a stream's write brings [DONE] or the last chunk."""
    return b"data: [DONE]" in write.data or write.data.startswith(LAST_CHUNK)


def _late(writes: list[Write], position: int, *, chunked: bool) -> list[Write]:
    """What begins at the position comes late; until then a blank line each second, which says nothing."""
    before, behind = writes[:position], writes[position:]
    start, blank = before[-1].due_ms, chunk(b"\n") if chunked else b"\n"
    waiting = [Write(start + 1000.0 * second, blank) for second in range(1, _LATE_S)]
    return [*before, *waiting, *(replace(write, due_ms=write.due_ms + 1000.0 * _LATE_S) for write in behind)]


@fault(
    "ending.done-late",
    "[DONE] comes long after the finish reason",
    caught_by="ending.prompt",
    stage=Stage.WIRE,
    concerns=streams,
)
def done_late(draft: Draft) -> None:
    """The user has read the answer and still sees it unfinished."""
    writes = list(draft.writes)
    first = next(number for number, write in enumerate(writes) if _ends(write))
    draft.writes = _late(writes, first, chunked=draft.request.http_version != "1.0")


@fault(
    "ending.end-late",
    "The message ends long after [DONE]",
    caught_by="ending.prompt",
    stage=Stage.WIRE,
    concerns=lambda draft: streams(draft) and draft.request.http_version != "1.0",
)
def end_late(draft: Draft) -> None:
    """Clients that read to the end wait."""
    writes = list(draft.writes)
    draft.writes = _late(writes, len(writes) - 1, chunked=True)


@fault(
    "ending.cut-in-order",
    "The message ends as it should, but in the middle of the answer",
    caught_by=("sse.done", "sse.done-undocumented"),
    stage=Stage.ANSWER,
    concerns=streams,
    seen=("vllm-project/vllm#52852",),
)
def cut_in_order(draft: Draft) -> None:
    """Neither a finish reason nor [DONE]; the transfer coding is right."""
    chunks = list(draft.chunks or ())
    draft.chunks = chunks[: max(len(chunks) // 2, 1)]


@fault(
    "ending.done-though-cut",
    "[DONE] follows half an answer",
    caught_by="finish.stream-once",
    stage=Stage.ANSWER,
    concerns=lambda draft: streams(draft) and len(draft.payloads) > 3,
)
def done_though_cut(draft: Draft) -> None:
    """As a proxy does that writes [DONE] whatever became of its upstream."""
    chunks = list(draft.chunks or ())
    draft.chunks = [*chunks[: len(chunks) // 2], chunks[-1]]
