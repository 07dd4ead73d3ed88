"""What a run stands on, as a user names it: documents, profiles, certificates, proxies. What is wrong is said on one screen."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from commandline import streamgauge
from test_cli import ONE_SCREEN

from streamgauge import catalog
from streamgauge.cli.verdict import profile_told
from streamgauge.config import TargetFlags, resolve_targets

KEY = "sk-recognisable-0123456789"
NOBODY = ("--base-url", "http://127.0.0.1:1", "--model", "m")

PROFILE: dict[str, Any] = {
    "name": "mine",
    "title": "Ours",
    "documents": ["openai-chat"],
    "auth": {"header": "X-Key", "scheme": "raw", "required": True},
    "operations": {},
    "dialect": {"malformed_status": [400], "unknown_model_status": [404], "error_envelope": "any"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A document in one file, the same in two, and documents that nobody can use."""
    text = catalog.document_text("openai-chat")
    (tmp_path / "whole.yaml").write_bytes(text)
    document = yaml.safe_load(text)
    schemas = document["components"].pop("schemas")
    main = yaml.safe_dump(document, sort_keys=False).replace("'#/components/schemas/", "'parts/all.yaml#/")
    (tmp_path / "main.yaml").write_text(main)
    (tmp_path / "lost.yaml").write_text(main.replace("parts/all.yaml", "parts/lost.yaml"))
    (tmp_path / "parts").mkdir()
    inner = yaml.safe_dump(schemas, sort_keys=False).replace("'#/components/schemas/", "'#/")
    (tmp_path / "parts/all.yaml").write_text(inner)
    head = "info: {title: t, version: '1'}\npaths: "
    (tmp_path / "swagger.yaml").write_text(f"swagger: '2.0'\n{head}{{}}\n")
    (tmp_path / "new.yaml").write_text(f"openapi: 3.2.0\n{head}{{}}\n")
    (tmp_path / "pets.yaml").write_text(f"openapi: 3.1.0\n{head}{{/pets: {{get: {{responses: {{}}}}}}}}\n")
    (tmp_path / "page.html").write_text("<html><body>API</body></html>")
    return tmp_path


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    """The folder under a URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "swagger": (("--spec", "swagger.yaml"), "Swagger 2.0 is not supported"),
    "openapi-3.2": (("--spec", "new.yaml"), "OpenAPI 3.2.0 is not supported"),
    "no-operation": (("--spec", "pets.yaml"), "There are: GET /pets"),
    "page": (("--spec", "page.html"), "not an OpenAPI document"),
    "folder": (("--spec", "parts"), "parts: cannot be read: Is a directory"),
    "in-parts": (("--spec", "main.yaml"), "allow it by --remote-refs"),
    "lost-part": (("--spec", "lost.yaml", "--remote-refs"), "cannot be read: No such file or directory"),
    "page-by-url": (("--spec", "{served}/page.html"), "not an OpenAPI document"),
    "wrong-url": (("--spec", "{served}/lost"), "the server says 404"),
    "nobody-at-url": (("--spec", "http://127.0.0.1:1/a.yaml"), "cannot be fetched: "),
    "empty-stdin": (("--spec", "-"), "standard input: is empty"),
    "no-profile": (("--spec", "openai-chat", "--profile", "lost.yml"), "lost.yml: no such profile"),
    "no-certificate": (("--spec", "openai-chat", "--client-cert", "lost.pem"), "lost.pem: cannot be read"),
    "key-alone": (("--spec", "openai-chat", "--client-key", "k.pem"), "a client key without its certificate"),
}


@pytest.mark.parametrize("name", BAD)
def test_sources_that_cannot_be_used(name: str, folder: Path, served: str) -> None:
    """What, where and how to mend it, exit code 2, no traceback, and no key."""
    options, said = BAD[name]
    base = ("--base-url", "https://127.0.0.1:1", "--model", "m") if "client" in " ".join(options) else NOBODY

    done = streamgauge(
        "check", *base, *(each.format(served=served) for each in options), cwd=folder, STREAMGAUGE_API_KEY=KEY
    )

    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= ONE_SCREEN
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    "options",
    [("--spec", "whole.yaml"), ("--spec", "{served}/whole.yaml"), ("--spec", "main.yaml", "--remote-refs")],
    ids=["path", "url", "in-parts"],
)
def test_sources_that_can_be_used(options: tuple[str, ...], folder: Path, served: str) -> None:
    """A path, a URL, and a document in parts that is allowed to be one, come to the same plan."""
    done = streamgauge("check", *NOBODY, *(each.format(served=served) for each in options), "--dry-run", cwd=folder)
    bundled = streamgauge("check", *NOBODY, "--spec", "openai-chat", "--dry-run", cwd=folder)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == bundled.stdout.splitlines()[-1]


WRONG_PROFILES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "misspelt": (
        {"dialect": {"malformed_status": [400], "unknown_model_status": [404], "error_envelop": "any"}},
        ["profile.yaml:15:3: Additional properties are not allowed ('error_envelop'", "'error_envelope' is a required"],
    ),
    "value": ({"features": {"n": "maybe"}}, ["profile.yaml:17:3: 'maybe' is not one of ['supported', 'unsupported']"]),
    "several": (
        {"allowed_statuses": ["405"], "features": {"nn": "supported"}},
        ["'nn' was unexpected", "'405' is not of type 'integer'"],
    ),
}


@pytest.mark.parametrize("name", WRONG_PROFILES)
@pytest.mark.parametrize("command", ["check", "serve"])
def test_wrong_profiles(command: str, name: str, tmp_path: Path) -> None:
    """Everything that is wrong with a profile is said at once, each with line and column, and where the format stands."""
    change, said = WRONG_PROFILES[name]
    (tmp_path / "profile.yaml").write_text(yaml.safe_dump(PROFILE | change, sort_keys=False))
    options = (*NOBODY, "--spec", "openai-chat") if command == "check" else ("--port", "0")

    done = streamgauge(command, *options, "--profile", "profile.yaml", cwd=tmp_path)

    assert done.returncode == 2
    assert [each for each in said if each not in done.stderr] == []
    assert "docs/profiles.md" in done.stderr
    assert len(done.stderr.splitlines()) <= ONE_SCREEN


def test_many_mistakes_of_a_profile_fit_on_a_screen(tmp_path: Path) -> None:
    """A file that is no profile at all is answered by a few lines."""
    (tmp_path / "profile.yaml").write_text("\n".join(f"member{number}: 1" for number in range(50)))

    done = streamgauge("check", *NOBODY, "--spec", "openai-chat", "--profile", "profile.yaml", cwd=tmp_path)

    assert len(done.stderr.splitlines()) <= ONE_SCREEN


@pytest.mark.parametrize(
    ("spec", "profile", "said"),
    [
        ("seekr-chat", None, "judged by the profile seekr, which goes with seekr-chat"),
        ("whole.yaml", None, "judged by the generic profile openai; --profile names another"),
        ("whole.yaml", "seekr", "judged by the profile seekr"),
    ],
    ids=["own", "generic", "named"],
)
def test_profile_is_told_with_its_reason(spec: str, profile: str | None, said: str, folder: Path) -> None:
    """Which profile judges, and whether document, default or user chose it."""
    path = str(folder / spec) if spec.endswith(".yaml") else spec

    (target,) = resolve_targets(TargetFlags(base_url="http://x", spec=(path,), profile=profile), {})

    assert profile_told(target).startswith(said)


@pytest.mark.parametrize(
    ("proxy", "code", "said"),
    [
        ("http://127.0.0.1:1", 3, "The proxy http://127.0.0.1:1 (--proxy-from-env) does not answer"),
        ("http://user:proxy-password@127.0.0.1:1", 3, "The proxy http://127.0.0.1:1 (--proxy-from-env)"),
        ("socks5://127.0.0.1:1", 2, "a proxy of the kind socks5 cannot be used"),
        ("http://127.0.0.1:99999", 2, "HTTP_PROXY: no address of a proxy"),
    ],
    ids=["down", "down-with-password", "socks", "no-address"],
)
def test_proxies_that_cannot_be_used(proxy: str, code: int, said: str, reference: str, tmp_path: Path) -> None:
    """The proxy is blamed, not the target; its password is not shown."""
    done = streamgauge(
        *("check", "--base-url", reference, "--spec", "openai-chat", "--model", "m", "--proxy-from-env"),
        cwd=tmp_path,
        HTTP_PROXY=proxy,
        NO_PROXY="",
    )

    assert done.returncode == code
    assert said in done.stderr
    assert "Nothing listens there" not in done.stderr
    assert "proxy-password" not in done.stderr


def test_example_configuration_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each target of the example is understood, with certificate, proxy and a document in parts."""
    example = Path(__file__).parent.parent / "examples" / "streamgauge.yaml"
    if not example.exists():
        pytest.skip("runs from a checkout only")
    config = yaml.safe_load(example.read_text())
    (tmp_path / "api").mkdir()
    (tmp_path / "api/openapi.yaml").write_bytes(catalog.document_text("openai-chat"))
    monkeypatch.chdir(tmp_path)
    secrets = {"STAGING_KEY": KEY, "GATEWAY_TOKEN": KEY}
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    monkeypatch.setenv("NO_PROXY", "")

    found = {name: resolve_targets(TargetFlags(target=name, config=example), secrets)[0] for name in config["targets"]}

    inside = found["behind-mtls"]
    assert (inside.client_cert, inside.client_key) == ("client.pem", "client-key.pem")
    assert inside.proxy is not None
    assert all(target.proxy is None for name, target in found.items() if name != "behind-mtls")


