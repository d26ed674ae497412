"""What is deployed agrees with what is in the tree."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from bot.runtime.settings import PREFIX, Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
UNITS = {
    "tapebot.service": "run",
    "tapebot-gateway@.service": "gateway",
    "tapebot-worker@.service": "worker",
}


def docker_instructions():
    """Return (instruction, rest) pairs, lines that go on joined and comments left out."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = kept.replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def test_the_image_holds_what_it_copies_from_the_tree_and_no_secrets():
    rests = [
        rest for name, rest in docker_instructions() if name == "COPY" and "--from" not in rest
    ]
    copied = [source for rest in rests for source in shlex.split(rest)[:-1]]
    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert not [path for path in copied if ".env" in path]
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert "*" in lines
    assert {path.split("/")[0] for path in copied} == let_in


def test_the_image_runs_what_the_locks_name_as_a_user_without_privileges():
    names = dict(docker_instructions())
    assert names["ENTRYPOINT"] == '["tapebot"]'
    assert names["USER"] == "tapebot"
    assert names["HEALTHCHECK"].endswith('["tapebot", "doctor"]')
    commands = " ".join(rest for name, rest in docker_instructions() if name == "RUN")
    installs = re.findall(r"pip install ([^&]*)", commands)
    assert installs
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)
    bases = [rest.split()[0] for name, rest in docker_instructions() if name == "FROM"]
    for base in bases:
        version = re.fullmatch(r"python:3\.(\d+)-slim", base)
        assert version
        assert f">=3.{version[1]}" == PROJECT["project"]["requires-python"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_unit_and_finds_it_closed(name, tmp_path):
    """The program is not installed where the tests run, so another stands in its place."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    stand_in = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
    path = tmp_path / name
    path.write_text(stand_in, encoding="utf-8")
    for asked in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=15"]):
        check = ["systemd-analyze", *asked, str(path)]
        done = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr


def test_every_variable_that_is_named_exists():
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for path in (one for one in DEPLOY.iterdir() if one.is_file()):
        named = set(re.findall(rf"{PREFIX}[A-Z_]+", path.read_text(encoding="utf-8")))
        assert named <= known, path


def test_every_file_that_the_runbook_names_is_in_the_tree():
    text = (DEPLOY / "RUNBOOK.md").read_text(encoding="utf-8")
    named = re.findall(
        r"(?<![\w/.])(?:locks|deploy|docs|tests)/[\w.@/-]+\w|(?<![\w/])\.env\.example", text
    )
    assert named
    # These hold secrets, and are made by whoever installs it.
    made = {"deploy/tapebot.env", "deploy/postgres.env"}
    assert [name for name in named if name not in made and not (ROOT / name).exists()] == []
