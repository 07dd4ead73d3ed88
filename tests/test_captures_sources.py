"""What `check --from` looks into: nothing is passed over in silence, nothing counts twice, no key gets through by a side door."""

import json
import os
from pathlib import Path

import pytest
from commandline import streamgauge
from test_captures_check import CHAT, note, right_files, whole, written
from test_captures_har import KEY, entry
from transcripts import contract_of, request, whole_answer

from streamgauge.bundle.reader import Bundle
from streamgauge.captures.gather import Captures, gather, gather_targets
from streamgauge.captures.sources import sources
from streamgauge.config import TargetFlags
from streamgauge.errors import BundleError, UsageError
from streamgauge.reports.model import report_of

CAPTURE = {"a.http": right_files()["chat.http"]}


def gathered(*paths: Path) -> Captures:
    """What is judged of these paths."""
    found = sources(paths)
    return gather(found, gather_targets(found, TargetFlags(spec=(CHAT,)), {}))


def test_path_named_twice_counts_once(tmp_path: Path) -> None:
    """However it is spelt: the same path is the same evidence."""
    folder = written(tmp_path / "c", CAPTURE)

    assert len(gathered(folder, folder / ".." / "c").exchanges) == 1


def test_folders_of_one_name_keep_all_their_files(tmp_path: Path) -> None:
    """The captures of three runs lie in folders of one name, and so do the files in them."""
    folders = [written(tmp_path / run / "captures", CAPTURE) for run in "123"]

    assert [each.probe for each in gathered(*folders).exchanges] == [
        "a.http",
        "captures/a.http",
        "captures-2/a.http",
    ]


def test_cut_off_har_is_told(tmp_path: Path) -> None:
    """A file that calls itself HAR and is none is listed with the reason, not passed over."""
    har = json.dumps({"log": {"entries": [entry()]}})
    folder = written(tmp_path / "c", {**CAPTURE, "cut.har": har[:-9].encode(), "other.json": b"{"})

    left = gathered(folder).not_judged

    assert [(each.capture, each.reason) for each in left] == [("cut.har", "no HAR 1.2 file: was it cut off?")]


def test_log_without_entries_is_no_riddle(tmp_path: Path) -> None:
    """Nothing was captured: that is all there is to say."""
    (tmp_path / "a.har").write_text('{"log": {"entries": []}}')

    with pytest.raises(UsageError, match=r"nothing in a\.har can be judged") as told:
        gathered(tmp_path / "a.har")
    assert told.value.hint == "There is no exchange in 1 file."


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("locked", ["c/sub", "c/sub/text.http"])
def test_what_may_not_be_read_is_named(locked: str, tmp_path: Path) -> None:
    """A verdict on the rest would be one on less than was asked for."""
    written(tmp_path / "c", right_files())
    (tmp_path / locked).chmod(0)
    try:
        with pytest.raises(UsageError, match="cannot be read: Permission denied") as told:
            gathered(tmp_path / "c")
    finally:
        (tmp_path / locked).chmod(0o755)
    assert told.value.where.endswith(locked)


