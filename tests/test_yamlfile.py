"""YAML as a person means it, with the place of every complaint."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import ConfigError, DocumentError
from streamgauge.yamlfile import load_yaml


def complaint(text: str | bytes) -> ConfigError:
    """What reading the text raises."""
    with pytest.raises(ConfigError) as caught:
        load_yaml(text, name="f.yaml", error=ConfigError)
    return caught.value


@pytest.mark.parametrize(
    ("text", "first", "where"),
    [
        ("a: 1\nb: 2\na: 3\n", 1, "f.yaml:3:1"),
        ("x:\n  k: 1\n  k: 2\n", 2, "f.yaml:3:3"),
        ("- {a: 1}\n- {a: 1, b: 2, a: 3}\n", 2, "f.yaml:2:16"),
        ("{1: a, 1: b}", 1, "f.yaml:1:8"),
    ],
    ids=["top", "nested", "flow", "number"],
)
def test_duplicate_keys(text: str, first: int, where: str) -> None:
    """A key given twice is refused, with the lines of both."""
    problem = complaint(text)
    assert problem.where == where
    assert f"first in line {first}" in problem.what


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1\nb: 2\n", "f.yaml:2:2"),
        ("a: b: c\n", "f.yaml:1:5"),
        ("a:\n\t- b\n", "f.yaml:2:1"),
        ("a: *nobody\n", "f.yaml:1:4"),
        ("a: !!python/object:os.system x\n", "f.yaml:1:4"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1"),
        ("? [a, b]\n: 1\n", "f.yaml:1:3"),
        ("a: &x [*x]\n", "f.yaml:1:4"),
    ],
    ids=["open-list", "two-colons", "tab", "alias", "python-tag", "two-documents", "list-as-key", "cycle"],
)
def test_broken_yaml(text: str, where: str) -> None:
    """Text that cannot be used is refused with line and column."""
    assert complaint(text).where == where


@pytest.mark.parametrize(
    "text",
    [
        b"a: \xff",
        b"a: \x00",
        "a: 0x_",
        "a: !!bool maybe",
        "a: !!int x",
        "a: !!timestamp x",
        "a: " + "9" * 5000,
        "[" * 5000,
    ],
    ids=["latin-1", "nul", "hex", "bool", "int", "timestamp", "huge-integer", "deep"],
)
def test_values_that_cannot_be_read(text: str | bytes) -> None:
    """What PyYAML itself stumbles over is a complaint about the file, not a traceback."""
    assert complaint(text).where.startswith("f.yaml")


def test_aliases_of_aliases_are_refused() -> None:
    """A few lines that unfold to billions of nodes are refused before anybody walks them."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "unfold" in complaint("\n".join(lines)).what


def test_aliases_and_merges_are_understood() -> None:
    """Anchors, aliases and merge keys work as YAML says, and a merged key may be overridden."""
    found = load_yaml("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nsame: *b\n")
    assert found.data == {"base": {"x": 1, "y": 2}, "more": {"x": 1, "y": 3}, "same": {"x": 1, "y": 2}}


def test_dates_stay_text() -> None:
    """A date or a time is text, as in JSON; other scalars keep their types."""
    found = load_yaml("d: 2026-01-31\nt: 2026-01-31 10:00:00\nn: 3\nf: 1.5\nb: true\nz: null\n").data
    assert found == {"d": "2026-01-31", "t": "2026-01-31 10:00:00", "n": 3, "f": 1.5, "b": True, "z": None}


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ([], "f.yaml:1:1"),
        (["a"], "f.yaml:1:1"),
        (["a", "b"], "f.yaml:2:3"),
        (["a", "b", 1], "f.yaml:4:7"),
        (["a", "b", 1, "c"], "f.yaml:4:7"),
        (["a", "b", 9], "f.yaml:2:3"),
        (["a", "nothing", "deeper"], "f.yaml:1:1"),
        (["200"], "f.yaml:5:1"),
        ([200], "f.yaml:5:1"),
    ],
    ids=str,
)
def test_where(path: list[str | int], where: str) -> None:
    """A path leads to line and column of its key or item, or of the nearest ancestor there is."""
    assert load_yaml("a:\n  b:\n    - x\n    - c: 1\n200: y\n", name="f.yaml").where(path) == where


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_a_file_of_nothing(text: str) -> None:
    """A file without a value is refused by its name."""
    with pytest.raises(ConfigError, match="nothing in it") as caught:
        load_yaml(text, name="f.yaml", error=ConfigError)
    assert caught.value.where == "f.yaml"


def test_files(tmp_path: Path) -> None:
    """A path is read and named; what cannot be read is of the class that was asked for."""
    file = tmp_path / "x.yaml"
    file.write_text("a: 1")
    assert load_yaml(file).where(["a"]) == f"{file}:1:1"
    for missing in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(DocumentError) as caught:
            load_yaml(missing, error=DocumentError)
        assert caught.value.where == str(missing)


@given(st.text() | st.binary() | st.text("ab:-[]{}&*!|>?%@`\"'#,0x1_.<~= \n\t"))
def test_nothing_else_raises(text: str | bytes) -> None:
    """Any text is read or refused, never anything else."""
    try:
        load_yaml(text, name="f.yaml", error=ConfigError)
    except ConfigError as problem:
        assert problem.where.startswith("f.yaml")
