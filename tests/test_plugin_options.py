"""The plugin's options arrive where those of the command line do, and its messages use its own names for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commandline import environment
from scripted import answer, scripted
from test_captures_check import right_files, written
from transcripts import contract_of, whole_answer

from streamgauge import catalog

CHAT = "openai-chat"
NOBODY = ("--sg-base-url", "http://127.0.0.1:1", "--sg-model", "m")


def suite(*arguments: str, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """The suite under plain pytest."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "streamgauge.conformance.suite"]
    return subprocess.run(
        [*command, *arguments], cwd=cwd, env=environment(**changes), capture_output=True, text=True, timeout=110
    )


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no-document": (NOBODY, "--sg-spec with one of"),
    "client-cert": (
        ("--sg-base-url", "https://127.0.0.1:1", "--sg-model", "m", "--sg-spec", CHAT, "--sg-client-cert", "lost.pem"),
        "lost.pem: cannot be read",
    ),
    "client-key": (
        ("--sg-base-url", "https://127.0.0.1:1", "--sg-model", "m", "--sg-spec", CHAT, "--sg-client-key", "lost.pem"),
        "Give --sg-client-cert, too.",
    ),
    "proxy": ((*NOBODY, "--sg-spec", CHAT, "--sg-proxy-from-env"), "HTTP_PROXY: a proxy of the kind socks5"),
    "parts": ((*NOBODY, "--sg-spec", "main.yaml"), "allow it by --sg-remote-refs"),
    "from-and-url": (("--sg-from=c", "--sg-spec", CHAT, *NOBODY[:2]), "--sg-from sends nothing"),
    "from-and-select": (("--sg-from=c", "--sg-spec", CHAT, "--sg-select", "form"), "does not go with --sg-select"),
    "from-and-budget": (
        ("--sg-from=c", "--sg-spec", CHAT, "--sg-budget-tokens", "0", "--sg-concurrency", "1"),
        "--sg-budget-tokens, --sg-concurrency",
    ),
    "selects-nothing": (
        (*NOBODY, "--sg-spec", CHAT, "--sg-select", "nosuch"),
        "--sg-select nosuch: these targets have no",
    ),
    "from-nowhere": (("--sg-from=lost", "--sg-spec", CHAT), "--sg-from lost: there is no such file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_use_ends_the_session(name: str, tmp_path: Path) -> None:
    """Exit code 2, the plugin's own option named, no traceback."""
    written(tmp_path / "c", {"a.http": right_files()["chat.http"]})
    document = catalog.document_text(CHAT).replace(b"'#/components/schemas/", b"'all.yaml#/components/schemas/")
    (tmp_path / "main.yaml").write_bytes(document)
    arguments, said = REFUSED[name]

    done = suite(*arguments, cwd=tmp_path, HTTP_PROXY="socks5://127.0.0.1:1", NO_PROXY="")

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_remote_refs_arrive(tmp_path: Path) -> None:
    """--sg-remote-refs: a document in parts is read, and its tests are known."""
    document = yaml.safe_load(catalog.document_text(CHAT))
    schemas = document["components"].pop("schemas")
    text = yaml.safe_dump(document).replace("'#/components/schemas/", "'all.yaml#/components/schemas/")
    (tmp_path / "main.yaml").write_text(text)
    (tmp_path / "all.yaml").write_text(yaml.safe_dump({"components": {"schemas": schemas}}))

    done = suite("--collect-only", "-q", *NOBODY, "--sg-spec", "main.yaml", "--sg-remote-refs", cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_contract[sse.done-openai-main]" in done.stdout


def test_proxy_arrives(tmp_path: Path) -> None:
    """--sg-proxy-from-env: requests go to the proxy and name the target; the bundle says so."""
    right = answer(200, json.dumps(whole_answer(contract_of(CHAT)[1])).encode())
    with scripted(choose=lambda number, request: right) as proxy:
        suite(
            *("--sg-base-url", "http://target.invalid", "--sg-model", "m", "--sg-spec", CHAT, "--sg-proxy-from-env"),
            *("--sg-select", "form.plainest", "--sg-output", "out"),
            cwd=tmp_path,
            HTTP_PROXY=proxy.url,
            NO_PROXY="",
        )

    meta = json.loads((tmp_path / "out/meta.json").read_text())
    assert meta["targets"][0]["proxy"] == proxy.url
