"""Facts in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, tzinfo
from typing import Any

from bot.memory.facts.fact import Fact
from bot.memory.facts.proposals import ProposalDecision
from bot.memory.transcript import format_timestamp

_SURE = ((0.9, "certain"), (0.7, "fairly certain"), (0.5, "not certain"), (0.0, "doubtful"))
_UNITS = ((14, 1, "day"), (63, 7, "week"), (730, 30, "month"))
"""Below how many days an age is counted in a unit, its days, and its name."""

_YEAR = 365
_LISTED = 10
_SHOWN = 300
_MARKUP = re.compile(r"[\\*`~|]|(?<![^\W_])_|_(?![^\W_])|\[(?=[^\]]{0,1000}\]\()")
"""What Markdown would take for more than itself: an underscore within a word is one everywhere."""

AUTHOR_NAMES: Mapping[str, str] = {
    "consolidation": "consolidation",
    "assistant": "the assistant",
    "import": "import",
    "undo": "an undo",
    "judge": "the judge",
}
"""Who changes facts beside people, as shown."""


def fact_label(fact: Fact, *, shared: bool = False) -> str:
    """Return a fact's number as it begins a line."""
    # Bold, since platforms count the lines of a list themselves.
    return f"**{'w' * shared}{fact.id}.**"


def fact_line(fact: Fact, *, shared: bool = False) -> str:
    """Return a fact as a line, cut where it is long."""
    return f"{fact_label(fact, shared=shared)} {escape_markdown(shorten(fact.text))}{unverified_mark(fact)}"


def unverified_mark(fact: Fact) -> str:
    """Return a mark for a fact that nobody has judged yet; empty for others."""
    return " (not verified yet)" if fact.unverified else ""


def escape_markdown(text: str) -> str:
    """Return somebody's words as Markdown that shows them as they are: ``2*3*4``, no hidden links."""
    return _MARKUP.sub(r"\\\g<0>", text)


def shorten(text: str, most: int = _SHOWN) -> str:
    """Return a text, cut where it is long."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


def age_text(stamp: str, today: date, timezone: tzinfo | None) -> str:
    """Return how long ago something was, such as ``3 days``; empty where that is unknown.

    Args:
        stamp: ISO 8601.
        today: The user's date.
        timezone: The user's.
    """
    try:
        moment = datetime.fromisoformat(stamp)
        days = (today - moment.astimezone(timezone).date()).days
    except (ValueError, OverflowError):
        return ""
    if days <= 0:
        return "today"
    for most, unit, word in _UNITS:
        if days < most:
            return _count(days // unit, word)
    return _count(days // _YEAR, "year")


def confidence_text(confidence: float) -> str:
    """Return a confidence in words, with the number."""
    words = next((words for least, words in _SURE if confidence >= least), "doubtful")
    return f"{words} ({confidence:.2f})"


def validity_text(fact: Fact, timezone: tzinfo | None) -> str:
    """Return since when, and until when, a fact held."""
    since = format_timestamp(fact.valid_from, timezone)
    if fact.valid_to is None:
        return f"since {since}"
    return f"from {since} to {format_timestamp(fact.valid_to, timezone)}"


def signals_text(found: Mapping[str, Any]) -> str:
    """Return in words what the gate went by; empty where it needed nothing."""
    parts = []
    quality = found.get("source_quality")
    if isinstance(quality, (int, float)):
        carried = "a person's own words carry it" if quality >= 0.9 else "its source is weak"
        parts.append(f"{carried} ({quality:.2f})")
    conflict = found.get("conflict_level")
    if isinstance(conflict, str):
        against = f"it contradicts another source ({conflict})"
        parts.append("nothing contradicts it" if conflict == "none" else against)
    radius = found.get("blast_radius")
    if isinstance(radius, str):
        whom = "everybody" if radius == "severe" else "nobody outside this memory"
        parts.append(f"a mistake would concern {whom}")
    if isinstance(judged := found.get("judge"), str):
        parts.append(judged)
    return ", ".join(parts)


def decision_text(decided: ProposalDecision) -> str:
    """Return a decision in words: the verdict, the reason, and what the gate went by."""
    why = "" if decided.reason == decided.verdict else f", {decided.reason}"
    # What the judge said may be the reason itself.
    went_by = signals_text({k: v for k, v in decided.signals.items() if v != decided.reason})
    return f"{decided.verdict}{why}{f'; {went_by}' if went_by else ''}"


def bullet_list(lines: Iterable[str]) -> str:
    """Return lines as a list, the first few of many."""
    found = list(lines)
    more = [f"- and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    return "\n".join([*(f"- {one}" for one in found[:_LISTED]), *more])


def fact_count_text(count: int) -> str:
    """Return a number of facts in words."""
    return _count(count, "fact")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
