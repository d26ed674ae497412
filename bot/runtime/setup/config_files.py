"""Write settings to ``.env`` and ``tapebot.toml``.

Rule 1: settings go to ``.env``. What ``tapebot.toml`` has is changed there, unless a secret, or a
    setting that it has not, comes with it.
Rule 2: one replaced file is the whole change: after a kill all of it counts, or nothing.
Rule 3: both files are readable by their owner only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values
from filelock import FileLock

from bot.core.errors import SettingsError
from bot.core.files import PRIVATE_FILE, create_or_replace_file, private_directory
from bot.core.i18n import _
from bot.runtime.settings import ENV_FILE, PREFIX, TOML_FILE, Settings, exported_variables
from bot.runtime.setup.file_text import change_keys, keys, set_variables, variables


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes:
        path: The file that has the settings now.
        overridden: Variables of the environment that win over it.
    """

    path: Path
    overridden: tuple[str, ...]


class ConfigFiles:
    """The files in which a home's settings are.

    Args:
        settings: The settings that locate them.
    """

    def __init__(self, settings: Settings) -> None:
        self._toml = settings.config or settings.home / TOML_FILE
        self._home = settings.home
        self._in_home = settings.home / ENV_FILE

    def write(
        self, values: Mapping[str, str | None], comments: Mapping[str, str], *, secret: bool
    ) -> Written:
        """Set settings, and remove those whose value is None.

        Args:
            values: By the variable's name, ``TAPEBOT_...`` or another one.
            comments: What stands above those that are new.
            secret: Whether one of them is a secret.

        Raises:
            SettingsError: A file cannot be read.
            OSError: A file cannot be written.
        """
        private_directory(self._home)
        with FileLock(self._home / ".setup.lock", mode=PRIVATE_FILE):
            path = self._target(values, secret=secret)
            below = keys(_read(self._toml))
            in_toml = {
                _field(name): value for name, value in values.items() if _field(name) in below
            }
            if path != self._toml:
                farther = variables(_read(self._in_home)) if path != self._in_home else []
                # An empty value hides what another file has, until that is removed.
                shown = {
                    name: ""
                    if value is None and (_field(name) in below or name in farther)
                    else value
                    for name, value in values.items()
                }
                _write(path, set_variables(_read(path), shown, comments))
                # Of variables that are not tapebot's own, an empty value hides nothing.
                gone = [name for name in farther if name in values and not _is_own(name)]
                if removed := {name: None for name in gone if values[name] is None}:
                    _write(self._in_home, set_variables(_read(self._in_home), removed))
                in_toml = dict.fromkeys(in_toml)
            if in_toml:
                _write(self._toml, change_keys(_read(self._toml), in_toml))
        return Written(path, self._overridden(values))

    def _target(self, values: Mapping[str, str | None], *, secret: bool) -> Path:
        """Return the file that these settings go to: all to one."""
        near, names = ENV_FILE.absolute(), {name.upper() for name in values}
        set_near = {name.upper() for name in variables(_read(near))}
        if names & set_near:
            return near
        set_in_home = {name.upper() for name in variables(_read(self._in_home))}
        needed = {_field(name) for name, value in values.items() if value is not None}
        in_toml = keys(_read(self._toml)) & {*map(_field, names)}
        if in_toml and not secret and not names & set_in_home and needed <= in_toml:
            return self._toml
        # The working directory's file, if it is tapebot's.
        return near if any(map(_is_own, set_near)) else self._in_home

    def _overridden(self, values: Mapping[str, str | None]) -> tuple[str, ...]:
        """Return the variables that the environment sets otherwise."""
        exported = exported_variables()
        given = {name.upper(): value for name, value in os.environ.items() if name not in exported}
        return tuple(
            name for name, value in values.items() if given.get(name, value or "") != (value or "")
        )


def read_variable(settings: Settings, name: str) -> str | None:
    """Return a variable that is not tapebot's own: the environment's, else a ``.env``'s."""
    if name in os.environ and name not in exported_variables():
        return os.environ[name] or None
    found = (dotenv_values(path).get(name) for path in (ENV_FILE, settings.home / ENV_FILE))
    return next(filter(None, found), None)


def _is_own(name: str) -> bool:
    return name.upper().startswith(PREFIX)


def _field(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower() if _is_own(variable) else ""


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise SettingsError(_("{path} cannot be read: it is not UTF-8.", path=path)) from error


def _write(path: Path, text: str) -> None:
    # A link stays a link.
    create_or_replace_file(path.resolve(), text.encode())
