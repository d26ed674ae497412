"""Change settings at the top of the text of ``tapebot.toml``. Pure.

Everything else stays as it is: tables, order, comments, blank lines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from bot.core.errors import SettingsError
from bot.core.i18n import _


def set_keys(
    text: str, values: Mapping[str, str | None], comments: Mapping[str, str] | None = None
) -> str:
    """Return the text of a TOML file with settings set or removed.

    Args:
        text: The file's text.
        values: New values by name; None removes a setting.
        comments: What stands above a setting that is new, by name; without ``#``.

    Raises:
        SettingsError: The text is not TOML.
    """
    for name, value in values.items():
        try:
            document = tomlkit.parse(text)
        except TOMLKitError as error:
            raise SettingsError(_("tapebot.toml cannot be read: {why}.", why=error)) from error
        if name in document:
            if value is None:
                document.remove(name)
            else:
                document[name] = value
            text = tomlkit.dumps(document)
        elif value is not None:
            text = _with_key(text, name, value, (comments or {}).get(name, ""))
    return text


def keys(text: str) -> frozenset[str]:
    """Return the names of the settings that a TOML file has.

    Raises:
        SettingsError: The text is not TOML.
    """
    try:
        return frozenset(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_("tapebot.toml cannot be read: {why}.", why=error)) from error


def _with_key(text: str, name: str, value: str, comment: str) -> str:
    """Add a setting above the tables: below one it would be the table's."""
    end = "\r\n" if "\r\n" in text else "\n"
    above = f"# {comment}{end}" if comment else ""
    added = f"{above}{name} = {tomlkit.item(value).as_string()}{end}"
    wanted = {**tomllib.loads(text), name: value}
    for place in _places(text):
        before, after = text[:place], text[place:]
        gap = "" if not before or before.endswith("\n") else end
        found = f"{before}{gap}{added}{end if after.strip() else ''}{after}"
        if _parsed(found) == wanted:
            return found
    return added + text


def _places(text: str) -> Iterator[int]:
    """Yield where the first table may begin, comments above it included; then the end."""
    place = begin = 0
    for line in text.splitlines(keepends=True):
        stripped = line.lstrip()
        if stripped.startswith("["):
            yield begin
            break
        place += len(line)
        if not stripped.startswith("#"):
            begin = place
    else:
        yield len(text)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
