"""Proxies of the environment: only when asked, on real sockets; and redirects, which lead nowhere."""

import asyncio
import base64
import contextlib
import functools
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from scripted import answer, dead_port, request_head, scripted

from streamgauge.config import TargetFlags, resolve_targets
from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import ConfigError, UnreachableError, UsageError
from streamgauge.load.plan import plan_for
from streamgauge.preflight import preflight
from streamgauge.proxy import Proxy, proxy_from_environment
from streamgauge.runs import describe_run
from streamgauge.target import Target
from streamgauge.wire.exchange import Ending, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

KEY = "sk-5ecret-0123456789"
PASSWORD = "pa/ss wörd-0123"
QUOTED = "pa%2Fss%20w%C3%B6rd-0123"
QUICK = Limits(concurrency=1, connect=30, idle=30, total=60)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment that runs the tests names no proxy."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@functools.cache
def contract() -> Contract:
    """The compiled contract of chat completions."""
    return load_contracts(["seekr-chat"])[0]


def target_of(url: str, proxy: str | None = None, **more: Any) -> Target:
    """A target at that address, through that proxy."""
    found = None if proxy is None else Proxy(proxy, more.pop("credentials", ""))
    return Target("t", url, contract(), **{"model": "m", "key": KEY, "proxy": found, **more})


def ask(target: Target, times: int = 1) -> list[Exchange]:
    """Send plain requests there."""

    async def run() -> list[Exchange]:
        outgoing = Outgoing(target.url(target.contract.operations[0]), b"{}", target.credential)
        async with Recorder(target, limits=QUICK) as recorder:
            return [await recorder.send(outgoing) for _ in range(times)]

    return asyncio.run(run())


class Tunnel:
    """A proxy that opens tunnels (RFC 9110, section 9.3.6), or answers CONNECT with what it is told."""

    def __init__(self, refusal: bytes | None) -> None:
        self.requests: list[bytes] = []
        self._refusal = refusal
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._links: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads[0].start()

    def stop(self) -> None:
        """Hang up everywhere."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        for link in self._links:
            link.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                self._links.append(link)
                self._start(self._serve, link)

    def _start(self, job: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=job, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, link: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (part := link.recv(65536)):
                return
            data += part
        self.requests.append(data)
        if self._refusal is not None:
            link.sendall(self._refusal)
            with contextlib.suppress(OSError):  # who is refused may have left already
                link.shutdown(socket.SHUT_WR)
            return
        host, _, port = request_head(data)[0].split(" ")[1].rpartition(":")
        far = socket.create_connection((host, int(port)))
        self._links.append(far)
        link.sendall(b"HTTP/1.1 200 Connection Established\r\nX-Proxy: yes\r\n\r\n")
        self._start(self._copy, far, link)
        self._copy(link, far)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def tunnel(refusal: bytes | None = None) -> Iterator[Tunnel]:
    """Run such a proxy."""
    proxy = Tunnel(refusal)
    try:
        yield proxy
    finally:
        proxy.stop()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """TLS of a server at 127.0.0.1, and the file of its authority."""
    made = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.issue_cert("127.0.0.1").configure_cert(context)
    path: Path = tmp_path_factory.mktemp("tls") / "ca.pem"
    made.cert_pem.write_to_path(str(path))
    return context, str(path)


# -- by default, nothing of it -----------------------------------------------------------------------------------------


def test_the_environment_is_not_consulted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --proxy-from-env the proxy of the environment sees no connection at all."""
    with scripted(answer(500)) as proxy, scripted(answer(200)) as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        (target,) = resolve_targets(TargetFlags(base_url=server.url, spec=("seekr-chat",), model="m"))
        assert [each.status for each in ask(target)] == [200]
        assert (proxy.connections, target.proxy) == (0, None)


# -- plain HTTP: the proxy answers -------------------------------------------------------------------------------------


