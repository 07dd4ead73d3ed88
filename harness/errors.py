"""
The exceptions that streamgauge raises on purpose.

::

    StreamgaugeError              what is wrong, where, and how to mend it
    ├── UsageError                exit 2: wrong use or configuration
    │   ├── ConfigError           streamgauge.yaml, flags, environment
    │   ├── DocumentError         an OpenAPI document or a profile
    │   └── BundleError           a bundle that cannot be read
    └── CannotTellError           exit 3: no verdict is possible
        └── UnreachableError      the target does not answer

Anything else that escapes is a defect of the harness.
"""

from streamgauge.outcomes import ExitCode

__all__ = [
    "BundleError",
    "CannotTellError",
    "ConfigError",
    "DocumentError",
    "StreamgaugeError",
    "UnreachableError",
    "UsageError",
]


class StreamgaugeError(Exception):
    """
    A problem that the person at the keyboard can mend.

    Args:
        what: one sentence that says what is wrong.
        where: file, line, flag or URL that it is about; empty when `what` already says so.
        hint: what to do about it, or what would have been allowed.
    """

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


class UsageError(StreamgaugeError):
    """Wrong use or configuration: nothing was sent."""


class ConfigError(UsageError):
    """A flag, an environment variable or streamgauge.yaml is wrong."""


class DocumentError(UsageError):
    """An OpenAPI document or a profile cannot be used."""


class BundleError(UsageError):
    """A path does not hold a bundle that this version reads."""


class CannotTellError(StreamgaugeError):
    """The harness cannot come to a verdict."""

    exit_code = ExitCode.CANNOT_TELL


class UnreachableError(CannotTellError):
    """The target does not answer."""
