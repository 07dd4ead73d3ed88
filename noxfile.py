"""Development sessions. `nox` alone runs lint, types and tests; every session works in an environment of its own."""

import shutil
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_external_run = True
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")

LOAD_BENCHMARKS = ("capacity", "accuracy", "startup")
PEERS = {"aiperf": ["aiperf"], "guidellm": ["guidellm"], "sglang": ["--no-deps", "sglang"], "vllm": ["vllm"]}
"""What pip has to install. SGLang's client is one compiled file; all else of it is for servers."""


def group(name: str) -> list[str]:
    """The requirements of a dependency group."""
    return nox.project.dependency_groups(PROJECT, name)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and formatting."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types of the installed package."""
    session.install(".", *group("types"))
    session.run("mypy", "-p", "streamgauge", "--config-file", "pyproject.toml", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, against the installed wheel."""
    session.install(".", *group("test"))
    session.run("pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", *session.posargs)


@nox.session
def minimums(session: nox.Session) -> None:
    """All tests at the lowest versions that pyproject.toml allows; needs uv."""
    session.install("--resolution=lowest-direct", ".", *group("test"))
    session.run("pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", *session.posargs)


@nox.session
def real(session: nox.Session) -> None:
    """The tests against llama.cpp's own server alone; its wheel comes from the registry."""
    session.install(".", *group("test"))
    session.run("pytest", "-m", "real", *session.posargs)


@nox.session
def mutations(session: nox.Session) -> None:
    """Every fault of the reference endpoint over real sockets: exactly the checks of docs/mutation-matrix.md depart."""
    session.install(".", *group("test"))
    session.run("pytest", "-m", "sockets", "-n", "2", "tests/test_mutations_over_sockets.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks: ratios measured in one run, never a test."""
    session.install(".", *group("bench"))
    session.run("python", "benchmarks/run.py", *session.posargs)
    session.run("python", "benchmarks/side_by_side.py")


@nox.session
def bench_load(session: nox.Session) -> None:
    """What our load client takes, how wrong its times are, and what a run costs, beside plain Locust: some ten minutes."""
    session.install(".", *group("bench"))
    for benchmark in LOAD_BENCHMARKS:
        session.run("python", f"benchmarks/{benchmark}.py")


@nox.session
def bench_arrivals(session: nox.Session) -> None:
    """Whether twenty runs of 30 s send when their schedules say so; arguments go to benchmarks/arrivals.py."""
    session.install(".", *group("bench"))
    session.run("python", "benchmarks/arrivals.py", *session.posargs)


@nox.session
def peers(session: nox.Session) -> None:
    """
    The same beside other people's clients, each in an environment of its own.

    Arguments say which: `aiperf guidellm sglang vllm`, or `vllm=FOLDER` where its programs lie already.
    """
    session.install(".", *group("bench"))
    given = [name if "=" in name else f"{name}={environment_of(session, name)}" for name in session.posargs or PEERS]
    for benchmark in LOAD_BENCHMARKS:
        session.run("python", f"benchmarks/{benchmark}.py", *(f"--peer={peer}" for peer in given))


def environment_of(session: nox.Session, peer: str) -> Path:
    """Where a peer's programs lie; the benchmarks leave it out where it could not be installed."""
    folder = Path(session.cache_dir, "peers", peer).resolve()
    if not folder.exists():
        session.run("python", "-m", "venv", str(folder))
        try:
            session.run(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *PEERS[peer], external=True)
        except nox.command.CommandFailed:
            session.warn(f"{peer} cannot be installed here")
            shutil.rmtree(folder)
    return folder / "bin"


@nox.session
def corpus(session: nox.Session) -> None:
    """`streamgauge lint` on real documents out of the registry's packages; a folder as argument keeps the packages."""
    session.install(".", "pip")
    session.run("python", "tests/corpus/run.py", *session.posargs)
