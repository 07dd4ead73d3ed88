"""Fixtures that several test files share."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from streamgauge.reference.launch import running

# Tests assert what happened, not how fast: a busy machine is no defect. And they say the same each time: examples that are
# drawn anew in every run find what is wrong on somebody else's change.
settings.register_profile("anew", deadline=None)
settings.register_profile("streamgauge", settings.get_profile("anew"), derandomize=True)
settings.load_profile("streamgauge")


STEERING = ("STREAMGAUGE_", "LOCUST_")
"""How the names of variables begin that steer us or our load generator."""

BYSTANDERS = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERM", "COLUMNS", "LINES"),
)
"""Variables, in either case, that steer the libraries that fetch and those that print."""


@pytest.fixture(autouse=True, scope="session")
def _no_steering_environment() -> Iterator[None]:
    """Nothing of the developer's own environment steers a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(STEERING) or name.upper() in BYSTANDERS]:
            patch.delenv(name)
        yield


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> Iterator[None]:
    """What tests start can be interrupted, even if they themselves were started in the background, where Ctrl-C is ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def reference() -> Iterator[str]:
    """Base URL of a reference endpoint in a process of its own."""
    with running() as url:
        yield url
