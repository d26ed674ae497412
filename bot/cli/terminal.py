"""The terminal that a command runs at, and the person at it."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path

from bot.core.errors import SettingsError
from bot.core.i18n import _


def complete_streams() -> None:
    """Have streams that commands can use: none is closed, and output takes text of any script."""
    nothing = Path(os.devnull)
    sys.stdin = sys.stdin or nothing.open(encoding="utf-8")
    sys.stdout = sys.stdout or nothing.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nothing.open("w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        with suppress(OSError):  # the file behind it was exchanged
            sys.stdout.reconfigure(errors="backslashreplace")


def at_terminal() -> bool:
    """Return whether a person is at standard input and output."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def confirm(question: str, *, yes: bool, without: str) -> bool:
    """Ask for a yes, unless it was given; without a terminal, refuse with what to do."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise SettingsError(without)
    return says_yes(question)


def says_yes(question: str) -> bool:
    """Ask at the terminal; the end of input is no yes."""
    try:
        reply = input(question).strip().lower()
    except EOFError:  # after Ctrl-D
        print()
        return False
    return reply in (_("y"), _("yes"), "y", "yes")
