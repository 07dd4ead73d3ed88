"""Processes of a load run, which may end at any moment: waited for, found, and seen to be gone."""

import contextlib
import subprocess
import time
from collections.abc import Callable

import psutil

__all__ = ["have_ended", "locusts", "wait_for", "with_all_below"]


def wait_for(condition: Callable[[], bool], what: str, process: subprocess.Popen[str] | None = None) -> None:
    """Wait until something is so, as long as the process lives that is to make it so."""
    until = time.monotonic() + 40
    while not condition():
        if process is not None and process.poll() is not None:
            assert condition(), f"ended before: {what}: {process.communicate()[0]}"
            return
        assert time.monotonic() < until, f"never happened: {what}"
        time.sleep(0.02)


def locusts(parent: int) -> list[psutil.Process]:
    """The Locust that this process has started."""
    return [child for child in psutil.Process(parent).children() if "streamgauge.load.standby" in _command_of(child)]


def _command_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing when it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one, too
        return process.cmdline()
    return []


def with_all_below(processes: list[psutil.Process]) -> list[psutil.Process]:
    """These, and what they have started: workers, and the server of the calibration."""
    return [*processes, *(below for process in processes for below in process.children(recursive=True))]


def have_ended(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs any more."""
    return not any(map(_is_alive, processes))


def _is_alive(process: psutil.Process) -> bool:
    """Whether it runs; it may end at any moment."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
