"""`check --from` and `--sg-from`: from stored bytes to a bundle, a report and an exit code, with nothing sent."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import environment, streamgauge
from jsonschema import Draft202012Validator
from test_captures_har import KEY, entry
from transcripts import CREATED, MODEL, chunks, contract_of, request, sse, stream_request, whole_answer

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle, read_lines
from streamgauge.captures.gather import gather, gather_targets
from streamgauge.captures.sources import sources
from streamgauge.config import TargetFlags
from streamgauge.errors import UsageError
from streamgauge.reference import DEFAULT_KEY
from streamgauge.wire.exchange import Evidence

CHAT, COMPLETIONS = "seekr-chat", "seekr-completions"
DATE = "date: Wed, 18 Nov 2026 13:46:40 GMT\r\n"


def note(body: Any, path: str = "/v1/chat/completions", code: int = 0) -> bytes:
    """How the transfer ended, and what was asked."""
    return f"[curl exit {code}]\n\n[request] POST {path} {json.dumps(body)}\n".encode()


def whole(value: Any, status: str = "200 OK") -> bytes:
    """A JSON answer without a note."""
    body = json.dumps(value).encode()
    return (
        f"HTTP/1.1 {status}\r\n{DATE}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )


def stream(body: bytes) -> bytes:
    """An event stream without a note."""
    return (
        f"HTTP/1.1 200 OK\r\n{DATE}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".encode()
        + body
    )


def right_files() -> dict[str, bytes]:
    """Right answers of both operations, with and without their requests."""
    chat, text = contract_of(CHAT)[1], contract_of(COMPLETIONS)[1]
    return {
        "chat.http": whole(whole_answer(chat)) + note(request(chat)),
        "chat-stream.http": stream(sse(chunks(chat))) + note(stream_request(chat)),
        "sub/text.http": whole(whole_answer(text)) + note(request(text), "/v1/completions"),
        "unknown-chat.http": whole(whole_answer(chat)),
        "unknown-stream.txt": stream(sse(chunks(chat))),
        "unknown-text": whole(whole_answer(text)),
        "no-key.http": whole({"error": {"message": "no", "type": "t", "code": 401}}, "401 Unauthorized")
        + note(request(chat)),
        "models.http": whole({"object": "list", "data": []}) + b"[curl exit 0]\n\n[request] GET /v1/models\n",
        "mystery.http": whole({"error": "no"}, "404 Not Found"),
        "notes.md": b"nothing of interest",
        ".hidden": whole(whole_answer(chat)),
    }


def written(folder: Path, files: dict[str, bytes]) -> Path:
    """The files, in a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def check(*arguments: str, cwd: Path) -> tuple[subprocess.CompletedProcess[str], Bundle]:
    """`check --from` into the folder `out`."""
    done = streamgauge("check", *arguments, "--output", "out", cwd=cwd)
    assert (cwd / "out").is_dir(), done.stdout + done.stderr
    return done, Bundle(cwd / "out")


def outcomes(bundle: Bundle, operation: str = CHAT) -> dict[str, str]:
    """Check → outcome."""
    return {each["check"]: each["outcome"] for each in bundle.findings if each["operation"] == operation}


def test_right_captures_pass(tmp_path: Path) -> None:
    """Right answers draw no failure; what cannot be told is counted, and the report says that nothing was sent."""
    written(tmp_path / "captures", right_files())
    done, bundle = check("--from", "captures", "--spec", CHAT, "--spec", COMPLETIONS, cwd=tmp_path)
    report = (tmp_path / "out" / "report.html").read_text()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "judging 7 exchanges from 9 files; nothing is sent" in done.stdout
    assert {row["probe"] for row in bundle.meta["not_run"]} == {"models.http", "mystery.http"}
    assert bundle.meta["from"] == ["captures"]
    assert bundle.meta["targets"][0]["model"] == MODEL
    assert "nothing was sent" in report
    assert str(tmp_path) not in report + json.dumps(bundle.meta)
    told = outcomes(bundle)
    assert {
        name: told[name] for name in ("sse.done", "chunk.schema", "response.schema", "usage.pair", "http.valid")
    } == {
        "sse.done": "pass",
        "chunk.schema": "pass",
        "response.schema": "pass",
        "usage.pair": "pass",
        "http.valid": "not-run",
    }
    schema = catalog.schema("bundle")
    for name, lines in (
        ("meta", [bundle.meta]),
        ("exchange", read_lines(tmp_path / "out" / "exchanges-captured.jsonl")),
    ):
        validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})
        for line in lines:
            validator.validate(line)