def test_plain_requests_go_to_the_proxy() -> None:
    """RFC 9112, section 3.2.2: in absolute form, with its credentials; what comes back is the proxy's answer."""
    with scripted(answer(200)) as proxy, scripted(answer(500)) as server:
        target = target_of(server.url, proxy.url, credentials=f"me:{PASSWORD}")
        (found,) = ask(target)
        line, fields = request_head(proxy.requests[0])
        assert server.connections == 0
    assert line == f"POST {server.url}/v1/inference/chat/completions HTTP/1.1"
    basic = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert fields["proxy-authorization"] == f"Basic {basic}"
    assert (found.status, fields["authorization"]) == (200, KEY)
    assert basic not in repr(found)


def test_a_proxy_that_is_down() -> None:
    """It is said that the proxy was asked."""
    with dead_port() as port:
        target = target_of("http://127.0.0.1:1", f"http://127.0.0.1:{port}")
        assert [each.ending for each in ask(target)] == [Ending.REFUSED]
        with pytest.raises(UnreachableError) as caught:
            preflight([target], QUICK)
    assert target.proxy is not None
    assert target.proxy.url in caught.value.hint


# -- https: a tunnel ---------------------------------------------------------------------------------------------------


def test_https_goes_through_a_tunnel(authority: tuple[ssl.SSLContext, str]) -> None:
    """The recorded bytes are the target's: the proxy's answer to CONNECT is not among them, and the proxy sees no key."""
    tls, ca_file = authority
    with tunnel() as proxy, scripted(answer(200), answer(201), tls=tls) as server:
        found = ask(target_of(server.url, proxy.url, credentials=f"me:{PASSWORD}", ca_file=ca_file), 2)
        assert ([each.status for each in found], server.connections) == ([200, 201], 1)
        (connect,) = proxy.requests
    line, fields = request_head(connect)
    assert line == f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1"
    assert fields["proxy-authorization"].startswith("Basic ")
    assert KEY.encode() not in connect
    for each in found:
        assert each.ending is Ending.COMPLETE
        assert each.wire == b"".join(part for part in answer(each.status) if isinstance(part, bytes))
        assert sum(read.size for read in each.reads) == len(each.wire)
        times = [read.time for read in each.reads]
        assert times == sorted(times)
        assert times[0] > 0


