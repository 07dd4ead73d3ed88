"""One child process in a session of its own, whose output goes redacted into a file, and which never outlives us."""

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:  # a child is started before anything else is imported
    from streamgauge.redaction import Redactor

__all__ = ["Child"]

_LAST_LINES = 20
"""Enough for a usage message, and the noise that an interpreter may make behind it when it ends."""


class Child:
    """
    Runs a command while the block runs.

    In a session of its own: Ctrl-C in the terminal reaches only the parent, which decides what the child is told.

    Args:
        command: program and arguments.
        environment: all of its environment.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader: threading.Thread | None = None
        self._ended = False

    def tell(self, what: bytes, *, log: Path, redactor: "Redactor") -> None:
        """
        Write this to its standard input, end that, and read from now on what it writes itself; once.

        Args:
            what: all of its input.
            log: file for what it writes.
            redactor: applied to every line of that.
        """
        self._reader = threading.Thread(target=self._copy, args=(log, redactor), daemon=True)
        self._reader.start()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stream:  # it may have ended by now
            stream.write(what)

    def wait(self, seconds: float) -> int | None:
        """The exit code, once it has ended within this time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def ask_to_end(self) -> None:
        """
        Ask the child to finish what is in flight and end.

        By SIGTERM: Locust drains on SIGINT as well, but that one surfaces as an exception in whichever greenlet runs.
        """
        self._process.terminate()

    def end(self) -> None:
        """End the child and everything it has started, at once; returns when they have ended."""
        if self._ended:  # its number may be another's by now
            return
        self._ended = True
        with contextlib.suppress(ProcessLookupError):  # all of them have ended by themselves
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._reader is not None:
            self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    @property
    def last_words(self) -> str:
        """The last lines that it wrote."""
        return "\n".join(self._last)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _copy(self, log: Path, redactor: "Redactor") -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines, log.open("w", encoding="utf-8") as file:
            for raw in lines:
                line = redactor.text(raw.decode("utf-8", "replace"))
                file.write(line)
                file.flush()
                if line.strip():
                    self._last.append(line.strip())
