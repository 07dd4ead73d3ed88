"""Development sessions. `nox` alone runs lint, types and tests; every session works in an environment of its own."""

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.error_on_external_run = True
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")


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
def corpus(session: nox.Session) -> None:
    """`streamgauge lint` on real documents out of the registry's packages; a folder as argument keeps the packages."""
    session.install(".", "pip")
    session.run("python", "tests/corpus/run.py", *session.posargs)
