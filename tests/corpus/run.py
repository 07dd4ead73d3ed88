"""
Lints real documents: those that packages.yaml lists, taken from the registry's packages, each by the real command line.

Run it by `nox -s corpus`; it needs the registry that pip is configured for. Each document has to be linted, or refused
where it is of a version that is not read, and then planned for (`check --dry-run`), without a traceback and without any
traffic. A folder that is given as argument keeps the packages for the next time.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

LISTED = Path(__file__).with_name("packages.yaml")
STREAMGAUGE = (sys.executable, "-m", "streamgauge")


def downloaded(package: str, version: str, archive: str, folder: Path) -> Path:
    """The package's archive, fetched by pip unless it is there; nothing of it is installed or run but its build system."""
    place = folder / f"{package}-{version}-{archive}"
    if not place.is_dir() or not any(place.iterdir()):
        form = ["--only-binary", ":all:"] if archive == "wheel" else ["--no-binary", package]
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            *form,
            "-d",
            str(place),
            f"{package}=={version}",
        ]
        subprocess.run(command, check=True)
    return next(place.iterdir())


def extracted(archive: Path, member: str) -> bytes:
    """One file of a wheel or of a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(member)
    with tarfile.open(archive) as sdist:
        file = sdist.extractfile(member)
        assert file is not None
        return file.read()


def linted(document: Path, expected: str) -> tuple[str, float, list[str]]:
    """Levels counted, seconds, and what went wrong."""
    wrong = []
    began = time.monotonic()
    done = subprocess.run([*STREAMGAUGE, "lint", str(document), "--json"], capture_output=True, text=True)
    took = time.monotonic() - began
    found: list[dict[str, Any]] = []
    try:
        found = json.loads(done.stdout)
    except ValueError:
        wrong.append("its output is no JSON")
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        wrong.append(f"lint ended with {done.returncode}: {done.stderr[-300:]}")
    if (expected == "refused") is not any(row["rule"] == "spec.version" for row in found):
        wrong.append(f"expected: {expected}")
    target = ("--base-url", "http://127.0.0.1:9", "--model", "m", "--spec", str(document))
    planned = subprocess.run([*STREAMGAUGE, "check", "--dry-run", *target], capture_output=True, text=True)
    if planned.returncode not in (0, 2) or "Traceback" in planned.stderr:
        wrong.append(f"check --dry-run ended with {planned.returncode}: {planned.stderr[-300:]}")
    levels = Counter(row["level"] for row in found)
    return " ".join(f"{levels[level]:4}" for level in ("error", "warning", "info")), took, wrong


def main(folder: Path) -> int:
    """Lint everything; the number of documents that went wrong."""
    failed = 0
    print(f"{'package':26} {'version':10} {'bytes':>8}  errs wrns infs seconds  document")
    for entry in yaml.safe_load(LISTED.read_text()):
        archive = downloaded(entry["package"], entry["version"], entry["archive"], folder)
        text = extracted(archive, entry["member"])
        name = Path(entry["member"]).name
        document = folder / f"document{Path(name).suffix}"
        document.write_bytes(text)
        levels, took, wrong = linted(document, entry["expected"])
        if hashlib.sha256(text).hexdigest() != entry["sha256"]:
            wrong.append("it is another document than the one that was listed")
        said = entry["expected"] if not wrong else "WRONG: " + "; ".join(wrong)
        print(
            f"{entry['package']:26} {entry['version']:10} {len(text):8}  {levels} {took:7.2f}  {name}: {said}",
            flush=True,
        )
        failed += bool(wrong)
    print(f"{failed} of the documents went wrong")
    return failed


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(Path(sys.argv[1])) > 0)
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(Path(temporary)) > 0)
