"""Runs the command line as a user does: in a process of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["environment", "passed", "streamgauge"]


def environment(**changes: str) -> dict[str, str]:
    """The tests' environment without anything that would steer streamgauge or pytest, and with the changes."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STREAMGAUGE_", "PYTEST_", "LOCUST_")) and name.upper() not in ("NO_COLOR", "COLUMNS")
    }
    return {**kept, "COLUMNS": "200", **changes}


def streamgauge(*arguments: str, cwd: Path, timeout: float = 110, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "streamgauge", *arguments],
        cwd=cwd,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )


def passed(done: subprocess.CompletedProcess[str], bundle: Path) -> bool:
    """
    Whether a run with a load passed: exit 0, or exit 3 for nothing but that this machine was too slow to time the load.

    How busy the machine is that runs the tests is no concern of theirs.
    """
    if done.returncode == 0:
        return True
    slow = re.findall(r"client: too slow to know: (.*)", done.stdout)
    reasons = json.loads((bundle / "gate.json").read_bytes())["reasons"]
    return done.returncode == 3 and reasons == [f"load: {'; '.join(slow)}"]
