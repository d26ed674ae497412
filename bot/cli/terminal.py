"""The terminal that a command runs at."""

from __future__ import annotations

import sys


def at_terminal() -> bool:
    """Return whether a person is at standard input and output."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
