"""Validate memory text, and split it into lines. Pure.

Rule 1: "(nothing)", "none" and similar placeholders are not memory.
Rule 2: a daily note is not older than the retention.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.core.patterns import LazyPattern

_NOTHING = LazyPattern(
    r"[\W_]*(nothing( new)?|none|empty|null|n/?a|no (change|update|memor(y|ies))s?|unchanged)"
    r"( (to|was|is) (save|remember|add|saved|added|new|report))?( yet)?[\W_]*",
    re.IGNORECASE,
)


def memory_line(text: str) -> str:
    """Return a text as one line of memory, without bullet and heading marks before it."""
    return " ".join(text.split()).lstrip("-*•#> ")


def memory_lines(text: str) -> list[str]:
    """Return a memory text's lines without bullets, blank lines and headings."""
    stripped = (line.strip().lstrip("-*•").strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def check_note_date(day: str | None, today: date, retention_days: int) -> str:
    """Return a daily note's date in ISO format; today if none is given.

    Raises:
        MemoryRefused: It is not a date, or older than the retention.
    """
    if day is None:
        return today.isoformat()
    try:
        parsed = date.fromisoformat(day.strip())
    except ValueError:
        raise MemoryRefused(
            _("{day} is not a date such as {example}", day=repr(day), example=today.isoformat())
        ) from None
    if parsed < today - timedelta(days=retention_days):
        raise MemoryRefused(_("notes older than {days} days are not kept", days=retention_days))
    return parsed.isoformat()


def is_placeholder(text: str) -> bool:
    """Say whether a text is a placeholder, such as "(nothing)", "none" or "no changes"."""
    return _NOTHING.fullmatch(text.strip()) is not None