REFUSALS = {
    "password": b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
    "forbidden": b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
    "nonsense": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "silence": b"",
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_proxy_that_opens_no_tunnel(refusal: bytes) -> None:
    """Its refusal is never taken for the target's answer."""
    with tunnel(refusal) as proxy:
        target = target_of("https://127.0.0.1:1", proxy.url)
        (found,) = ask(target)
        with pytest.raises(UnreachableError) as caught:
            preflight([target], QUICK)
    assert (found.ending, found.status, found.wire, found.reads) == (Ending.PROXY, 0, b"", ())
    assert "proxy" in caught.value.hint
    assert found.detail


# -- which proxy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({}, "http://h/v1", None),
        ({"HTTP_PROXY": "http://p:3128"}, "http://h/v1", "http://p:3128"),
        ({"http_proxy": "http://p:3128"}, "http://h/v1", "http://p:3128"),
        ({"HTTP_PROXY": "http://p"}, "http://h/v1", "http://p:80"),
        ({"HTTP_PROXY": "p:3128"}, "http://h/v1", "http://p:3128"),
        ({"HTTP_PROXY": "http://[::1]:3128"}, "http://h/v1", "http://[::1]:3128"),
        ({"HTTP_PROXY": "http://p:3128"}, "https://h/v1", None),
        ({"HTTPS_PROXY": "http://p:3128"}, "https://h/v1", "http://p:3128"),
        ({"ALL_PROXY": "http://p:3128"}, "https://h/v1", "http://p:3128"),
        ({"ALL_PROXY": "http://a:1", "HTTP_PROXY": "http://p:3128"}, "http://h/v1", "http://p:3128"),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "h"}, "http://h/v1", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "x, .example"}, "http://a.example:8000/v1", None),
        ({"HTTP_PROXY": "http://p:3128", "NO_PROXY": "h:1"}, "http://h:2/v1", "http://p:3128"),
        ({"HTTP_PROXY": "http://p:3128", "no_proxy": "*"}, "http://h/v1", None),
        ({"HTTP_PROXY": "socks5://s:1", "NO_PROXY": "h"}, "http://h/v1", None),
    ],
)
def test_choice(environment: dict[str, str], url: str, expected: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheme's own variable, else ALL_PROXY, unless NO_PROXY names the host."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = proxy_from_environment(url)
    assert (found.url if found else None) == expected


@pytest.mark.parametrize("user", [f"me:{QUOTED}", f"{QUOTED}:", QUOTED])
@pytest.mark.parametrize("scheme", ["http", "socks5", "socks4a", "https", "ftp"])
def test_credentials_are_not_shown(scheme: str, user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the proxy's repr nor a refusal holds the password; SOCKS and other kinds are refused."""
    monkeypatch.setenv("HTTP_PROXY", f"{scheme}://{user}@127.0.0.1:3128")
    try:
        shown = repr(proxy_from_environment("http://h"))
        assert scheme == "http"
    except ConfigError as problem:
        shown = str(problem)
        assert (problem.where, bool(problem.hint)) == ("HTTP_PROXY", True)
        assert scheme != "http"
    assert PASSWORD not in shown
    assert QUOTED not in shown


@pytest.mark.parametrize("address", ["http://", "http://[::1", "http://h:port", "http://me:secret-0123@"])
def test_addresses_that_are_none(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What names no host is refused, and not repeated."""
    monkeypatch.setenv("ALL_PROXY", address)
    with pytest.raises(ConfigError) as caught:
        proxy_from_environment("http://h")
    assert caught.value.where == "ALL_PROXY"
    assert "secret" not in str(caught.value)


def test_password_is_redacted() -> None:
    """The proxy's credentials are secrets of the target, in each form that is sent."""
    proxy = Proxy("http://p:1", f"me:{PASSWORD}")
    basic = proxy.headers["Proxy-Authorization"].removeprefix("Basic ")
    redactor = Target("t", "http://h", contract(), proxy=proxy).redactor
    for secret in (PASSWORD, QUOTED, basic):
        assert redactor.text(f"<{secret}>") == f"<{'*' * len(secret)}>"


def test_short_passwords_are_redacted_with_their_user() -> None:
    """A short password alone would blot out innocent text; what goes over the wire is hidden all the same."""
    proxy = Proxy("http://p:1", "someone:pw")
    redactor = Target("t", "http://h", contract(), proxy=proxy).redactor
    assert redactor.text("pw someone:pw c29tZW9uZTpwdw==") == f"pw {'*' * 10} {'*' * 16}"


# -- loud, and never under load ----------------------------------------------------------------------------------------


def test_a_proxy_in_effect_is_said_aloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By flag or by file: a note and the run's description name it, without credentials."""
    with scripted(answer(200)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", f"//me:{QUOTED}@"))
        config = tmp_path / "streamgauge.yaml"
        config.write_text(
            "targets: {t: {base_url: http://h.example, spec: seekr-chat, model: m, proxy_from_env: true}}"
        )
        for flags in (
            TargetFlags(base_url="http://h.example", spec=("seekr-chat",), model="m", proxy_from_env=True),
            TargetFlags(target="t", config=config),
        ):
            ready, notes = preflight(resolve_targets(flags), QUICK)
            meta = describe_run("check", ready, seed=0, notes=notes)
            assert meta["targets"][0]["proxy"] == proxy.url
            assert any(proxy.url in note and "PROXY" in note for note in notes)
            assert PASSWORD not in str(meta)
            assert QUOTED not in str(meta)
        assert len(proxy.requests) == 2


def test_load_goes_through_no_proxy() -> None:
    """Its latency would be measured with the target's: refused before anything is sent."""
    with scripted(answer(200)) as proxy:
        with pytest.raises(UsageError) as caught:
            plan_for([target_of("http://h.example", proxy.url)])
        assert proxy.connections == 0
    assert proxy.url in str(caught.value)


# -- redirects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_lead_nowhere(status: int) -> None:
    """RFC 9110, section 15.4: following is the client's choice; the other host sees no connection, hence no key."""
    with scripted(answer(200)) as other, scripted(answer(status, b"", f"Location: {other.url}/v1")) as server:
        (found,) = ask(target_of(server.url))
        with pytest.raises(ConfigError) as caught:
            preflight([target_of(server.url)], QUICK)
        assert other.connections == 0
    assert (found.status, found.ending) == (status, Ending.COMPLETE)
    assert other.url in caught.value.hint
