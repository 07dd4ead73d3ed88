"""llama.cpp's own server, from its wheel and with a tiny model made on the spot."""

import fcntl
import json
import socket
import subprocess
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PLACE = HERE.parents[1] / ".real"
REQUIREMENTS = ("xllamacpp==2026.10.11549", "gguf==0.19.0")


@pytest.fixture(scope="session")
def llama_python() -> Path:
    """A Python that has the wheel; skips by name where there is none to be had."""
    python = PLACE / "venv" / "bin" / "python"
    stamp = PLACE / "installed"
    PLACE.mkdir(exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers may come at once
        if not stamp.exists() or stamp.read_text() != " ".join(REQUIREMENTS):
            venv.create(PLACE / "venv", with_pip=True, clear=True)
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
            done = subprocess.run(install, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"{' '.join(REQUIREMENTS)} cannot be had: {done.stderr.strip().splitlines()[-1]}")
            stamp.write_text(" ".join(REQUIREMENTS))
    return python


@pytest.fixture(scope="session")
def llama_model(llama_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's file."""
    model = tmp_path_factory.mktemp("model") / "tiny.gguf"
    subprocess.run([llama_python, HERE / "tiny_model.py", model], check=True, capture_output=True)
    return model


@pytest.fixture(scope="session")
def llama(llama_python: Path, llama_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of the server; its model is called `tiny`, and it wants no key."""
    with _server(llama_python, llama_model, tmp_path_factory.mktemp("llama")) as url:
        yield url


@pytest.fixture(scope="session")
def llama_key() -> str:
    """The key that the server of `llama_with_key` wants."""
    return "real-key-of-this-server-1"


@pytest.fixture(scope="session")
def llama_with_key(
    llama_python: Path, llama_model: Path, llama_key: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Base URL of the same server, which wants the key."""
    with _server(llama_python, llama_model, tmp_path_factory.mktemp("llama-with-key"), llama_key) as url:
        yield url


@contextmanager
def _server(python: Path, model: Path, folder: Path, *keys: str) -> Iterator[str]:
    with _port() as port, (folder / "server.log").open("wb") as output:
        process = subprocess.Popen(
            [python, HERE / "llama_server.py", model, str(port), *keys], stdout=output, stderr=output
        )
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_it_answers(url, process, folder / "server.log")
            yield url
        finally:
            process.terminate()
            process.wait(timeout=20)


@contextmanager
def _port() -> Iterator[int]:
    """A port that is held, so that nobody else is given it: the server binds it beside us, and it alone listens."""
    with socket.socket() as holder:
        for shared in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            holder.setsockopt(socket.SOL_SOCKET, shared, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def _wait_until_it_answers(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    while True:
        if process.poll() is not None:
            pytest.fail(f"the server ended: {log.read_text(errors='replace')[-2000:]}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                assert json.load(answer)["status"] == "ok"
                return
        except OSError:
            time.sleep(0.05)
