"""What checks reckon over all exchanges of an operation, reckoned once: for each case anew, n of them would take n² steps."""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from streamgauge.conformance.check import Case

__all__ = ["once"]

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
