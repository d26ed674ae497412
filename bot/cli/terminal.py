"""The terminal that a command runs at, and the person at it."""

from __future__ import annotations

import sys

from bot.core.errors import SettingsError
from bot.core.i18n import _


def at_terminal() -> bool:
    """Return whether a person is at standard input and output."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def confirm(question: str, *, yes: bool, without: str) -> bool:
    """Ask for a yes, unless it was given; without a terminal, refuse with what to do."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise SettingsError(without)
    return input(question).strip().lower() in (_("y"), _("yes"), "y", "yes")
