"""Format facts and decisions as Markdown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, tzinfo
from typing import Any

from bot.memory.records.fact import Fact
from bot.memory.records.proposals import ProposalDecision
from bot.memory.records.transcript import format_timestamp

_SURE = ((0.9, "certain"), (0.7, "fairly certain"), (0.5, "not certain"), (0.0, "doubtful"))
_UNITS = ((14, 1, "day"), (63, 7, "week"), (730, 30, "month"))
"""Upper limit in days, days per unit, and unit name of an age."""

_YEAR = 365
_LISTED = 10
_SHOWN = 300
_MARKUP = re.compile(r"[\\*`~|]|(?<![^\W_])_|_(?![^\W_])|\[(?=[^\]]{0,1000}\]\()")
"""Characters that Markdown would interpret; an underscore within a word is literal everywhere."""

AUTHOR_NAMES: Mapping[str, str] = {
    "consolidation": "consolidation",
    "assistant": "the assistant",
    "import": "import",
    "undo": "an undo",
    "judge": "the judge",
    "client": "a program",
}
"""Display names of authors of changes that are not people."""


def fact_label(fact: Fact, *, shared: bool = False) -> str:
    """Return a fact's number as the label of a line."""
    # Bold, since Markdown renderers renumber lists.
    return f"**{'w' * shared}{fact.id}.**"


def fact_line(fact: Fact, *, shared: bool = False) -> str:
    """Return a fact as one line, shortened."""
    return f"{fact_label(fact, shared=shared)} {escape_markdown(shorten(fact.text))}{unverified_mark(fact)}"


def unverified_mark(fact: Fact) -> str:
    """Return a mark for a fact that awaits a judge; empty for others."""
    return " (not verified yet)" if fact.unverified else ""


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it literally: ``2*3*4``, no hidden links."""
    return _MARKUP.sub(r"\\\g<0>", text)


def shorten(text: str, most: int = _SHOWN) -> str:
    """Return a text, cut with an ellipsis if it is too long."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


def age_text(stamp: str, today: date, timezone: tzinfo | None) -> str:
    """Return an age, such as ``3 days``; empty if unknown.

    Args:
        stamp: Time in ISO 8601.
        today: Current date in the user's time zone.
        timezone: The user's time zone.
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
    """Return a confidence in words and as a number."""
    words = next((words for least, words in _SURE if confidence >= least), "doubtful")
    return f"{words} ({confidence:.2f})"


def validity_text(fact: Fact, timezone: tzinfo | None) -> str:
    """Return the period in which a fact holds or held."""
    since = format_timestamp(fact.valid_from, timezone)
    if fact.valid_to is None:
        return f"since {since}"
    return f"from {since} to {format_timestamp(fact.valid_to, timezone)}"


def signals_text(found: Mapping[str, Any], *, erased: bool = False) -> str:
    """Return the gate's signals in words; empty if there are none.

    Args:
        found: The signals.
        erased: The words that supported the fact were erased since.
    """
    parts = []
    quality = found.get("source_quality")
    if isinstance(quality, (int, float)):
        support = "supported it, which were erased since" if erased else "support it"
        carried = f"a person's own words {support}" if quality >= 0.9 else "its source is weak"
        parts.append(f"{carried} ({quality:.2f})")
    conflict = found.get("conflict_level")
    if isinstance(conflict, str):
        against = f"it contradicts another source ({conflict})"
        parts.append("nothing contradicts it" if conflict == "none" else against)
    radius = found.get("blast_radius")
    if isinstance(radius, str):
        whom = "everyone" if radius == "severe" else "only this memory"
        parts.append(f"a mistake would affect {whom}")
    if isinstance(judged := found.get("judge"), str):
        parts.append(judged)
    return ", ".join(parts)


def decision_text(decided: ProposalDecision, *, erased: bool = False) -> str:
    """Return a decision in words: verdict, reason and the gate's signals.

    Args:
        decided: The decision.
        erased: The words that supported the fact were erased since.
    """
    why = "" if decided.reason == decided.verdict else f", {decided.reason}"
    # The judge's ruling may be the reason itself.
    signals = {k: v for k, v in decided.signals.items() if v != decided.reason}
    went_by = signals_text(signals, erased=erased)
    return f"{decided.verdict}{why}{f'; {went_by}' if went_by else ''}"


def bullet_list(lines: Iterable[str]) -> str:
    """Return lines as a bullet list, cut after the first ``_LISTED``."""
    found = list(lines)
    more = [f"- and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    return "\n".join([*(f"- {one}" for one in found[:_LISTED]), *more])


def fact_count_text(count: int) -> str:
    """Return a number of facts in words."""
    return _count(count, "fact")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
