"""Certificates on both sides of TLS, on real sockets, and what is said when they do not fit."""

import asyncio
import contextlib
import datetime
import functools
import socket
import ssl
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from scripted import answer, scripted

from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import ConfigError, UnreachableError
from streamgauge.load.client import StreamClient
from streamgauge.load.command import locust_arguments
from streamgauge.load.plan import plan_for
from streamgauge.metrics.record import Outcome
from streamgauge.preflight import preflight
from streamgauge.runs import describe_run
from streamgauge.target import Target
from streamgauge.wire.exchange import Ending, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

QUICK = Limits(concurrency=1, connect=30, idle=30, total=60)


@functools.cache
def contract() -> Contract:
    """The compiled contract of chat completions."""
    return load_contracts(["seekr-chat"])[0]


class Certificates:
    """An authority, and PEM files of certificates that it vouches for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.ca_file = self._file("ca.pem", self.authority.cert_pem.bytes())

    def _file(self, name: str, *parts: bytes) -> str:
        path = self.folder / name
        path.write_bytes(b"".join(parts))
        return str(path)

    def server(
        self, *, client: str | None = None, version: ssl.TLSVersion | None = None, **more: Any
    ) -> ssl.SSLContext:
        """TLS of a server at 127.0.0.1; with `client` it demands a certificate of that authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(more.pop("host", "127.0.0.1"), **more).configure_cert(context)
        if client is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client)
        if version is not None:
            context.maximum_version = version
        return context

    def client(self, name: str = "client") -> tuple[str, str, str]:
        """Files of a client certificate: both in one, the certificate, the key."""
        made = self.authority.issue_cert("client.example")
        certificate, key = made.cert_chain_pems[0].bytes(), made.private_key_pem.bytes()
        return (
            self._file(f"{name}.pem", certificate, key),
            self._file(f"{name}-cert.pem", certificate),
            self._file(f"{name}-key.pem", key),
        )

    def locked(self, key: str) -> str:
        """The key behind a passphrase."""
        private = load_pem_private_key(Path(key).read_bytes(), None)
        locked = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"a passphrase"),
        )
        return self._file("locked.pem", locked)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """One authority for this module."""
    return Certificates(tmp_path_factory.mktemp("tls"))


def target_of(url: str, **more: Any) -> Target:
    """A target at that address."""
    return Target("t", url, contract(), **{"model": "m", "key": "sk-5ecret-0123456789", **more})


def ask(target: Target, times: int = 1) -> list[Exchange]:
    """Send plain requests there."""

    async def run() -> list[Exchange]:
        outgoing = Outgoing(target.url(target.contract.operations[0]), b"{}", target.credential)
        async with Recorder(target, limits=QUICK) as recorder:
            return [await recorder.send(outgoing) for _ in range(times)]

    return asyncio.run(run())


def said(target: Target) -> UnreachableError:
    """What the preflight says about a target that cannot be reached."""
    with pytest.raises(UnreachableError) as caught:
        preflight([target], QUICK)
    assert len(str(caught.value).splitlines()) == 2
    return caught.value


# -- the server's certificate ------------------------------------------------------------------------------------------


def test_named_authority(certificates: Certificates) -> None:
    """`--ca-file` names whom to trust."""
    with scripted(answer(200), tls=certificates.server()) as server:
        (found,) = ask(target_of(server.url, ca_file=certificates.ca_file))
    assert (found.ending, found.status) == (Ending.COMPLETE, 200)


WRONG: dict[str, tuple[dict[str, Any], bool, str]] = {
    "unknown": ({}, False, "--ca-file"),
    "other-host": ({"host": "localhost"}, True, "another host"),
    "expired": ({"not_after": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)}, True, "expired"),
}


@pytest.mark.parametrize(("made", "trusted", "hint"), WRONG.values(), ids=WRONG)
def test_wrong_certificates(certificates: Certificates, made: dict[str, Any], trusted: bool, hint: str) -> None:
    """RFC 9110, section 4.3.4: a certificate that does not hold for the host ends it before the key is sent."""
    if "not_after" in made:
        made = {**made, "not_before": datetime.datetime(2019, 1, 1, tzinfo=datetime.UTC)}
    with scripted(answer(200), tls=certificates.server(**made)) as server:
        target = target_of(server.url, ca_file=certificates.ca_file if trusted else None)
        (found,) = ask(target)
        problem = said(target)
        assert server.requests == []
    assert (found.ending, found.status, found.wire) == (Ending.TLS, 0, b"")
    assert hint in problem.hint


@pytest.mark.parametrize("made", [wrong[0] for wrong in WRONG.values()][:2], ids=["unknown", "other-host"])
def test_insecure_is_said_aloud(certificates: Certificates, made: dict[str, Any]) -> None:
    """`--insecure` takes any certificate; a note and the run's description say so."""
    with scripted(answer(200), tls=certificates.server(**made)) as server:
        target = target_of(server.url, insecure=True)
        ready, notes = preflight([target], QUICK)
    assert any("NOT verified" in note for note in notes)
    assert describe_run("check", ready, seed=0, notes=notes)["targets"][0]["insecure"] is True