def test_summary_tells_the_profile(reference: str, tmp_path: Path) -> None:
    """The console says which profile judges; summary.json what it lets pass, and that the target itself was asked."""
    done = streamgauge(
        *("check", "sse.done", "--base-url", reference, "--spec", "openai-chat", "--select", "form", "--output", "out"),
        cwd=tmp_path,
        STREAMGAUGE_API_KEY="streamgauge-reference-key",
    )
    summary = json.loads((tmp_path / "out/summary.json").read_text())

    assert done.returncode == 0, done.stdout + done.stderr
    assert "openai: judged by the profile openai, which goes with openai-chat" in done.stdout
    assert summary["from"] is None
    assert summary["targets"][0]["profile"] == "openai"
    assert any("405" in what for what in summary["targets"][0]["widened"])


def test_key_in_a_profile_is_not_stored(folder: Path) -> None:
    """A profile is no place for a key; one that stands there all the same is kept out of everything that is written."""
    headers = {"X-Team": "search", "X-Gateway-Token": "Bearer token-in-a-profile"}
    (folder / "profile.yaml").write_text(yaml.safe_dump(PROFILE | {"headers": headers}))
    flags = TargetFlags(base_url="http://x", spec=("openai-chat",), profile=str(folder / "profile.yaml"))

    (target,) = resolve_targets(flags, {})

    assert target.redactor.text("token-in-a-profile") == "*" * 18
    assert target.redactor.text("search") == "search"
