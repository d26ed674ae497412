"""Recognises slash commands in messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

# "/name", "/name@bot" and arguments; "/usr/bin is full" is no command.
_COMMAND = re.compile(r"/([a-z][a-z0-9_]*)(?:@\w+)?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A command's name, in lower case, and the text behind it."""

    name: str
    arguments: str


def parse_command(text: str) -> ParsedCommand | None:
    """Return the command in a message; None where it is none."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    return ParsedCommand(found[1].lower(), (found[2] or "").strip())


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like a mistyped one; None where none is."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return close[0] if close else None
