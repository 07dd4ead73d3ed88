"""
What many checks reckon, reckoned once.

Over all exchanges of an operation for each case anew, n of them would take n² steps; of one exchange or one request, the
checks ask the same a hundred times.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from streamgauge.conformance.check import Case

__all__ = ["of_exchange", "of_request", "once"]

_About = ParamSpec("_About")
_Result = TypeVar("_Result")


def once(reckon: Callable[Concatenate[Case, _About], _Result]) -> Callable[Concatenate[Case, _About], _Result]:
    """
    Let a function be called once for all cases of an operation, and once more for each set of further arguments.

    It may look at all that these cases share (`others`, `operation`, `contract`, `model`), not at a case's own exchange.
    The further arguments have to be hashable.
    """

    @functools.wraps(reckon)
    def remembering(case: Case, /, *args: _About.args, **kwargs: _About.kwargs) -> _Result:
        memory = case.others.memory
        key = (reckon, args, tuple(kwargs.items()))
        if key not in memory:
            memory[key] = reckon(case, *args, **kwargs)
        result: _Result = memory[key]
        return result

    return remembering


def of_exchange(reckon: Callable[[Case], _Result]) -> Callable[[Case], _Result]:
    """Let a function be called once for an exchange. It may look at nothing but the case's own exchange."""

    @functools.wraps(reckon)
    def remembering(case: Case) -> _Result:
        memory = case.exchange.memory
        if reckon not in memory:
            memory[reckon] = reckon(case)
        result: _Result = memory[reckon]
        return result

    return remembering


def of_request(reckon: Callable[[Case], _Result]) -> Callable[[Case], _Result]:
    """
    Let a function be called once for a request to an operation.

    It may look at what was sent, the operation and the model, not at what came back. What it gives is not to be changed.
    """

    @functools.wraps(reckon)
    def remembering(case: Case) -> _Result:
        memory = case.exchange.request.memory
        key = (reckon, id(case.operation), case.model)
        if key not in memory:
            memory[key] = case.operation, reckon(case)  # as long as the operation is held, nobody else has its id
        result: _Result = memory[key][1]
        return result

    return remembering
