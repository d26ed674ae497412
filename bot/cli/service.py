"""``tapebot service``: run tapebot whenever this machine runs, as a service of this user.

On Linux it is a user unit of systemd, on macOS an agent of launchd. Both start ``tapebot run`` in the
folder in which the service was installed, because ``.env`` is read from there, and find the programs that
the installing shell finds, such as git and those of MCP servers.
"""

from __future__ import annotations

import getpass
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from bot.core.errors import SettingsError, TapebotError
from bot.core.files import private_directory, replace_file
from bot.core.i18n import _
from bot.runtime.settings import Settings

UNIT = "tapebot.service"
LABEL = "org.tapebot.tapebot"
_ARGUMENTS = ("-m", "bot", "run")
_NEWEST_LINES = "100"


class Service(ABC):
    """tapebot as a service."""

    path: Path
    """The file that describes it to the system."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._home = settings.home
        self._folder = folder
        self._environment = {
            "TAPEBOT_HOME": str(settings.home),
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONUTF8": "1",
        }

    @abstractmethod
    def description(self) -> bytes:
        """Return the content of ``path``."""

    @abstractmethod
    def start_commands(self) -> list[list[str]]:
        """Return the commands that start it, now and with the machine."""

    @abstractmethod
    def stop_commands(self) -> list[list[str]]:
        """Return the commands that stop it for good."""

    def forget_commands(self) -> list[list[str]]:
        """Return the commands that make the system forget it, once its file is gone."""
        return []

    @abstractmethod
    def status_command(self) -> list[str]:
        """Return the command that shows if it runs."""

    @abstractmethod
    def log_command(self) -> list[str]:
        """Return the command that shows its log."""


class SystemdService(Service):
    """A user unit of systemd."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        super().__init__(settings, folder)
        config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        self.path = Path(config) / "systemd" / "user" / UNIT

    def description(self) -> bytes:
        """Return the unit."""
        program = " ".join(
            _unit_word(word).replace("$", "$$") for word in (sys.executable, *_ARGUMENTS)
        )
        given = " ".join(_unit_word(f"{name}={value}") for name, value in self._environment.items())
        return f"""\
[Unit]
Description=tapebot, an assistant that remembers
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart={program}
WorkingDirectory={_unit_text(str(self._folder))}
Environment={given}
UMask=0077
Restart=on-failure
RestartSec=5
# The running turn stays on the tape; the next start continues it.
KillMode=mixed
TimeoutStopSec=60
NoNewPrivileges=yes

[Install]
WantedBy=default.target
""".encode()

    def start_commands(self) -> list[list[str]]:
        """Reload, enable, start; lingering keeps it running when nobody is logged in."""
        return [
            ["systemctl", "--user", "daemon-reload"],
            ["systemctl", "--user", "enable", UNIT],
            ["systemctl", "--user", "restart", UNIT],
            ["loginctl", "enable-linger", getpass.getuser()],
        ]

    def stop_commands(self) -> list[list[str]]:
        """Stop and disable."""
        return [["systemctl", "--user", "disable", "--now", UNIT]]

    def forget_commands(self) -> list[list[str]]:
        """Reload."""
        return [["systemctl", "--user", "daemon-reload"]]

    def status_command(self) -> list[str]:
        """Show the unit's state."""
        return ["systemctl", "--user", "--no-pager", "status", UNIT]

    def log_command(self) -> list[str]:
        """Show the journal, and what follows."""
        return ["journalctl", "--user", "--unit", UNIT, "--lines", _NEWEST_LINES, "--follow"]


class LaunchdService(Service):
    """An agent of launchd."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        super().__init__(settings, folder)
        self.path = Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        self._domain = f"gui/{os.getuid()}"
        self._log = self._home / "logs" / "service.log"

    def description(self) -> bytes:
        """Return the property list."""
        return plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": [sys.executable, *_ARGUMENTS],
                "WorkingDirectory": str(self._folder),
                "EnvironmentVariables": self._environment,
                "RunAtLoad": True,
                "KeepAlive": {"SuccessfulExit": False},
                "ExitTimeOut": 60,
                "Umask": 0o077,
                "StandardOutPath": str(self._log),
                "StandardErrorPath": str(self._log),
            }
        )

    def start_commands(self) -> list[list[str]]:
        """Load the agent anew."""
        return [
            ["launchctl", "bootstrap", self._domain, str(self.path)],
            ["launchctl", "kickstart", "-k", f"{self._domain}/{LABEL}"],
        ]

    def stop_commands(self) -> list[list[str]]:
        """Unload the agent."""
        return [["launchctl", "bootout", f"{self._domain}/{LABEL}"]]

    def status_command(self) -> list[str]:
        """Show the agent's state."""
        return ["launchctl", "print", f"{self._domain}/{LABEL}"]

    def log_command(self) -> list[str]:
        """Show what it printed, and what follows."""
        return ["tail", "-n", _NEWEST_LINES, "-F", str(self._log)]


def run_service(settings: Settings, command: str) -> int:
    """Install the service, remove it, or show its state or log.

    Returns:
        0, or the exit code of the program that shows the state.

    Raises:
        SettingsError: This user or this machine cannot have such a service.
        TapebotError: The system refused; the text has its words.
        OSError: The file cannot be written.
    """
    service = _service(settings, Path.cwd())
    if command == "install":
        return _install(service, settings)
    if not service.path.exists():
        raise SettingsError(_("there is no service yet: `tapebot service install` makes one"))
    if command == "remove":
        _run_all(service.stop_commands())
        service.path.unlink(missing_ok=True)
        _run_all(service.forget_commands())
        print(_("removed\t{path}", path=service.path))
        print(_("Your data in {home} is unchanged.", home=settings.home))
        return 0
    return _call(service.status_command() if command == "status" else service.log_command())


def _install(service: Service, settings: Settings) -> int:
    private_directory(settings.home / "logs")
    private_directory(service.path.parent)
    if service.path.exists():
        # launchd refuses to load an agent twice.
        subprocess.run(service.stop_commands()[0], check=False, capture_output=True)  # noqa: S603
    replace_file(service.path, service.description())
    print(_("wrote\t{path}", path=service.path))
    _run_all(service.start_commands())
    print(_("started\ttapebot; it starts with this machine from now on"))
    print(_("`tapebot service status` shows if it runs, `tapebot service logs` what it says."))
    return 0


def _service(settings: Settings, folder: Path) -> Service:
    if sys.platform == "darwin":
        return LaunchdService(settings, folder)
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
    return SystemdService(settings, folder)


def _run_all(commands: Sequence[list[str]]) -> None:
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            said = (done.stderr or done.stdout).strip() or _(
                "exit code {returncode}", returncode=done.returncode
            )
            raise TapebotError(
                _("`{command}` failed: {said}", command=shlex.join(command), said=said)
            )


def _call(command: list[str]) -> int:
    """Run a program in place of this one's output; return its exit code."""
    if shutil.which(command[0]) is None:
        raise SettingsError(
            _(
                "`{command}` is not there; run by hand: {line}",
                command=command[0],
                line=shlex.join(command),
            )
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
