"""``tapebot service``: what it writes is accepted by the system, and starts tapebot as it runs here."""

from __future__ import annotations

import configparser
import os
import plistlib
import shlex
import shutil
import subprocess
import sys

import pytest

from bot.cli import service
from bot.cli.service import launchd_service, run_service, systemd_service
from bot.core.errors import SettingsError, TapebotError
from bot.runtime.settings import load_settings

RECORDER = """#!/bin/sh
echo "$(basename "$0") $*" >> "$RECORD"
case "$*" in $FAILS) echo "Failed to connect to bus" >&2; exit 1;; esac
"""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Return the commands that were given to the system so far; the system is played by scripts."""
    for name in ("systemctl", "loginctl", "journalctl", "launchctl", "tail"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(RECORDER)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    monkeypatch.setenv("FAILS", "nothing")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)

    def read() -> list[str]:
        record = tmp_path / "record"
        return record.read_text().splitlines() if record.exists() else []

    return read


@pytest.fixture
def settings(tmp_path):
    return load_settings(home=tmp_path / "a $home")


def test_a_unit_starts_this_python_in_this_folder(settings, calls, tmp_path, monkeypatch, capfd):
    folder = tmp_path / "100% mine"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run_service(settings, "install") == 0
    path = tmp_path / ".config" / "systemd" / "user" / "tapebot.service"
    unit = configparser.RawConfigParser(strict=False)
    unit.read(path)
    program = shlex.split(unit["Service"]["ExecStart"])
    assert program == [sys.executable, "-m", "bot", "run"]
    assert unit["Service"]["WorkingDirectory"] == str(folder).replace("%", "%%")
    given = dict(word.split("=", 1) for word in shlex.split(unit["Service"]["Environment"]))
    assert given["TAPEBOT_HOME"] == str(settings.home)
    # Servers of MCP and git are found where this shell finds them; systemd's own path is short.
    assert given["PATH"] == os.environ["PATH"]
    assert [call.partition(" ")[2] for call in calls()[:3]] == [
        "--user daemon-reload",
        "--user enable tapebot.service",
        "--user restart tapebot.service",
    ]
    assert calls()[3].startswith("loginctl enable-linger")
    assert "started\ttapebot" in capfd.readouterr().out
    version = subprocess.run(
        [*program[:-1], "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert version.stdout.strip()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd on this machine")
def test_systemd_accepts_the_unit_of_a_folder_with_any_name(settings, calls, tmp_path):
    folder = tmp_path / 'odd "name" $HOME 100% ü'
    folder.mkdir()
    unit = tmp_path / "tapebot.service"
    unit.write_bytes(systemd_service(settings, folder).description)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_agent_of_launchd_starts_this_python_in_this_folder(
    settings, calls, tmp_path, monkeypatch
):
    monkeypatch.setattr(service.sys, "platform", "darwin")
    monkeypatch.chdir(tmp_path)
    assert run_service(settings, "install") == 0
    agent = launchd_service(settings, tmp_path)
    told = plistlib.loads(agent.path.read_bytes())
    assert told["ProgramArguments"] == [sys.executable, "-m", "bot", "run"]
    assert told["WorkingDirectory"] == str(tmp_path)
    assert told["EnvironmentVariables"]["TAPEBOT_HOME"] == str(settings.home)
    assert told["EnvironmentVariables"]["PATH"] == os.environ["PATH"]
    assert told["KeepAlive"] == {"SuccessfulExit": False}
    assert calls()[0] == f"launchctl bootstrap gui/{os.getuid()} {agent.path}"
    # A second installation replaces the first, which launchd does not do by itself.
    run_service(settings, "install")
    assert [call.split()[1] for call in calls()] == [
        "bootstrap",
        "kickstart",
        "bootout",
        "bootstrap",
        "kickstart",
    ]


def test_a_removed_service_is_stopped_and_its_data_stay(
    settings, calls, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    run_service(settings, "install")
    (settings.home / "kept").write_text("data")
    assert run_service(settings, "remove") == 0
    assert calls()[-2:] == [
        "systemctl --user disable --now tapebot.service",
        "systemctl --user daemon-reload",
    ]
    assert not list((tmp_path / ".config").rglob("*.service"))
    assert (settings.home / "kept").exists()
    for command in ("status", "remove"):
        with pytest.raises(SettingsError, match="service install"):
            run_service(settings, command)


def test_what_the_system_refuses_is_told_in_its_words(settings, calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAILS", "*enable*")
    with pytest.raises(TapebotError, match=r"systemctl --user enable .* Failed to connect to bus"):
        run_service(settings, "install")
