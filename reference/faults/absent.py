"""`absent.*`: nulls and defaults that change the answer."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare
from streamgauge.reference.faults.fault import Stage, requests

__all__: list[str] = []

_PENALTIES = ("presence_penalty", "frequency_penalty", "fail_fast")


def _right(draft: Draft) -> bool:
    return requests(draft) and draft.operation is not None and draft.operation.request.accepts(draft.asked)


def _stop_is_null(draft: Draft) -> bool:
    return _right(draft) and "stop" in draft.asked and draft.asked["stop"] is None


def _default_is_given(draft: Draft) -> bool:
    return _right(draft) and any(draft.asked.get(name) in (0, False) and name in draft.asked for name in _PENALTIES)


def _stop_at_spaces(draft: Draft) -> None:
    ask(draft, {**draft.asked, "stop": " "})


declare(
    "absent.null-stop",
    "A null as stop string is read as the white space that it became on the way",
    "absent.null",
    _stop_at_spaces,
    concerns=_stop_is_null,
    stage=Stage.REQUEST,
)
declare(
    "absent.default-stop",
    "Whoever gives a default gets the stop strings of somebody else's",
    "absent.default",
    _stop_at_spaces,
    concerns=_default_is_given,
    stage=Stage.REQUEST,
)
