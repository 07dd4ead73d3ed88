"""The house's own rules: what is packaged, and who may know whom."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UPPER = ("conformance", "load", "reports", "reference")
ROOMS = ("harness", "spec", *UPPER)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def package_of(folder: Path) -> str:
    """The import name of a folder."""
    parts = folder.relative_to(ROOT).parts
    return ".".join(["streamgauge", *(parts[1:] if parts[0] == "harness" else parts)])


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The modules that a file imports, each with whether that happens as soon as the file itself is imported."""

    def walk(node: ast.AST, early: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, early) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield child.module or "", early
                yield from ((f"{child.module}.{alias.name}", early) for alias in child.names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for part in child.body:
                    yield from walk(ast.Module([part], []), False)
                for part in child.orelse:
                    yield from walk(ast.Module([part], []), early)
            else:
                inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(child, early and not inside)

    yield from walk(ast.parse(path.read_bytes()), True)


def room_of(module: str) -> str | None:
    """The room that a module of ours is in."""
    head, _, rest = module.partition(".")
    if head != "streamgauge":
        return None
    first = rest.partition(".")[0]
    return first if first in ROOMS else "harness"


def name_of(path: Path) -> str:
    """What a failure calls the file."""
    return str(path.relative_to(ROOT))


def test_sources_are_found() -> None:
    """Every room has sources, or the rules below would hold of nothing."""
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(ROOMS)


def test_packages_are_the_folders() -> None:
    """The packages of pyproject.toml are the folders with modules, no more and no fewer."""
    folders = {package_of(path.parent) for path in SOURCES}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)
    assert all((path.parent / "__init__.py").exists() for path in SOURCES)


def test_rooms_are_mapped() -> None:
    """Each room is a package of the one name that is installed, and no folder is called by that name."""
    expected = {"streamgauge" if room == "harness" else f"streamgauge.{room}": room for room in ROOMS}
    assert PROJECT["tool"]["setuptools"]["package-dir"] == expected
    assert not (ROOT / "streamgauge").exists()


def test_data_files_are_packaged() -> None:
    """Every file of the rooms that is no Python is covered by a pattern of package-data."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    suffixes = {pattern.rpartition(".")[2] for pattern in patterns}
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if "__pycache__" not in path.parts]
    data = [path for path in files if path.is_file() and path.suffix != ".py"]
    assert not [name_of(path) for path in data if path.suffix[1:] not in suffixes and path.name != "py.typed"]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_who_may_know_whom(path: Path) -> None:
    """The spec knows nobody, the harness only the spec, each upper room both; only the command line knows all, late."""
    room, *below = path.relative_to(ROOT).parts
    for module, early in imports(path):
        other = room_of(module)
        if other is None or other == room:
            continue
        allowed = {"spec": (), "harness": ("spec",)}.get(room, ("harness", "spec"))
        late = room == "harness" and below[0] == "cli" and not early
        assert other in allowed or late, f"imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_are_absolute(path: Path) -> None:
    """No relative imports, and no folder by its bare name."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        assert not (isinstance(node, ast.ImportFrom) and node.level)
    assert not {module.partition(".")[0] for module, _ in imports(path)} & set(ROOMS)


@pytest.mark.parametrize(
    ("libraries", "places"),
    [
        (("httpx",), ("harness/wire/recorder.py", "harness/wire/fetch.py")),
        (("httpcore",), ("harness/wire/recorder.py", "harness/wire/tee.py")),
        (("locust", "gevent", "geventhttpclient"), ("load/",)),
        (("schemathesis",), ("conformance/",)),
        (("jinja2",), ("reports/", "reference/templates.py")),
    ],
    ids=lambda value: value[0],
)
def test_who_may_import_what(libraries: tuple[str, ...], places: tuple[str, ...]) -> None:
    """Each of the large libraries is imported in one place only."""
    users = {name_of(path) for path in SOURCES for module, _ in imports(path) if module.partition(".")[0] in libraries}
    assert users
    assert not [user for user in users if not user.startswith(places)]
