"""Parse slash commands in messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from bot.core.patterns import LazyPattern

# Matches "/name" and "/name@bot" with arguments, but not "/usr/bin is full".
_COMMAND = LazyPattern(r"/([a-z][a-z0-9_]*)(?:@\w+)?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A command's name, in lower case, and its arguments."""

    name: str
    arguments: str


def parse_command(text: str) -> ParsedCommand | None:
    """Return the command in a message; None if it is not a command."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    return ParsedCommand(found[1].lower(), (found[2] or "").strip())


def split_form(arguments: str) -> tuple[str, str]:
    """Split arguments into the first word, in lower case, and the rest; both may be empty."""
    form, rest = split_word(arguments)
    return form.lower(), rest


def split_word(text: str) -> tuple[str, str]:
    """Split a text into its first word and the rest; both may be empty."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    return word, rest.strip()


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to a mistyped one; None if none is close."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return close[0] if close else None
