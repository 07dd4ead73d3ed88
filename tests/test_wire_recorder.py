"""The recorder against servers that do as a script says, on real sockets."""

import asyncio
import contextlib
import dataclasses
import email.utils
import functools
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest
from httpcore._backends.anyio import AnyIOStream
from impatience import lose_patience
from scripted import CLOSE, HOLD, RESET, SEEN, Answer, Server, answer, dead_port, request_head, scripted

import streamgauge
from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import ConfigError
from streamgauge.signing import WRONG_KEY
from streamgauge.target import Target
from streamgauge.wire import recorder, tee
from streamgauge.wire.exchange import Credential, Ending, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

KEY = "sk-5ecret-0123456789"
BODY = b'{"stream": true}'
QUICK = Limits(connect=30, idle=30, total=60)
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@functools.cache
def contract(spec: str = "seekr-chat") -> Contract:
    """The compiled contract of a bundled document."""
    return load_contracts([spec])[0]


def target_of(url: str, spec: str = "seekr-chat", **more: Any) -> Target:
    """A target at that address."""
    return Target("t", url, contract(spec), **{"model": "m", "key": KEY, **more})


def post(target: Target, **more: Any) -> Outgoing:
    """A request for the target's first operation."""
    return Outgoing(target.url(target.contract.operations[0]), BODY, **{"credential": target.credential, **more})


def record(
    target: Target, *outgoing: Outgoing, limits: Limits = QUICK, heard: list[Exchange] | None = None
) -> list[Exchange]:
    """Send the requests one after another."""

    async def run() -> list[Exchange]:
        on_exchange = (lambda exchange: None) if heard is None else heard.append
        async with Recorder(target, limits=limits, on_exchange=on_exchange) as recorder:
            return [await recorder.send(each) for each in outgoing]

    return asyncio.run(run())


def ask(url: str, limits: Limits = QUICK, **more: Any) -> Exchange:
    """Send one plain request there."""
    target = target_of(url, **more)
    return record(target, post(target), limits=limits)[0]


def asked(*script: bytes | str, limits: Limits = QUICK, **more: Any) -> Exchange:
    """Send one plain request to a server that answers like this."""
    with scripted(script) as server:
        return ask(server.url, limits=limits, **more)


