"""Write settings to ``.env`` and ``tapebot.toml``.

Rule 1: secrets go to ``.env`` only, and what belongs to a secret goes with it; the rest goes to
    ``tapebot.toml``, unless ``.env`` has it already.
Rule 2: one replaced file is the whole change: after a kill all of it counts, or nothing.
Rule 3: both files are readable by their owner only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dotenv import dotenv_values
from filelock import FileLock

from bot.core.errors import SettingsError
from bot.core.files import PRIVATE_FILE, create_or_replace_file, private_directory
from bot.core.i18n import _
from bot.runtime.settings import ENV_FILE, PREFIX, TOML_FILE, Settings, exported_variables
from bot.runtime.setup import env_text, toml_text

_T = TypeVar("_T")


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
        self.toml = settings.config or settings.home / TOML_FILE
        self._home = settings.home
        self._in_home = settings.home / ENV_FILE

    @property
    def env(self) -> Path:
        """The ``.env`` that is written: the working directory's if it is tapebot's, else the home's."""
        near = ENV_FILE.absolute()
        names = env_text.variables(_read(near))
        return near if any(map(_is_own, names)) else self._in_home

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
            path = self._env_for(values, secret=secret)
            if path is None:
                path = self.toml
                _write(path, toml_text.set_keys(_read(path), _fields(values), _fields(comments)))
            else:
                self._write_env(path, values, comments)
        return Written(path, self._overridden(values))

    def _env_for(self, values: Mapping[str, str | None], *, secret: bool) -> Path | None:
        """Return the ``.env`` that these settings go to; None for the TOML file."""
        holders = [self._holder(name) for name in values]
        near = next((path for path in holders if path == ENV_FILE.absolute()), None)
        if near is not None:
            return near
        if secret:
            return self.env
        return next((path for path in holders if path is not None), None)

    def _holder(self, variable: str) -> Path | None:
        """Return the ``.env`` that sets a variable, the nearer one first."""
        for path in (ENV_FILE.absolute(), self._in_home):
            names = env_text.variables(_read(path))
            if any(name.upper() == variable.upper() for name in names):
                return path
        return None

    def _write_env(
        self, path: Path, values: Mapping[str, str | None], comments: Mapping[str, str]
    ) -> None:
        """Write a ``.env``, then take what it now sets out of the files that it wins over."""
        below = toml_text.keys(_read(self.toml))
        farther = env_text.variables(_read(self._in_home)) if path != self._in_home else []
        hidden = {name for name in values if _field(name) in below} | {*farther}
        # An empty value hides what another file has, until that is removed.
        shown = {
            name: "" if value is None and name in hidden else value
            for name, value in values.items()
        }
        _write(path, env_text.set_variables(_read(path), shown, comments))
        stale = {_field(name): None for name in values if _field(name) in below}
        if stale:
            _write(self.toml, toml_text.set_keys(_read(self.toml), stale))

    def _overridden(self, values: Mapping[str, str | None]) -> tuple[str, ...]:
        """Return the variables that the environment sets otherwise."""
        given = {
            name.upper(): value
            for name, value in os.environ.items()
            if name not in exported_variables()
        }
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


def _fields(values: Mapping[str, _T]) -> dict[str, _T]:
    return {_field(name): value for name, value in values.items()}


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
