"""The wheel runs on each Python that it names, of those that are on this machine."""

from __future__ import annotations

import os
import subprocess

import pytest
from installs import UV
from interpreters import OTHERS, interpreter

from docs.first_day.wheels import build


@pytest.mark.slow
@pytest.mark.family("other Pythons")
@pytest.mark.parametrize("version", OTHERS)
def test_the_wheel_converses_and_backs_up(version, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    venv, wheel = tmp_path / "venv", build(tmp_path / "dist")
    subprocess.run([UV, "venv", "--quiet", "--python", python, str(venv)], check=True)
    added = f"{wheel}[backup,documents]"
    installs = [UV, "pip", "install", "--quiet", "--python", str(venv), added]
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

    said = tapebot(stdin="I live in Berlin.\nI live in Lisbon now.\n/new\nWhere do I live?\n")
    assert said.index("I live in Lisbon now.") < said.index("I live in Berlin.")
    assert f"ok   python     {version}." in tapebot("doctor")
    assert "unpacked and checked" in tapebot("backup", "--to", str(tmp_path / "backups"))
    assert "no problems" in tapebot("tape", "verify")
