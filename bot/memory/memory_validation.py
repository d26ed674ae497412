"""What may not be written to memory. Pure.

Rule 1: "(nothing)", "none" and the like are not memory.
Rule 2: long-term memory has a size that still fits every prompt.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from bot.core.errors import MemoryRefused

MAX_MEMORY_BYTES = 8_192
"""Hard bound; 4 KB is recommended."""

_NOTHING = re.compile(
    r"[\W_]*(nothing( new)?|none|empty|null|n/?a|no (change|update|memor(y|ies))s?|unchanged)"
    r"( (to|was|is) (save|remember|add|saved|added|new|report))?( yet)?[\W_]*",
    re.IGNORECASE,
)


def memory_lines(text: str) -> list[str]:
    """Return a memory's lines without bullets and blanks, headings left out."""
    stripped = (line.strip().lstrip("-*•").strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def check_note_date(day: str | None, today: date, retention_days: int) -> str:
    """Return a daily note's date as ISO; today for None.

    Raises:
        MemoryRefused: It is not a date, or would be pruned at once.
    """
    if day is None:
        return today.isoformat()
    try:
        parsed = date.fromisoformat(day.strip())
    except ValueError:
        raise MemoryRefused(f"{day!r} is not a date such as {today.isoformat()}") from None
    if parsed < today - timedelta(days=retention_days):
        raise MemoryRefused(f"notes older than {retention_days} days are not kept")
    return parsed.isoformat()


def is_placeholder(text: str) -> bool:
    """True for "(nothing)", "none", "no changes" and the like: words for no memory at all."""
    return _NOTHING.fullmatch(text.strip()) is not None
