"""Runs the suite in this process, with nothing of the user's own pytest configuration."""

import contextlib
import gc
import gzip
import json
import os
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from importlib.resources import as_file, files
from pathlib import Path

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

from streamgauge.bundle.reader import Bundle
from streamgauge.conformance import plugin
from streamgauge.conformance.session import Settings
from streamgauge.errors import CannotTellError

__all__ = ["judge_all", "throwaway_hypothesis"]


_OBJECTS_BETWEEN_COLLECTIONS = 50_000


class _Injector:
    """Hands the settings over and takes the terminal away from pytest: the command line has a view of its own."""

    def __init__(self, settings: Settings, on_item: Callable[[], None]) -> None:
        self._settings = settings
        self._on_item = on_item

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[plugin.SETTINGS] = self._settings
        config.pluginmanager.register(plugin.FindingsKeeper(self._settings), "streamgauge-findings")
        config.pluginmanager.unregister(name="terminalreporter")

    def pytest_runtest_logfinish(self) -> None:
        self._on_item()


@contextlib.contextmanager
def throwaway_hypothesis() -> Iterator[None]:
    """Keep Hypothesis, which Schemathesis generates with, from leaving a folder of its own in the user's."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-") as home:
        _write_encodable(Path(home))
        set_hypothesis_home_dir(home)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


def _write_encodable(home: Path) -> None:
    """
    Tell Hypothesis which characters UTF-8 can encode: all but surrogates.

    To find that out it would encode each of them, which takes a second in every new folder. The file is its own cache; a version
    that names it otherwise finds out by itself.
    """
    table = home / "unicode_data" / unicodedata.unidata_version / "codec-v2-utf-8.json.gz"
    table.parent.mkdir(parents=True)
    encodable, not_as_before = [(0, 0xD7FF), (0xE000, sys.maxunicode)], list[tuple[int, int]]()
    table.write_bytes(gzip.compress(json.dumps([encodable, not_as_before]).encode()))


@contextlib.contextmanager
def _own_environment() -> Iterator[None]:
    """No options or plugins from the user's environment."""
    saved = {name: os.environ.pop(name, None) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    saved["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        for name, value in saved.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """Most that judging makes is needed to its end; looking for garbage at Python's usual pace is a sixth of its time."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def judge_all(settings: Settings, on_item: Callable[[], None] = lambda: None) -> None:
    """
    Judge what the bundle holds; findings and gate are written into it, where the verdict is.

    A Ctrl-C ends the judging and is noted in the settings.

    Args:
        settings: of a run whose exchanges are recorded.
        on_item: called after each test.

    Raises:
        CannotTellError: the suite itself broke: not every check came to a finding.
    """
    with as_file(files("streamgauge.conformance.suite")) as suite, _own_environment(), _seldom_collected():
        arguments = [
            f"{suite / 'test_contract.py'}",
            f"--config-file={suite / 'pytest.ini'}",
            f"--rootdir={suite}",
            "--noconftest",
            "--import-mode=importlib",
            "-pno:cacheprovider",
            "-pno:unraisableexception",
            "-pno:threadexception",
            "-pstreamgauge.conformance.plugin",
        ]
        code = pytest.main(arguments, plugins=[_Injector(settings, on_item)])
    if code == pytest.ExitCode.INTERRUPTED:
        settings.interrupted = True
        return
    found, wanted = len(Bundle(settings.directory).findings), len(settings.items())
    if found != wanted:
        what = f"the suite broke: {found} of {wanted} findings, pytest's exit code {int(code)}"
        raise CannotTellError(what, where=str(settings.directory))
