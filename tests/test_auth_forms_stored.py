"""The key in every form, over real sockets: what arrives, and that no file and no log line holds it."""

import asyncio
import json
import logging
from pathlib import Path
from urllib.parse import quote

import pytest
from commandline import streamgauge
from scripted import answer, scripted
from transcripts import contract_of

from streamgauge.bundle.reader import Bundle
from streamgauge.contract.profile import Auth
from streamgauge.reference import DEFAULT_MODEL
from streamgauge.reference.launch import running
from streamgauge.reports.curl import KEY_VARIABLE
from streamgauge.signing import altered, forms_of, sign
from streamgauge.target import Target
from streamgauge.wire.exchange import Credential, Ending, Exchange
from streamgauge.wire.recorder import Outgoing, Recorder

KEY = "sk/odd+key=~0123-!"
"""With everything that a URL, JSON or a shell writes otherwise."""

BEARER = Auth("Authorization", "Bearer", required=True)
FAULTS = ("auth.any-header-accepted", "auth.query-accepted", "auth.key-echoed", "auth.wrong-key-echoed")


def spellings(key: str) -> set[bytes]:
    """The key as a file may hold it."""
    texts = {key, quote(key, safe=""), quote(key, safe="").lower(), json.dumps(key)[1:-1]}
    return {text.encode() for text in texts}


def test_no_file_of_a_run_holds_the_key(tmp_path: Path) -> None:
    """DESIGN 10, redaction: bundle and reports, of an endpoint that takes the key everywhere and repeats it."""
    with running(key=KEY, profiles=["openai"], faults=FAULTS) as url:
        done = streamgauge(
            *("check", "--base-url", url, "--spec", "openai-chat", "--model", DEFAULT_MODEL, "--output", "out"),
            *("--select", "form.basic", "--select", "refusal.empty", "--select", "auth"),
            cwd=tmp_path,
            **{KEY_VARIABLE: KEY},
        )
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    files |= {Path("stdout"): done.stdout.encode(), Path("stderr"): done.stderr.encode()}
    sent = {exchange.request.credential for exchange in Bundle(tmp_path / "out").exchanges.values()}
    departed = {finding["check"] for finding in Bundle(tmp_path / "out").findings if finding["outcome"] == "warn"}

    assert sent >= {Credential.VALID, *forms_of(BEARER)}
    assert departed >= {"auth.further-place", "auth.query", "auth.key-echoed"}
    assert any(path.suffix == ".html" for path in files)
    for path, data in files.items():
        for spelling in spellings(KEY) | spellings(altered(KEY)):
            assert spelling not in data, path


@pytest.mark.parametrize("credential", [Credential.VALID, *forms_of(BEARER)])
def test_each_form_arrives_and_is_not_logged(credential: Credential, caplog: pytest.LogCaptureFixture) -> None:
    """What the table says goes out, byte for byte and in its order; httpx logs URLs, httpcore what it does."""
    with caplog.at_level(logging.DEBUG), scripted(answer(401)) as server:
        target = Target("t", server.url, contract_of("openai-chat")[0], key=KEY)

        async def run() -> Exchange:
            async with Recorder(target) as recorder:
                return await recorder.send(Outgoing(f"{server.url}/v1/chat/completions", b"{}", credential))

        found = asyncio.run(run())
    line, *fields = server.requests[0].partition(b"\r\n\r\n")[0].split(b"\r\n")
    signature = sign(credential, BEARER, KEY)
    arrived = [(name, value) for name, _, value in (field.partition(b":") for field in fields)]

    assert found.ending is Ending.COMPLETE
    assert line == f"POST /v1/chat/completions{'?' * bool(signature.query)}{signature.query} HTTP/1.1".encode()
    assert [
        (name.decode(), value[1:].decode())
        for name, value in arrived
        if name.lower().endswith((b"auth", b"key", b"ion")) and name.lower() != b"connection"
    ] == list(signature.headers)
    assert len(found.request.headers) == len(fields)
    for spelling in spellings(KEY) | spellings(altered(KEY)):
        assert spelling not in caplog.text.encode()
        assert spelling not in str(found.request).encode()
