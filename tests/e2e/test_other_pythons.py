"""The wheel runs on each Python that it names, of those that are on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from docs.first_day.wheels import ROOT, build

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAMED = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@cache
def interpreter(version: str) -> str | None:
    """Return the path of a Python of this version; None if there is none."""
    found = shutil.which(f"python{version}")
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for path in (*([found] if found else ()), *map(str, kept)):
        asked = "import ssl, sqlite3, sys; print('{}.{}'.format(*sys.version_info))"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    return None


def test_each_minor_version_from_the_oldest_is_named():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert NAMED[0] == oldest
    minors = [int(one.partition(".")[2]) for one in NAMED]
    assert minors == list(range(minors[0], minors[-1] + 1))


@pytest.mark.slow
@pytest.mark.family("other Pythons")
@pytest.mark.parametrize("version", [one for one in NAMED if one != HERE])
def test_the_wheel_converses_and_backs_up(version, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    venv, wheel = tmp_path / "venv", build(tmp_path / "dist")
    subprocess.run([uv, "venv", "--quiet", "--python", python, str(venv)], check=True)
    added = f"{wheel}[backup,documents]"
    installs = [uv, "pip", "install", "--quiet", "--python", str(venv), added]
    if subprocess.run(installs, check=False, timeout=100).returncode:
        pytest.skip("what it needs cannot be downloaded")
    environment = {"PATH": os.environ["PATH"], "TAPEBOT_HOME": str(tmp_path / "home")}
    environment |= {"HOME": str(tmp_path), "TAPEBOT_BACKUP_PASSPHRASE": "ten letters or more"}

    def tapebot(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [str(venv / "bin" / "tapebot"), *arguments],
            cwd=tmp_path,
            env=environment | {"PYTHONWARNINGS": "error"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = tapebot(stdin="I live in Berlin.\nI have moved to Lisbon.\n/new\nWhere do I live?\n")
    assert "Lisbon" in said.splitlines()[-1]
    assert f"ok   python     {version}." in tapebot("doctor")
    assert "unpacked and checked" in tapebot("backup", "--to", str(tmp_path / "backups"))
    assert "no problems" in tapebot("tape", "verify")
