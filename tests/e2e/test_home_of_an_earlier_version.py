"""A home folder that version 0.1 wrote is opened by this one, and says the same, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRITTEN = Path(__file__).parent / "home_0_1"
SESSION = "console:local"
_MEMORY = ("MEMORY.md", "facts.json", "references.md", "reference.json", "decisions.jsonl")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy of the folder: what opens it writes an index beside it."""
    return Path(shutil.copytree(WRITTEN / "home", tmp_path / "home"))


def tapebot(home: Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bot", *arguments],
        env={"PYTHONPATH": str(ROOT), "TAPEBOT_HOME": str(home), "HOME": str(home), "TZ": "UTC"},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_its_tapes_verify(home):
    assert "no problems" in tapebot(home, "tape", "verify")


@pytest.mark.parametrize(
    ("session", "form", "expected"),
    [
        (SESSION, "jsonl", "console_local.jsonl"),
        (SESSION, "markdown", "console_local.md"),
        ("person:console:local", "jsonl", "person_console_local.jsonl"),
    ],
)
def test_its_tapes_are_exported_as_they_were(home, tmp_path, session, form, expected):
    out = tmp_path / expected
    tapebot(home, "tape", "export", session, "--format", form, "--output", str(out))
    assert out.read_bytes() == (WRITTEN / "expected" / expected).read_bytes()


def test_its_memory_is_exported_as_it_was(home, tmp_path):
    tapebot(home, "memory", "export", SESSION, "--to", str(tmp_path / "memory.zip"))
    with zipfile.ZipFile(tmp_path / "memory.zip") as exported:
        for name in _MEMORY:
            assert exported.read(name) == (WRITTEN / "expected" / name).read_bytes(), name


def test_its_conversation_goes_on(home):
    said = tapebot(home, stdin="What is my name?\n/memory\n")
    assert "Ada" in said
    assert "The user's sister Clara has two cats." in said
    assert "no problems" in tapebot(home, "tape", "verify")


def test_it_is_a_home_of_the_oldest_version_that_is_promised():
    """``tapebot upgrade --check`` tells people that homes since that version open."""
    promised = tomllib.loads((ROOT / "bot" / "compatibility.toml").read_text())["homes_since"]
    assert WRITTEN.name == f"home_{promised.rpartition('.')[0].replace('.', '_')}"
