"""A Locust that is imported before it is known what to run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from load_processes import locusts

from streamgauge.load.standby import order, standing_by, without_locust
from streamgauge.redaction import Redactor


def test_it_is_told_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is Locust then, in the folder and with the environment of the order, and knows nothing of its own environment."""
    (tmp_path / "locust.conf").write_text("show-task-ratio = true\n")
    (tmp_path / "mine.py").write_text(
        "import os\nfrom locust import User, task\n"
        "class Mine(User):\n    @task\n    def it(self): pass\n"
        "print(os.environ.get('TOLD'), os.environ.get('UNTOLD'))\n"
    )
    monkeypatch.setenv("UNTOLD", "here")
    log = tmp_path / "log"
    with standing_by() as child:
        child.tell(
            order(["-f", "mine.py"], {"TOLD": "a-secret-of-ours", "HOME": str(tmp_path)}, tmp_path),
            log=log,
            redactor=Redactor(["a-secret-of-ours"]),
        )
        assert child.wait(30) == 0, log.read_text()
    said = log.read_text()
    assert "Task ratio" in said
    assert f"{'*' * 16} None" in said


def test_never_told_it_ends(tmp_path: Path) -> None:
    """With its standard input, as when its parent is killed; it says nothing."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "streamgauge.load.standby"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        cwd=tmp_path,
        env=without_locust(os.environ),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_who_has_no_use_for_it_leaves_nothing_behind() -> None:
    """The end of the block ends it, however far it is, and only once."""
    with standing_by() as child:
        (process,) = locusts(os.getpid())
    assert not process.is_running()
    child.end()


def test_one_that_has_ended_by_itself(tmp_path: Path) -> None:
    """Telling it something is no failure: its exit code says what became of it."""
    with standing_by() as child:
        child.ask_to_end()
        while child.wait(1) is None:
            pass
        child.tell(order([], {}, tmp_path), log=tmp_path / "log", redactor=Redactor())
        assert child.wait(0) == -15


def test_locusts_own_variables_steer_nothing() -> None:
    """They are the user's settings of a Locust of their own."""
    assert without_locust({"LOCUST_USERS": "9", "PATH": "/bin"}) == {"PATH": "/bin"}