@pytest.mark.parametrize(
    ("damage", "said"),
    [(lambda path: path.write_bytes(path.read_bytes()[:50]), "is cut off"), (Path.unlink, "cannot be read: No such")],
    ids=["cut", "gone"],
)
def test_damaged_bundle_is_no_verdict_on_the_server(damage: object, said: str, tmp_path: Path) -> None:
    """Bytes that a bundle lost are not bytes that the server did not send."""
    written(tmp_path / "c", CAPTURE)
    done = streamgauge("check", "--from", "c", "--spec", CHAT, "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert callable(damage)
    damage(tmp_path / "out" / "blobs-captured.bin")

    with pytest.raises(BundleError, match=said):
        gathered(tmp_path / "out")


def test_no_key_by_a_side_door(tmp_path: Path) -> None:
    """
    Neither in a file's name nor in a member of an answer: nothing that is stored, printed or reported holds the key.

    (The key of the environment has no part in a run that sends nothing.)
    """
    name, member, environment = "sk-in-the-name-0123456789", "key-in-the-answer", "sk-of-the-environment-01"
    answer = {**whole_answer(contract_of(CHAT)[1]), "api_key": member}
    asked = request(contract_of(CHAT)[1])
    other = note({**asked, "password": "word-in-the-request"}, "/v1/other?token=key-in-the-query")
    log = [
        entry(
            headers={"Authorization": f"Bearer {KEY}"},
            posted={"text": json.dumps(asked)},
            content={"text": json.dumps({**answer, "client_secret": "secret-in-the-har"})},
        )
    ]
    files = {
        f"{name}.http": whole(answer) + note(asked),
        f"left-{name}.http": whole(answer) + other,
        "a.har": json.dumps({"log": {"entries": log}}).encode(),
    }
    written(tmp_path / name, files)

    done = streamgauge(
        "check", "--from", name, "--spec", CHAT, "--output", "out", cwd=tmp_path, STREAMGAUGE_API_KEY=environment
    )

    assert len(Bundle(tmp_path / "out").exchanges) == 2, done.stdout + done.stderr
    stored = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    printed = done.stdout.encode() + done.stderr.encode()
    secrets = (name, member, environment, KEY, "word-in-the-request", "key-in-the-query", "secret-in-the-har")
    assert [secret for secret in secrets if secret.encode() in stored + printed] == []


def test_report_speaks_of_captures(tmp_path: Path) -> None:
    """What was judged was captured and not probed, and what cannot be sent again is said with the right reason."""
    wrong = {**whole_answer(contract_of(CHAT)[1]), "choices": 7}
    files = {
        "noted.http": whole(wrong) + note(request(contract_of(CHAT)[1])),
        "mystery.http": whole({"error": "no"}, "404 Not Found"),
    }
    written(tmp_path / "c", files)
    done = streamgauge("check", "--from", "c", "--spec", CHAT, "--output", "out", cwd=tmp_path)
    page = (tmp_path / "out/report.html").read_text()
    junit = (tmp_path / "out/junit.xml").read_text()
    summary = json.loads((tmp_path / "out/summary.json").read_text())

    assert done.returncode == 1
    assert "capture <code>noted.http</code>" in page
    assert "(capture noted.http)" in junit
    assert "The capture does not tell which host was asked" in page
    assert "too long for a curl line" not in page
    assert "STREAMGAUGE_API_KEY)" not in page + junit, "no advice about sending where nothing is sent"
    assert "Captures that were not judged" in page
    assert '<property name="from" value="c" />' in junit
    assert '<property name="profile" value="seekr" />' in junit
    assert (summary["from"], summary["not_judged"]) == (["c"], 1)


def test_what_the_profile_lets_pass_is_said_once(tmp_path: Path) -> None:
    """Two answers that pass for the same reason are one line in the report, and stand in summary.json and JUnit."""
    refusal = {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": None}}
    files = {
        f"{name}.http": whole(refusal, "422 Unprocessable Entity")
        + b"[curl exit 0]\n\n[request] POST /v1/chat/completions {broken\n"
        for name in "ab"
    }
    written(tmp_path / "c", files)
    streamgauge("check", "--from", "c", "--spec", "openai-chat", "--model", "m", "--output", "out", cwd=tmp_path)

    (found,) = report_of(tmp_path / "out").widened

    assert found.check == "request.malformed-status"
    assert found.widened == ("422, accepted by the profile openai as well",)
    assert json.loads((tmp_path / "out/summary.json").read_text())["widened"] == [
        {
            "check": "request.malformed-status",
            "target": "openai",
            "operation": "openai-chat",
            "what": list(found.widened),
        }
    ]
    assert "passed only by the profile: 422" in (tmp_path / "out/junit.xml").read_text()
