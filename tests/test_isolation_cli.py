"""`--destructive` on the command line: named before anything is sent, and never without it."""

from pathlib import Path

from commandline import streamgauge

TARGET = ("--base-url", "http://127.0.0.1:9", "--spec", "openai-completions", "--model", "m")


def test_dry_run_names_what_kills_engines(tmp_path: Path) -> None:
    """With the flag each one and its canary stand in the plan; without it none does, and the plan says so."""
    demanded = streamgauge("check", *TARGET, "--select", "poison", "--dry-run", "--destructive", cwd=tmp_path)
    by_default = streamgauge("check", *TARGET, "--select", "poison", "--dry-run", cwd=tmp_path)

    assert demanded.returncode == 0, demanded.stderr
    for name in ("poison.seed-64-bits", "poison.seed-64-bits.canary", "poison.prompt-token-beyond", "poison.choices"):
        assert name in demanded.stdout
    assert by_default.returncode == 2
    assert "--destructive" in by_default.stderr


def test_captures_are_not_asked_for_it(tmp_path: Path) -> None:
    """`--from` sends nothing, so it does not go with the flag."""
    done = streamgauge("check", "--from", str(tmp_path), "--destructive", cwd=tmp_path)

    assert done.returncode == 2
    assert "--destructive" in done.stderr
