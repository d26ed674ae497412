"""``tapebot service``: run tapebot whenever this machine runs, as a service of this user.

On Linux it is a user unit of systemd, on macOS an agent of launchd. Both start ``tapebot run`` in the
folder in which the service was installed, because ``.env`` is read from there, and find the programs that
the installing shell finds, such as git and those of MCP servers.
"""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.core.errors import SettingsError, TapebotError
from bot.core.files import private_directory, replace_file
from bot.core.i18n import _
from bot.runtime.settings import Settings

UNIT = "tapebot.service"
LABEL = "org.tapebot.tapebot"
_ARGUMENTS = ("-m", "bot", "run")
_NEWEST_LINES = "100"

_UNIT = """\
[Unit]
Description=tapebot, an assistant that remembers
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart={program}
WorkingDirectory={folder}
Environment={environment}
UMask=0077
Restart=on-failure
RestartSec=5
# The running turn stays on the tape; the next start continues it.
KillMode=mixed
TimeoutStopSec=60
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""  # for programs


@dataclass(frozen=True, slots=True)
class Service:
    """tapebot as a service: a file that describes it, and commands of the system.

    Attributes:
        path: The file.
        description: Its content.
        start: Start it, now and with the machine.
        stop: Stop it for good.
        forget: Make the system forget it, once the file is gone.
        status: Shows if it runs.
        log: Shows its log, and what follows.
    """

    path: Path
    description: bytes
    start: Sequence[list[str]]
    stop: list[str]
    forget: Sequence[list[str]]
    status: list[str]
    log: list[str]


def _environment(settings: Settings) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    return {"TAPEBOT_HOME": str(settings.home), "PATH": path, "PYTHONUTF8": "1"}


def systemd_service(settings: Settings, folder: Path) -> Service:
    """Return a user unit of systemd."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    words = [_unit_word(word).replace("$", "$$") for word in (sys.executable, *_ARGUMENTS)]
    given = [_unit_word(f"{name}={value}") for name, value in _environment(settings).items()]
    unit = _UNIT.format(
        program=" ".join(words), folder=_unit_text(str(folder)), environment=" ".join(given)
    )
    control = ["systemctl", "--user"]
    return Service(
        Path(config) / "systemd" / "user" / UNIT,
        unit.encode(),
        start=(
            [*control, "daemon-reload"],
            [*control, "enable", UNIT],
            [*control, "restart", UNIT],
            # It runs on when nobody is logged in.
            ["loginctl", "enable-linger", str(os.getuid())],
        ),
        stop=[*control, "disable", "--now", UNIT],
        forget=([*control, "daemon-reload"],),
        status=[*control, "--no-pager", "status", UNIT],
        log=["journalctl", "--user", "--unit", UNIT, "--lines", _NEWEST_LINES, "--follow"],
    )


def launchd_service(settings: Settings, folder: Path) -> Service:
    """Return an agent of launchd."""
    path = Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    domain, log = f"gui/{os.getuid()}", str(settings.home / "logs" / "service.log")
    description = {
        "Label": LABEL,
        "ProgramArguments": [sys.executable, *_ARGUMENTS],
        "WorkingDirectory": str(folder),
        "EnvironmentVariables": _environment(settings),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": 60,
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    return Service(
        path,
        plistlib.dumps(description),
        start=(
            ["launchctl", "bootstrap", domain, str(path)],
            ["launchctl", "kickstart", "-k", f"{domain}/{LABEL}"],
        ),
        stop=["launchctl", "bootout", f"{domain}/{LABEL}"],
        forget=(),
        status=["launchctl", "print", f"{domain}/{LABEL}"],
        log=["tail", "-n", _NEWEST_LINES, "-F", log],
    )


def run_service(settings: Settings, command: str) -> int:
    """Install the service, remove it, or show its state or log, with the exit code of what shows it."""
    service = _service(settings, Path.cwd())
    if command == "install":
        return _install(service, settings)
    if not service.path.exists():
        raise SettingsError(_("there is no service yet: `tapebot service install` makes one"))
    if command == "remove":
        _run_all([service.stop])
        service.path.unlink(missing_ok=True)
        _run_all(service.forget)
        print(_("removed\t{path}", path=service.path))
        print(_("Your data in {home} is unchanged.", home=settings.home))
        return 0
    return _call(service.status if command == "status" else service.log)


def _install(service: Service, settings: Settings) -> int:
    private_directory(settings.home / "logs")
    private_directory(service.path.parent)
    if service.path.exists():
        # launchd refuses to load an agent twice.
        subprocess.run(service.stop, check=False, capture_output=True)  # noqa: S603
    replace_file(service.path, service.description)
    print(_("wrote\t{path}", path=service.path))
    _run_all(service.start)
    print(_("started\ttapebot; it starts with this machine from now on"))
    print(_("`tapebot service status` shows if it runs, `tapebot service logs` what it says."))
    return 0


def _service(settings: Settings, folder: Path) -> Service:
    if sys.platform == "darwin":
        return launchd_service(settings, folder)
    if os.geteuid() == 0:
        raise SettingsError(
            _(
                "root needs a service of the system, with a user of its own: deploy/RUNBOOK.md tells "
                "how. Run this as the user who shall have tapebot"
            )
        )
    if shutil.which("systemctl") is None:
        raise SettingsError(
            _(
                "this machine has no systemd: start `tapebot run` with what it has, such as runit, "
                "cron's @reboot, or a container"
            )
        )
    return systemd_service(settings, folder)


def _run_all(commands: Sequence[list[str]]) -> None:
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            code = _("exit code {returncode}", returncode=done.returncode)
            said = (done.stderr or done.stdout).strip() or code
            raise TapebotError(
                _("`{command}` failed: {said}", command=shlex.join(command), said=said)
            )


def _call(command: list[str]) -> int:
    """Run a program in place of this one's output; return its exit code."""
    if shutil.which(command[0]) is None:
        line = shlex.join(command)
        raise SettingsError(
            _("`{command}` is not there; run by hand: {line}", command=command[0], line=line)
        )
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603
    except KeyboardInterrupt:
        return 0


def _unit_text(text: str) -> str:
    """Return a text as a unit's value: systemd expands ``%``."""
    return text.replace("%", "%%")


def _unit_word(word: str) -> str:
    """Return one word of a unit's list, quoted; ``$`` is expanded in command lines alone."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_unit_text(escaped)}"'
