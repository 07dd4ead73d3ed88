"""
Locust as a child process that is imported beforehand: it is told through its standard input what to run.

The parent meanwhile finds out whether there is anything to run at all. A child that is never told ends with its standard input.
"""

import gc
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgauge.load.child import Child

__all__ = ["order", "standing_by", "without_locust"]


def without_locust(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what the user wants of a Locust of their own."""
    return {name: value for name, value in environment.items() if not name.startswith("LOCUST_")}


def standing_by() -> "Child":
    """Start such a child; a context manager, which ends it. It sends nothing before it is told to."""
    from streamgauge.load.child import Child  # the child itself has no use for it

    environment = {**without_locust(os.environ), "PYTHONUNBUFFERED": "1"}
    return Child([sys.executable, "-P", "-m", "streamgauge.load.standby"], environment)


def order(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> bytes:
    """
    What the child is told: secrets travel so, too, and no list of processes shows them.

    Args:
        arguments: of Locust's command line.
        environment: all of its environment.
        folder: its current folder.
    """
    told = {"arguments": [*arguments], "environment": {**environment}, "folder": str(folder)}
    return json.dumps(told).encode() + b"\n"


def main() -> None:
    """Import, wait for the order, and be Locust."""
    gc.disable()  # what is imported stays
    locust = importlib.import_module("locust.main")
    importlib.import_module("streamgauge.load.user")  # the greatest part of our locustfile
    gc.freeze()
    gc.enable()
    line = sys.stdin.buffer.readline()
    if not line:
        return
    told = json.loads(line)
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["environment"])
    sys.argv = ["locust", *told["arguments"]]
    locust.main()


if __name__ == "__main__":
    main()
