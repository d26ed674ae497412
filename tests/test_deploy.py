"""What is deployed agrees with what is in the tree."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from bot.cli.parser import make_parser
from bot.runtime.settings import PREFIX, Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TEXTS = sorted(path for path in DEPLOY.iterdir() if path.is_file())
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


def copied():
    """Return the paths of the tree that the image is built from."""
    rests = [
        rest for name, rest in docker_instructions() if name == "COPY" and "--from" not in rest
    ]
    return [source for rest in rests for source in shlex.split(rest)[:-1]]


def unit(name):
    """Return a unit's directives as {section: {name: [values]}}."""
    sections = {}
    for line in (DEPLOY / name).read_text(encoding="utf-8").splitlines():
        if re.fullmatch(r"\[\w+\]", line):
            directives = sections.setdefault(line[1:-1], {})
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert equals, f"not a directive: {line}"
            directives.setdefault(name, []).append(value)
    return sections


def test_every_path_that_the_image_copies_is_in_the_tree():
    assert copied()
    assert [path for path in copied() if not (ROOT / path).exists()] == []


def test_everything_that_the_image_copies_passes_the_ignore_file():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert "*" in lines
    assert {path.split("/")[0] for path in copied()} == let_in


def test_no_settings_or_secrets_get_into_the_image():
    assert not [path for path in copied() if ".env" in path]


def test_the_image_runs_the_console_script_as_a_user_without_privileges():
    names = dict(docker_instructions())
    assert names["ENTRYPOINT"] == '["tapebot"]'
    assert "tapebot" in PROJECT["project"]["scripts"]
    assert names["USER"] == "tapebot"
    assert names["HEALTHCHECK"].endswith('["tapebot", "doctor"]')


def test_the_image_installs_only_what_the_locks_name():
    commands = " ".join(rest for name, rest in docker_instructions() if name == "RUN")
    installs = re.findall(r"pip install ([^&]*)", commands)
    assert installs
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)


def test_the_image_is_of_a_python_that_the_project_takes():
    bases = [rest.split()[0] for name, rest in docker_instructions() if name == "FROM"]
    assert bases
    for base in bases:
        version = re.fullmatch(r"python:3\.(\d+)-slim", base)
        assert version
        assert f">=3.{version[1]}" == PROJECT["project"]["requires-python"]


@pytest.mark.parametrize(("name", "command"), UNITS.items(), ids=UNITS)
def test_a_unit_starts_the_console_script(name, command):
    (line,) = unit(name)["Service"]["ExecStart"]
    program, argument = shlex.split(line)
    assert Path(program).name in PROJECT["project"]["scripts"]
    assert argument == command
    assert make_parser().parse_args([argument]).command == command


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_writes_only_into_the_home_that_it_names(name):
    service = unit(name)["Service"]
    (environment,) = service["Environment"]
    home = dict(pair.split("=", 1) for pair in environment.split())["TAPEBOT_HOME"]
    assert service["StateDirectory"] == [home.removeprefix("/var/lib/")]
    assert service["WorkingDirectory"] == [home]
    assert service["ProtectSystem"] == ["strict"]
    assert "ReadWritePaths" not in service
    # Of one unit many processes may run, each in a home of its own.
    assert ("@" in name) == home.endswith("-%i")


def test_units_of_many_processes_are_closed_as_the_one_is():
    def closed(name):
        lines = (DEPLOY / name).read_text(encoding="utf-8").splitlines()
        return lines[lines.index("CapabilityBoundingSet=") :]

    assert len({"\n".join(closed(name)) for name in UNITS}) == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_unit_and_finds_it_closed(name, tmp_path):
    """The program is not installed where the tests run, so another stands in its place."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    stand_in = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
    path = tmp_path / name
    path.write_text(stand_in, encoding="utf-8")
    checks = [
        ["systemd-analyze", "verify", "--man=no", str(path)],
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", str(path)],
    ]
    for check in checks:
        done = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Unknown" not in done.stderr


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_variable_that_is_named_exists(path):
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    named = set(re.findall(rf"{PREFIX}[A-Z_]+", path.read_text(encoding="utf-8")))
    assert named <= known


def test_every_file_that_the_runbook_names_is_in_the_tree():
    text = (DEPLOY / "RUNBOOK.md").read_text(encoding="utf-8")
    named = re.findall(
        r"(?<![\w/.])(?:locks|deploy|docs|tests)/[\w.@/-]+\w|(?<![\w/])\.env\.example", text
    )
    assert named
    # These hold secrets, and are made by whoever installs it.
    made = {"deploy/tapebot.env", "deploy/postgres.env"}
    assert [name for name in named if name not in made and not (ROOT / name).exists()] == []


def test_the_hooks_before_a_commit_are_those_of_make_lint():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.split("\nlint:")[1].split("\n\n")[0]
    for tool in re.findall(r"\$\(BIN\)/([\w-]+)", recipe):
        assert f"entry: .venv/bin/{tool}" in hooks
    assert "repo: local" in hooks
    assert "http" not in hooks
