"""What a rewrite of long-term memory may not do. Pure.

Rule 1: "(nothing)", "none" and the like are not memory.
Rule 2: a rewrite that loses more than a third of the lines must name what it removes.
Rule 3: long-term memory has a size that still fits every prompt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

from bot.errors import MemoryRefused
from bot.memory.words import words_of

MAX_BYTES = 8_192
"""Hard bound; 4 KB is recommended."""

_NOTHING = re.compile(
    r"[\W_]*(nothing( new)?|none|empty|null|n/?a|no (change|update|memor(y|ies))s?|unchanged)"
    r"( (to|was|is) (save|remember|add|saved|added|new|report))?( yet)?[\W_]*",
    re.IGNORECASE,
)


def lines_of(text: str) -> list[str]:
    """Return a memory's lines without bullets and blanks, headings left out."""
    stripped = (line.strip().lstrip("-*•").strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")]


def check_rewrite(old: str, new: str, removed: Sequence[str] = (), *, strict: bool = False) -> None:
    """Refuse a rewrite that would lose memory by accident.

    Args:
        old: Current long-term memory.
        new: What would replace it.
        removed: Lines of the old that are dropped on purpose.
        strict: Refuse any loss, not only one of more than a third: whoever rewrites can mend it.

    Raises:
        MemoryRefused: The text says which rule was broken and what to do.
    """
    if says_nothing(new):
        raise MemoryRefused(
            f"{new.strip()[:40]!r} is not memory: give the whole text, with all existing facts"
        )
    size = len(new.encode("utf-8", "backslashreplace"))
    if size > MAX_BYTES:
        raise MemoryRefused(f"{size} bytes is too long: at most {MAX_BYTES}, better under 4096")
    named = set(lines_of("\n".join(removed)))
    before = lines_of(old)
    unnamed = [line for line in _lost(before, lines_of(new)) if line not in named]
    if len(unnamed) * 3 > len(before) or (strict and unnamed):
        listed = "; ".join(repr(line[:80]) for line in unnamed[:10])
        raise MemoryRefused(
            f"this would drop {len(unnamed)} of {len(before)} facts ({listed}): keep them, or name "
            "each one that is to be removed"
        )


def check_date(day: str | None, today: date, retention_days: int) -> str:
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


def says_nothing(text: str) -> bool:
    """True for "(nothing)", "none", "no changes" and the like: words for no memory at all."""
    return _NOTHING.fullmatch(text.strip()) is not None


def _without(lines: Sequence[str], kept: Counter[str]) -> list[str]:
    """Return lines without those that are kept, each as often as it is."""
    times = kept.copy()
    rest = []
    for line in lines:
        if times[line]:
            times[line] -= 1
        else:
            rest.append(line)
    return rest


def _lost(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines that no line of the new text stands for.

    A new line may stand for several old ones, but each of its words only for one of them.
    """
    kept = Counter(before) & Counter(after)
    changed = _without(before, kept)
    left = _without(after, kept)
    heirs = [set(words_of(line)) for line in left]
    lost = []
    for line in changed:
        words = set(words_of(line))
        heir = next((other for other in heirs if len(words & other) * 3 >= len(words) * 2), None)
        if heir is None:
            lost.append(line)
        else:
            heir -= words
    return lost