# -- endings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "ending", "status", "body"),
    [
        (answer(200), Ending.COMPLETE, 200, b"{}"),
        ([CHUNKED_HEAD, b"2\r\n{}\r\n0\r\n\r\n"], Ending.COMPLETE, 200, b"{}"),
        ([b"HTTP/1.1 200 OK\r\n\r\n{}", CLOSE], Ending.COMPLETE, 200, b"{}"),
        ([b"HTTP/1.1 204 No\r\n\r\n"], Ending.COMPLETE, 204, b""),
        ([b"HTTP/1.1 103 Early Hints\r\n\r\n", *answer(200)], Ending.COMPLETE, 200, b"{}"),
        ([CLOSE], Ending.CLOSED, 0, b""),
        ([b"HTTP/1.1 200 OK\r\nContent-", CLOSE], Ending.CLOSED, 0, b""),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", CLOSE], Ending.CLOSED, 200, b"{}"),
        ([CHUNKED_HEAD, b"2\r\n{}\r\n", CLOSE], Ending.CLOSED, 200, b"{}"),
        ([CHUNKED_HEAD + b"2\r\n{}\r\n", SEEN, RESET], Ending.RESET, 200, b"{}"),
        ([RESET], Ending.RESET, 0, b""),
        ([b"SSH-2.0-OpenSSH_9.6\r\n\r\n", CLOSE], Ending.MALFORMED_HTTP, 0, b""),
        ([CHUNKED_HEAD, b"2\r\n{}\r\nnonsense\r\n", CLOSE], Ending.MALFORMED_HTTP, 200, b"{}"),
        ([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", CLOSE], Ending.MALFORMED_HTTP, 0, b""),
    ],
    ids=[
        "complete-length",
        "complete-chunked",
        "complete-by-close",
        "complete-no-body",
        "complete-after-103",
        "closed-at-once",
        "closed-in-head",
        "closed-in-body",
        "closed-between-chunks",
        "reset-in-body",
        "reset-at-once",
        "malformed-no-http",
        "malformed-chunk",
        "malformed-upgrade",
    ],
)
def test_endings(script: Answer, ending: Ending, status: int, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the server does, it is an exchange with the right ending, and what had arrived is kept."""
    with scripted(script) as server:
        note_reads(monkeypatch, server)
        found = ask(server.url)
    assert (found.ending, found.status) == (ending, status)
    assert found.response.body == body
    assert sum(read.size for read in found.reads) == len(found.wire)


def note_reads(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """Tell the server of each read that the recorder notes."""
    real = tee.Read

    def noted(time: float, size: int) -> Any:
        server.noted.release()
        return real(time, size)

    monkeypatch.setattr(tee, "Read", noted)


def test_refused() -> None:
    """A port where nothing listens is `refused`, in the system's own words."""
    with dead_port() as port:
        found = ask(f"http://127.0.0.1:{port}")
    assert (found.ending, found.wire, found.reads) == (Ending.REFUSED, b"", ())
    assert "refused" in found.detail.lower()


def test_unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that nobody knows is `dns`."""

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = ask("http://nobody.invalid")
    assert (found.ending, found.status) == (Ending.DNS, 0)
    assert "not known" in found.detail


def test_idle_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence before and after the head is `timeout-idle`; what had arrived is kept."""
    assert asked(HOLD, limits=Limits(idle=0.1)).ending is Ending.TIMEOUT_IDLE
    lose_patience(monkeypatch)
    found = asked(CHUNKED_HEAD + b"2\r\n{}\r\n", HOLD, limits=Limits(idle=20))
    assert (found.ending, found.status, found.response.complete) == (Ending.TIMEOUT_IDLE, 200, False)
    assert found.response.body == b"{}"


def test_total_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that never ends is cut at the total limit: as soon as its first part is there, the loop's clock is beyond it."""
    real, ahead = tee.Read, 0.0

    def late(time: float, size: int) -> Any:
        nonlocal ahead
        ahead = 3600
        return real(time, size)

    monkeypatch.setattr(tee, "Read", late)
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _: time.monotonic() + ahead)
    found = asked(CHUNKED_HEAD + b"2\r\n{}\r\n", HOLD, limits=Limits(idle=600, total=3600))
    assert (found.ending, found.response.body) == (Ending.TIMEOUT_TOTAL, b"{}")


def test_connect_timeout() -> None:
    """A TLS handshake that is never answered is `timeout-connect`: no connection came about."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = ask(f"https://127.0.0.1:{silent.getsockname()[1]}", limits=Limits(connect=0.3, total=20))
    assert found.ending is Ending.TIMEOUT_CONNECT


def test_tls_to_a_plain_server() -> None:
    """TLS to a server that speaks plain HTTP is `tls`."""
    with socket.create_server(("127.0.0.1", 0)) as plain:
        address = f"https://127.0.0.1:{plain.getsockname()[1]}"
        target = target_of(address)

        async def run() -> Exchange:
            async with Recorder(target, limits=QUICK) as recorder:
                sending = asyncio.create_task(recorder.send(post(target)))
                link, _ = await asyncio.to_thread(plain.accept)
                with link:
                    await asyncio.to_thread(link.recv, 65536)
                    link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    return await sending

        assert asyncio.run(run()).ending is Ending.TLS


# -- the request -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "credential", "expected"),
    [
        ("seekr-chat", Credential.VALID, KEY),
        ("seekr-chat", Credential.WRONG, WRONG_KEY),
        ("seekr-chat", Credential.NONE, None),
        ("deepinfra-completions", Credential.VALID, f"Bearer {KEY}"),
        ("deepinfra-completions", Credential.WRONG, f"Bearer {WRONG_KEY}"),
        ("deepinfra-completions", Credential.NONE, None),
    ],
)
def test_form_of_the_key(spec: str, credential: Credential, expected: str | None) -> None:
    """The key goes out raw or behind its scheme, as the profile says; wrong and absent keys are really so."""
    with scripted(answer(200)) as server:
        target = target_of(server.url, spec)
        (found,) = record(target, post(target, credential=credential))
        _, fields = request_head(server.requests[0])
    assert fields.get("authorization") == expected
    assert found.request.credential is credential


def test_request_bytes() -> None:
    """The request is what was asked for, byte for byte: line, fields, body."""
    with scripted(answer(200)) as server:
        ask(server.url)
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    line, fields = request_head(head)
    assert (line, body) == ("POST /v1/inference/chat/completions HTTP/1.1", BODY)
    assert fields == {
        "host": server.url.removeprefix("http://"),
        "accept": "*/*",
        "connection": "keep-alive",
        "content-type": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"streamgauge/{streamgauge.__version__}",
        "authorization": KEY,
        "content-length": str(len(BODY)),
    }


def test_own_headers_replace_whatever_their_case() -> None:
    """A header of the user's replaces the usual one, however it is spelled; none goes out twice."""
    with scripted(answer(200)) as server:
        target = target_of(server.url, key=None, headers={"USER-agent": "mine", "Content-type": "text/plain"})
        record(target, post(target))
        head = server.requests[0].lower()
    assert head.count(b"user-agent:") == head.count(b"content-type:") == 1
    assert (
        request_head(server.requests[0])[1] | {"user-agent": "mine", "content-type": "text/plain"}
        == (request_head(server.requests[0])[1])
    )


@pytest.mark.parametrize("name", ["content-type", "accept-encoding", "user-agent"])
def test_field_that_is_left_out_is_not_sent(name: str) -> None:
    """Nothing of a client library's own stands in for it."""
    with scripted(answer(200)) as server:
        target = target_of(server.url)
        found = record(target, post(target, headers=((name, None),)))[0]
    assert name not in request_head(server.requests[0])[1]
    assert name not in dict(found.request.headers)


@pytest.mark.parametrize(("method", "body", "length"), [("POST", b"{}", "2"), ("POST", b"", "0"), ("GET", b"", None)])
def test_length_is_told_where_there_may_be_a_body(method: str, body: bytes, length: str | None) -> None:
    """RFC 9110, section 8.6: also of an empty body of a POST, not of a GET; what is stored is what was sent."""
    with scripted(answer(200)) as server:
        target = target_of(server.url)
        outgoing = dataclasses.replace(post(target, method=method), body=body)
        found = record(target, outgoing)[0]
    assert request_head(server.requests[0])[1].get("content-length") == length
    assert dict(found.request.headers).get("content-length") == length


def test_head_and_body_go_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One write for both: a server that reads once sees the whole request, and the clock starts with its first byte."""
    written: list[bytes] = []
    real = AnyIOStream.write

    async def write(self: Any, buffer: bytes, timeout: float | None = None) -> None:
        written.append(buffer)
        await real(self, buffer, timeout)

    monkeypatch.setattr(AnyIOStream, "write", write)
    with scripted(answer(200)) as server:
        ask(server.url)
    assert written == server.requests


def test_key_beyond_ascii() -> None:
    """A key with letters beyond ASCII goes out as UTF-8, and is blotted out when it comes back."""
    key = "schlüssel-žluť"
    with scripted(choose=lambda _, request: answer(401, request.partition(b"uthorization: ")[2][:30])) as server:
        found = ask(server.url, key=key)
        assert f"uthorization: {key}\r\n".encode() in server.requests[0]
    assert key.encode() not in found.wire
    assert key not in str(found.request)


def test_redirects_are_not_followed() -> None:
    """A redirect is an answer like any other: the other place is never asked, and never sees the key."""
    with scripted(answer(200)) as other, scripted(answer(307, b"", f"Location: {other.url}/x")) as server:
        found = ask(server.url)
        assert (found.status, len(server.requests), other.connections) == (307, 1, 0)


@pytest.mark.parametrize("location", ["http://[::1", "http://h:port/", "//", "\xff", "ftp://x y/"])
def test_broken_redirects_are_recorded(location: str) -> None:
    """A Location that is no URL is no reason to stop."""
    found = asked(*answer(302, b"{}", f"Location: {location}"))
    assert (found.status, found.ending) == (302, Ending.COMPLETE)


def test_cookies_are_not_sent_back() -> None:
    """Requests are independent: what a server sets is not sent back."""
    with scripted(answer(200, b"{}", "Set-Cookie: a=b")) as server:
        target = target_of(server.url)
        record(target, post(target), post(target))
        assert [b"cookie" in request.lower() for request in server.requests] == [False, False]


@pytest.mark.parametrize("coding", ["gzip", "br", "nonsense"])
def test_content_codings_stay(coding: str) -> None:
    """A body is kept as it came, whatever coding it claims."""
    found = asked(*answer(200, b"not compressed", f"Content-Encoding: {coding}"))
    assert (found.ending, found.response.body) == (Ending.COMPLETE, b"not compressed")


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target is asked itself, whatever proxy the environment names."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:1")
    assert asked(*answer(200)).status == 200


# -- connections -------------------------------------------------------------------------------------------------------


def test_connections_are_kept() -> None:
    """Requests one after another share a connection."""
    with scripted(answer(200)) as server:
        target = target_of(server.url)
        found = record(target, *[post(target)] * 3)
        assert ([each.status for each in found], server.connections) == ([200] * 3, 1)
    assert len({each.id for each in found}) == 3


@pytest.mark.parametrize("step", [CLOSE, RESET])
def test_stale_connection_is_tried_once_more(step: str) -> None:
    """A kept connection that the server ends under the request's feet says nothing: a fresh one is tried."""
    with scripted(answer(200), [step], answer(201)) as server:
        target = target_of(server.url)
        found = record(target, post(target), post(target))
        assert ([each.status for each in found], server.connections, len(server.requests)) == ([200, 201], 2, 3)


def test_fresh_connection_is_not_tried_again() -> None:
    """A fresh connection that the server ends without an answer is the finding itself."""
    with scripted([CLOSE]) as server:
        assert (ask(server.url).ending, len(server.requests)) == (Ending.CLOSED, 1)


def test_half_an_answer_is_not_tried_again() -> None:
    """A kept connection that breaks inside of the answer is no stale one."""
    with scripted(answer(200), [b"HTTP/1.1 2", CLOSE]) as server:
        target = target_of(server.url)
        found = record(target, post(target), post(target))
        assert (found[1].ending, len(server.requests)) == (Ending.CLOSED, 2)


# -- times -------------------------------------------------------------------------------------------------------------


def test_reads_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read has its time, and they never go back; events come one read after another."""
    event = b"9\r\ndata: 1\n\n\r\n"
    with scripted([CHUNKED_HEAD, SEEN, event, SEEN, event, SEEN, b"0\r\n\r\n"]) as server:
        note_reads(monkeypatch, server)
        before = time.monotonic()
        found = ask(server.url)
        passed = time.monotonic() - before
    times = [read.time for read in found.reads]
    assert [read.size for read in found.reads] == [len(CHUNKED_HEAD), len(event), len(event), 5]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] <= passed
    assert [each.time for each in found.stream.events] == times[1:3]


def wall_clock(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    """Stop the recorder's wall clock at that moment."""

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return moment.astimezone(tz)

    monkeypatch.setattr(recorder, "datetime", Stopped)


def test_started_is_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start is UTC, in ISO 8601, to the millisecond."""
    wall_clock(monkeypatch, datetime(2026, 3, 1, 1, 2, 3, 456_789, tzinfo=timezone(timedelta(hours=2))))
    assert asked(*answer(200)).started == "2026-02-28T23:02:03.456Z"


# -- rate limits -------------------------------------------------------------------------------------------------------


def test_retry_after_is_obeyed() -> None:
    """After 429 the next attempt waits as long as was asked, and every attempt is reported."""
    heard: list[Exchange] = []
    with scripted(answer(429, b"{}", "Retry-After: 1"), answer(200)) as server:
        target = target_of(server.url)
        before = time.monotonic()
        (found,) = record(target, post(target), heard=heard)
        assert time.monotonic() - before >= 1
    assert found.status == 200
    assert [each.status for each in heard] == [429, 200]
    assert heard[0].id != heard[1].id


def test_retry_after_as_a_date_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A date is waited for as well."""
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    wall_clock(monkeypatch, moment - timedelta(seconds=0.3))
    date = email.utils.format_datetime(moment, usegmt=True)
    with scripted(answer(503, b"{}", f"Retry-After: {date}"), answer(200)) as server:
        before = time.monotonic()
        assert ask(server.url).status == 200
        assert time.monotonic() - before >= 0.3


def test_waiting_is_bounded() -> None:
    """Neither the wait nor the number of attempts is the server's choice."""
    heard: list[Exchange] = []
    with scripted(answer(429, b"{}", "Retry-After: 86400")) as server:
        target = target_of(server.url)
        limits = dataclasses.replace(QUICK, rate_limit_wait=0.01, rate_limit_attempts=3)
        (found,) = record(target, post(target), limits=limits, heard=heard)
        assert len(server.requests) == 3
    assert (found.status, len(heard)) == (429, 3)


def test_503_without_retry_after_is_not_repeated() -> None:
    """503 alone is an answer."""
    with scripted(answer(503)) as server:
        assert (ask(server.url).status, len(server.requests)) == (503, 1)


# -- the key stays out -------------------------------------------------------------------------------------------------


def test_echoed_key_is_blotted_out() -> None:
    """A key that comes back in head, body or between chunks is blotted out at the same length, and the spans say where."""
    secret = KEY.encode()
    split = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (7, secret[:7], len(secret) - 7, secret[7:])
    wire = CHUNKED_HEAD.replace(b"\r\n\r\n", b"\r\nX-Echo: " + secret + b"\r\n\r\n")
    wire += b"%x\r\n%b\r\n" % (len(secret) + 2, b"<" + secret + b">") + split
    found = asked(wire)
    assert found.response.complete
    assert secret not in found.wire
    assert secret not in found.response.body
    assert len(found.wire) == len(wire) == sum(read.size for read in found.reads)
    assert [len(found.wire[start:end].replace(b"\r\nd\r\n", b"")) for start, end in found.redacted] == [len(secret)] * 3
    outside = list(found.wire)
    for start, end in found.redacted:
        outside[start:end] = wire[start:end]
    assert bytes(outside) == wire


def test_key_in_the_request_is_blotted_out() -> None:
    """URL, fields and body of the stored request hold filler where the key was; what was sent held the key."""
    with scripted(answer(200)) as server:
        target = target_of(server.url, headers={"X-Api-Token": "Token tok-0123456789"})
        outgoing = dataclasses.replace(
            post(target), url=f"{server.url}/?k={KEY}", body=json.dumps({"k": KEY, "t": "tok-0123456789"}).encode()
        )
        (found,) = record(target, outgoing)
        assert server.requests[0].count(KEY.encode()) == 3
    for secret in (KEY, "tok-0123456789"):
        assert secret not in repr(found)
    assert len(found.request.body) == len(outgoing.body)
    assert found.request.url == f"{server.url}/?k={'*' * len(KEY)}"


def test_short_key_is_refused_before_anything_is_sent() -> None:
    """A key of seven characters cannot be kept out of bundles: nothing is sent."""
    with scripted(answer(200)) as server:
        with pytest.raises(ConfigError):
            ask(server.url, key="1234567")
        assert server.connections == 0


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody vouches for, with its key, in one PEM file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the openssl command is not installed")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *(
                openssl,
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ),
            *("-subj", "/CN=streamgauge test", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", folder / "key.pem", "-out", folder / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return folder


@contextlib.contextmanager
def tls_server(certificate: Path) -> Iterator[Server]:
    """A server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with scripted(answer(200), tls=context) as server:
        yield server


def test_unknown_certificate_is_refused(certificate: Path) -> None:
    """A certificate that nobody vouches for is `tls`, and no request goes out."""
    with tls_server(certificate) as server:
        found = ask(server.url)
        assert (found.ending, server.requests) == (Ending.TLS, [])
    assert "certificate" in found.detail


@pytest.mark.parametrize("how", ["ca-file", "insecure"])
def test_certificate_can_be_trusted(certificate: Path, how: str) -> None:
    """The certificate is accepted when it is named as the authority, or when verification is off."""
    more = {"ca_file": str(certificate / "cert.pem")} if how == "ca-file" else {"insecure": True}
    with tls_server(certificate) as server:
        found = ask(server.url, **more)
    assert (found.ending, found.status, found.response.body) == (Ending.COMPLETE, 200, b"{}")


def test_certificate_for_another_host_is_refused(certificate: Path) -> None:
    """A trusted certificate for another name is refused."""
    with tls_server(certificate) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        assert ask(url, ca_file=str(certificate / "cert.pem")).ending is Ending.TLS


def test_unusable_ca_file(tmp_path: Path) -> None:
    """A CA file that is missing or holds no certificate is a configuration error that names it."""
    (tmp_path / "x.pem").write_text("no certificate")
    for name in ("x.pem", "missing.pem"):
        with pytest.raises(ConfigError) as caught:
            ask("https://127.0.0.1:1", ca_file=str(tmp_path / name))
        assert name in caught.value.where