# -- the client's certificate ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("how", ["one-file", "two-files"])
def test_client_certificate(certificates: Certificates, version: ssl.TLSVersion, how: str) -> None:
    """A server that demands a certificate gets it, from one file or from two; connections are kept as usual."""
    both, certificate, key = certificates.client()
    given = {"client_cert": both} if how == "one-file" else {"client_cert": certificate, "client_key": key}
    tls = certificates.server(client=certificates.ca_file, version=version)
    with scripted(answer(200), tls=tls) as server:
        target = target_of(server.url, ca_file=certificates.ca_file, **given)
        found = ask(target, 2)
        assert ([each.status for each in found], server.connections) == ([200, 200], 1)
    assert describe_run("check", [target], seed=0)["targets"][0]["client_certificate"] is True


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("shown", ["none", "stranger"])
def test_missing_client_certificate(
    certificates: Certificates, tmp_path: Path, version: ssl.TLSVersion, shown: str
) -> None:
    """Without it, or with one that the server does not know, TLS ends: in 1.3 after the handshake (RFC 8446, section 4.4.2.4)."""
    more = {} if shown == "none" else {"client_cert": Certificates(tmp_path).client()[0]}
    tls = certificates.server(client=certificates.ca_file, version=version)
    with scripted(answer(200), tls=tls) as server:
        target = target_of(server.url, ca_file=certificates.ca_file, **more)
        (found,) = ask(target)
        problem = said(target)
        assert server.requests == []
    assert found.status == 0
    # The server's alert may be lost when its close meets our request.
    assert found.ending in (Ending.TLS, Ending.RESET, Ending.CLOSED)
    assert "certificate" in problem.hint or "(tls:" not in problem.what
    if shown == "none":
        assert "--client-cert" in problem.hint


def test_the_alert_behind_the_handshake_is_tls(certificates: Certificates) -> None:
    """In TLS 1.3 a server says only then that it wanted a certificate; when its words arrive, they are told."""
    tls = certificates.server(client=certificates.ca_file, version=ssl.TLSVersion.TLSv1_3)

    def serve(listener: socket.socket) -> None:
        link, _ = listener.accept()
        secure = tls.wrap_socket(link, server_side=True, do_handshake_on_connect=False)
        with secure, contextlib.suppress(OSError):  # the client may leave by a reset
            with contextlib.suppress(ssl.SSLError):
                secure.do_handshake()
            while socket.socket.recv(secure, 65536):  # past TLS: until the client has gone
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        problem = said(target_of(url, ca_file=certificates.ca_file))
        thread.join(10)
    assert "tls" in problem.what
    assert "--client-cert" in problem.hint


def test_load_shows_the_certificate(certificates: Certificates) -> None:
    """The load's own client uses the target's TLS settings, too."""
    both, _, _ = certificates.client()
    with scripted(answer(200), tls=certificates.server(client=certificates.ca_file)) as server:
        target = target_of(server.url, ca_file=certificates.ca_file, client_cert=both)
        plan = plan_for([target])
        request = plan.workload.request("t-1")
        outcomes = []
        for tls in (target.tls(), replace(target, client_cert=None).tls()):
            client = StreamClient(target.url(plan.operation), target.request_headers(target.credential), tls=tls)
            outcomes.append(client.send(request).record.outcome)
            client.close()
        assert len(server.requests) == 1
    assert outcomes[0] not in (Outcome.TLS, Outcome.RESET)
    assert outcomes[1] in (Outcome.TLS, Outcome.RESET)


def test_load_passes_the_files_on(certificates: Certificates, tmp_path: Path) -> None:
    """The child runs in another folder: it gets whole paths."""
    target = target_of("https://h.example", client_cert="c.pem", client_key="k.pem")
    arguments = locust_arguments(plan_for([target]), tmp_path, tmp_path)
    assert f"--sg-client-cert={Path('c.pem').resolve()}" in arguments
    assert f"--sg-client-key={Path('k.pem').resolve()}" in arguments


def refused(**more: Any) -> ConfigError:
    """What is said about certificate files that cannot be used."""
    with pytest.raises(ConfigError) as caught:
        target_of("https://127.0.0.1:1", **more).tls()
    assert caught.value.__cause__ is None
    return caught.value


def test_unusable_client_certificates(certificates: Certificates, tmp_path: Path) -> None:
    """Files that are missing, empty of certificates or do not belong together are named."""
    both, certificate, key = certificates.client("one")
    _, other, _ = certificates.client("two")
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no certificate")
    assert refused(client_cert="/nowhere/cert.pem").where == "/nowhere/cert.pem"
    assert refused(client_cert=certificate, client_key="/nowhere/key.pem").where == "/nowhere/key.pem"
    assert refused(client_cert=str(tmp_path)).where == str(tmp_path)
    assert refused(client_cert=str(nonsense)).where == str(nonsense)
    assert refused(client_cert=certificate).where == certificate
    assert refused(client_key=key).where == key
    mismatched = refused(client_cert=other, client_key=key)
    assert other in mismatched.where
    assert key in mismatched.where
    assert "does not belong" in mismatched.what
    target_of("https://127.0.0.1:1", client_cert=both).tls()


def test_a_passphrase_is_never_asked_for(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    """A locked key is an error with a hint, and the terminal is left alone."""
    _, certificate, key = certificates.client()
    locked = certificates.locked(key)
    problem = refused(client_cert=certificate, client_key=locked)
    assert problem.where == locked
    assert "passphrase" in problem.what
    assert "openssl" in problem.hint