WRONG: dict[str, tuple[bytes, str]] = {
    "cut-stream": (stream(b"data: {") + note(stream_request(contract_of(CHAT)[1]), code=18), "ending.not-cut"),
    "cut-answer": (
        whole(whole_answer(contract_of(CHAT)[1]))[:-5] + note(request(contract_of(CHAT)[1]), code=18),
        "http.complete",
    ),
    "no-done": (
        stream(sse(chunks(contract_of(CHAT)[1]), done=False)) + note(stream_request(contract_of(CHAT)[1])),
        "sse.done",
    ),
    "broken-event": (stream(b"data: {oops\n\n" + sse(chunks(contract_of(CHAT)[1]))), "sse.data-json"),
    "failed-stream": (stream(b'data: {"error": {"message": "busy"}}\n\ndata: [DONE]\n\n'), "error.not-in-stream"),
    "500": (whole({}, "500 Oops") + note(request(contract_of(CHAT)[1])), "error.no-5xx"),
    "no-answer": (note(request(contract_of(CHAT)[1]), code=52), "http.answered"),
    "model": (
        whole(whole_answer(contract_of(CHAT)[1])) + note(request(contract_of(CHAT)[1], model=...)),
        "request.model-missing",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_captures_fail(name: str, tmp_path: Path) -> None:
    """Each check that captures can show finds its departure."""
    data, expected = WRONG[name]
    written(tmp_path / "captures", {"a.http": data})
    done, bundle = check("--from", "captures", "--spec", CHAT, "--model", MODEL, cwd=tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    assert outcomes(bundle)[expected] == "fail"


def test_offsets_point_into_the_captured_body(tmp_path: Path) -> None:
    """The span of a finding holds the offending bytes, though the head promises chunks."""
    body = b": ping\n\ndata: {oops\n\ndata: [DONE]\n\n"
    written(tmp_path / "captures", {"a.http": stream(body)})
    _, bundle = check("--from", "captures", "--spec", CHAT, cwd=tmp_path)
    example = next(each for each in bundle.findings if each["check"] == "sse.data-json")["examples"][0]
    start, end = example["span"]

    assert bundle.exchanges[example["exchange"]].response.body[start:end] == b"data: {oops\n\n"
    report = (tmp_path / "out" / "report.html").read_text()
    assert "{oops" in report
    assert "curl -sS" not in report


def test_bundle_is_judged_again_alike(reference: str, tmp_path: Path) -> None:
    """A fresh bundle, judged again, gives the same findings and the same exchanges: the new one stands alone."""
    first = streamgauge(
        *("check", "--base-url", reference, "--spec", CHAT, "--select", "form", "--select", "refusal"),
        *("--output", "first"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY=DEFAULT_KEY,
    )
    again, bundle = check("--from", "first", cwd=tmp_path)
    fresh = Bundle(tmp_path / "first")

    assert bundle.findings == fresh.findings
    assert bundle.exchanges == fresh.exchanges
    assert bundle.gate == fresh.gate
    assert again.returncode == first.returncode
    assert bundle.meta["targets"] == fresh.meta["targets"]


def test_bundle_of_an_unknown_document_asks_for_it(tmp_path: Path) -> None:
    """A document that is not ours, or has changed, has to be named."""
    written(tmp_path / "captures", {"a.http": whole(whole_answer(contract_of(CHAT)[1]))})
    check("--from", "captures", "--spec", CHAT, cwd=tmp_path)
    for document, said in (("own", "a document of its own"), (CHAT, "another version")):
        meta = json.loads((tmp_path / "out" / "meta.json").read_text())
        meta["targets"][0]["operations"][0].update(document=document, document_sha256="0" * 64)
        (tmp_path / "out" / "meta.json").write_text(json.dumps(meta))
        done = streamgauge("check", "--from", "out", "--output", "again", cwd=tmp_path)

        assert done.returncode == 2
        assert said in done.stderr
        assert "--spec" in done.stderr
    assert streamgauge("check", "--from", "out", "--spec", CHAT, "--output", "again", cwd=tmp_path).returncode == 0


def test_har_is_judged_without_its_secrets(tmp_path: Path) -> None:
    """Of a browser's log only the API's entries are judged; no key of it is in any file that is written."""
    answer = {**whole_answer(contract_of(CHAT)[1]), "echo": KEY}
    log = [
        entry(
            headers={"Authorization": KEY},
            posted={"text": json.dumps(request(contract_of(CHAT)[1]))},
            content={"text": json.dumps(answer)},
        ),
        entry(url="https://api.example/logo.png", method="GET", headers={"cookie": "sid=session-cookie-value"}),
        entry(method="OPTIONS"),
    ]
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": log}}))
    _, bundle = check("--from", "a.har", "--spec", CHAT, cwd=tmp_path)

    assert outcomes(bundle)["auth.key-echoed"] == "warn"
    assert outcomes(bundle)["response.schema"] == "pass"
    assert len(bundle.exchanges) == 1
    assert bundle.meta["targets"][0]["base_url"] == "https://api.example"
    for file in (tmp_path / "out").iterdir():
        assert KEY.encode() not in file.read_bytes()
        assert b"session-cookie" not in file.read_bytes()


BAD: dict[str, tuple[list[str], str]] = {
    "target": (["--from", "c", "--spec", CHAT, "--base-url", "http://x"], "does not go with --base-url"),
    "sending": (["--from", "c", "--spec", CHAT, "--select", "form", "--dry-run"], "--select, --dry-run"),
    "missing": (["--from", "nowhere", "--spec", CHAT], "no such file or directory"),
    "empty": (["--from", "empty", "--spec", CHAT], "nothing that can be judged"),
    "no-document": (["--from", "c"], "no document named"),
    "none": (["--from", "c/models.http", "--spec", CHAT], "can be judged"),
    "unknown-check": (["nonsense", "--from", "c", "--spec", CHAT], "no check is called"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_use_is_said_on_one_screen(name: str, tmp_path: Path) -> None:
    """Exit code 2, what is wrong, and no traceback."""
    written(tmp_path / "c", right_files())
    written(tmp_path / "empty", {"a.md": b"x"})
    arguments, said = BAD[name]
    done = streamgauge("check", *arguments, cwd=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 12


def test_path_that_is_named_leaves_no_other(tmp_path: Path) -> None:
    """An operation whose path the user gave is at that path only, however another one ends."""
    chat = contract_of(CHAT)[1]
    answer = whole(whole_answer(chat))
    written(tmp_path, {"a.http": answer + note(request(chat)), "b.http": answer + note(request(chat), "/llm/chat")})
    found = sources([tmp_path])
    gathered = gather(found, gather_targets(found, TargetFlags(spec=(CHAT,), path=("/llm/chat",)), {}))

    assert [each.probe for each in gathered.exchanges] == ["b.http"]
    assert [(each.capture, each.reason) for each in gathered.not_judged] == [
        ("a.http", "its path is none of the operations'")
    ]


def test_ambiguous_path_asks(tmp_path: Path) -> None:
    """Two chat operations in one target: `--path` says which path is whose."""
    text = catalog.document_text(CHAT)
    (tmp_path / "one.yaml").write_bytes(text)
    (tmp_path / "two.yaml").write_bytes(text)
    written(tmp_path / "c", {"a.http": right_files()["chat.http"]})
    found = sources([tmp_path / "c"])
    specs = (str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml"))
    flags = TargetFlags(spec=specs)

    with pytest.raises(UsageError, match="2 operations: one, two") as told:
        gather(found, gather_targets(found, flags, {}))
    assert "--path one=/v1/chat/completions" in told.value.hint
    flags = TargetFlags(spec=specs, path=("two=/v1/chat/completions",))
    assert [each.operation for each in gather(found, gather_targets(found, flags, {})).exchanges] == ["two"]


def test_two_targets_judge_the_same_captures(tmp_path: Path) -> None:
    """Documents of two profiles are two targets: each sees every capture."""
    written(tmp_path / "c", {"a.http": right_files()["sub/text.http"]})
    found = sources([tmp_path / "c"])
    flags = TargetFlags(spec=(COMPLETIONS, "deepinfra-completions"))
    gathered = gather(found, gather_targets(found, flags, {}))

    assert {(each.target, each.operation) for each in gathered.exchanges} == {
        ("seekr", COMPLETIONS),
        ("deepinfra", "deepinfra-completions"),
    }
    assert len({each.id for each in gathered.exchanges}) == 2


def test_environment_names_no_target(tmp_path: Path) -> None:
    """The environment may name the document; a base URL there is nobody to send to."""
    written(tmp_path / "c", {"a.http": right_files()["chat.http"]})
    found = sources([tmp_path / "c"])
    variables = {"STREAMGAUGE_SPEC": CHAT, "STREAMGAUGE_BASE_URL": "http://127.0.0.1:1", "STREAMGAUGE_API_KEY": KEY}
    (target,) = gather_targets(found, TargetFlags(), variables)

    assert (target.base_url, target.key) == ("", None)


def test_captured_evidence(tmp_path: Path) -> None:
    """What an exchange of curl's output holds is stored with it."""
    written(tmp_path / "c", {"a.http": right_files()["chat.http"]})
    found = sources([tmp_path / "c"])
    (each,) = gather(found, gather_targets(found, TargetFlags(spec=(CHAT,)), {})).exchanges

    assert each.holds == {Evidence.BYTES, Evidence.ENDING, Evidence.REQUEST, Evidence.CLOCK}
    assert each.json.value["created"] == CREATED


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "xdist"])
def test_plain_pytest_judges_captures(workers: tuple[str, ...], tmp_path: Path) -> None:
    """`--sg-from` is the same in a team's own test run, also with workers."""
    written(tmp_path / "c", right_files())
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "streamgauge.conformance.suite"]
    done = subprocess.run(
        [*command, "--sg-from", "c", "--sg-spec", CHAT, "--sg-output", "out", *workers],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=110,
    )
    bundle = Bundle(tmp_path / "out")

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(bundle.findings) == len(bundle.checks)
    assert bundle.meta["from"] == ["c"]
