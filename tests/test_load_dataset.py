"""Prompts out of a file of JSON lines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.errors import UsageError
from streamgauge.load.dataset import Prompt, position, read_prompts


def file(folder: Path, *lines: str) -> Path:
    """A file of these lines."""
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_what_a_line_may_be(tmp_path: Path) -> None:
    """A prompt, one with a system text, messages; a limit for each; empty lines and other members mean nothing."""
    path = file(
        tmp_path,
        '{"prompt": "A\\u2028B", "max_tokens": 5, "topic": "x"}',
        "",
        '{"prompt": "C", "system": "S"}',
        '{"messages": [{"role": "user", "content": "D"}]}',
        "",
    )
    user, system = {"role": "user", "content": "C"}, {"role": "system", "content": "S"}
    assert read_prompts(path) == (
        Prompt("A\u2028B", (), 5, 1),
        Prompt("", (system, user), None, 3),
        Prompt("", ({"role": "user", "content": "D"},), None, 4),
    )


def test_a_raw_line_separator_is_part_of_its_prompt(tmp_path: Path) -> None:
    """U+2028 may stand in a JSON string as it is (RFC 8259, section 7), and does not end a line."""
    assert read_prompts(file(tmp_path, '{"prompt": "A\u2028B"}'))[0].text == "A\u2028B"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ('{"prompt": "\\ud800"}', "not JSON"),
        ("[]", "either"),
        ("{}", "either"),
        ('{"prompt": "a", "messages": []}', "either"),
        ('{"prompt": 5}', "texts"),
        ('{"prompt": "a", "system": 5}', "texts"),
        ('{"prompt": "a", "max_tokens": 0}', "max_tokens"),
        ('{"prompt": "a", "max_tokens": true}', "max_tokens"),
        ('{"messages": []}', "messages"),
        ('{"messages": [5]}', "messages"),
        ('{"messages": [{"role": "assistant"}]}', "content"),
    ],
)
def test_a_wrong_line_is_named(line: str, said: str, tmp_path: Path) -> None:
    """File, line, what is wrong, and what a line looks like."""
    path = file(tmp_path, '{"prompt": "a"}', line)
    with pytest.raises(UsageError) as caught:
        read_prompts(path)
    assert caught.value.where == f"{path}:2"
    assert said in caught.value.what
    assert '{"prompt": "..."}' in caught.value.hint


def test_files_that_hold_no_prompt(tmp_path: Path) -> None:
    """One that is missing, is no text, or is empty."""
    (tmp_path / "latin").write_bytes(b"\xe9")
    for path, said in ((tmp_path / "no", "No such file"), (tmp_path / "latin", "UTF-8"), (file(tmp_path), "no prompt")):
        with pytest.raises(UsageError, match=said):
            read_prompts(path)


@given(st.integers(1, 40), st.integers(0, 5), st.integers(0, 3))
def test_each_prompt_is_taken_once_before_any_comes_again(count: int, done: int, seed: int) -> None:
    """Every round takes all of them."""
    taken = [position(count, index, seed) for index in range(done * count, (done + 1) * count)]
    assert sorted(taken) == list(range(count))


def test_rounds_have_orders_of_their_own() -> None:
    """Two rounds, and two seeds, go through 50 prompts differently."""
    orders = [[position(50, index, seed) for index in range(at, at + 50)] for seed in (1, 2) for at in (0, 50)]
    assert len({tuple(order) for order in orders}) == 4
