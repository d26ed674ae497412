"""Change settings in the text of ``.env`` and ``tapebot.toml``. Pure.

Rule 1: everything else stays as it is: order, comments, blank lines, line endings.
Rule 2: what is written reads back as the same value.
Rule 3: of several lines that set a variable the last one counts; setting it changes that one.
"""

from __future__ import annotations

import io
import tomllib
from collections.abc import Mapping

import tomlkit
from dotenv.parser import parse_stream

from bot.core.errors import SettingsError
from bot.core.i18n import _
from bot.core.patterns import LazyPattern

_PLAIN = LazyPattern(r"[A-Za-z0-9_./:@%+=,~-]+")
_ASSIGNMENT = LazyPattern(
    r"""([^=]*=(?:[^\S\r\n]+(?![\s#]))?)"""
    r"""('(?:\\[\s\S]|[^'\\])*'|"(?:\\[\s\S]|[^"\\])*"|(?:(?!\s#)[^\r\n])*)([\s\S]*)"""
)
_BOM = "\ufeff"


def set_variables(
    text: str, values: Mapping[str, str | None], comments: Mapping[str, str] | None = None
) -> str:
    """Return the text of a ``.env`` file with variables set or removed.

    Args:
        text: The file's text.
        values: New values by name; None removes a variable.
        comments: What stands above a variable that is new, by name; without ``#``.
    """
    parts = _parts(text)
    end = "\r\n" if "\r\n" in text else "\n"
    for name, value in values.items():
        # tapebot reads the names of its own in any case.
        places = [
            at for at, (key, _text) in enumerate(parts) if (key or "").upper() == name.upper()
        ]
        if value is None:
            for at in places:
                parts[at] = (None, "")
        elif places:
            key, line = parts[places[-1]]
            found = _ASSIGNMENT.fullmatch(line)
            changed = f"{found[1]}{quote_value(value)}{found[3]}" if found else ""
            parts[places[-1]] = (key, changed or f"{name}={quote_value(value)}{end}")
        else:
            whole = "".join(line for _key, line in parts).removeprefix(_BOM)
            gap = "" if not whole or whole.endswith(("\n", "\r")) else end
            comment = (comments or {}).get(name, "")
            above = f"{end if whole else ''}# {comment}{end}" if comment else ""
            parts.append((None, gap + above))
            parts.append((name, f"{name}={quote_value(value)}{end}"))
    return "".join(line for _key, line in parts)


def variables(text: str) -> list[str]:
    """Return the names that a ``.env`` file sets."""
    return [key for key, _line in _parts(text) if key is not None]


def quote_value(value: str) -> str:
    """Return a value as it stands in a ``.env`` file, quoted where it must be.

    Plain values stay bare: Docker does not understand quotes.
    """
    if _PLAIN.fullmatch(value) or not value:
        return value
    # python-dotenv expands ${NAME} even in quotes; this expands to a dollar sign.
    literal = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "${:-$}{")
    return f"'{literal}'"


def _parts(text: str) -> list[tuple[str | None, str]]:
    """Return the pieces of a ``.env`` file, each with the name that it sets, if it does."""
    bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    parts: list[tuple[str | None, str]] = [(None, bom)]
    for binding in parse_stream(io.StringIO(body, newline="")):
        line = binding.original.string
        # Blank lines before it are a piece of their own.
        begin = len(line) - len(line.lstrip())
        cut = max(line.rfind("\n", 0, begin), line.rfind("\r", 0, begin)) + 1
        parts += [(None, line[:cut]), (None if binding.error else binding.key, line[cut:])]
    return parts


def keys(text: str) -> frozenset[str]:
    """Return the names of the settings at the top of ``tapebot.toml``.

    Raises:
        SettingsError: The text is not TOML.
    """
    try:
        return frozenset(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_("tapebot.toml cannot be read: {why}.", why=error)) from error


def change_keys(text: str, values: Mapping[str, str | None]) -> str:
    """Return the text of ``tapebot.toml`` with settings that it has changed, or removed if None.

    Raises:
        SettingsError: The text is not TOML.
    """
    known = keys(text)
    document = tomlkit.parse(text)
    for name in known & values.keys():
        document.remove(name) if values[name] is None else document.update({name: values[name]})
    return tomlkit.dumps(document)
