"""Format facts and decisions as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, tzinfo
from typing import Any

from bot.agent.texts import decimal_text, joined, joined_clauses, local_time
from bot.core.i18n import N_, _, ngettext
from bot.core.reasons import reason_text
from bot.core.text import escape_markdown
from bot.memory.records.fact import Fact
from bot.memory.records.fact_words import fact_words
from bot.memory.records.proposals import ProposalDecision

_DOUBTFUL = N_("doubtful ({number})")
_SURE = (
    (0.9, N_("certain ({number})")),
    (0.7, N_("fairly certain ({number})")),
    (0.5, N_("not certain ({number})")),
)
_DAYS, _WEEKS, _MONTHS = 14, 63, 730
"""Ages in days from which weeks, months and years are counted."""

_WEEK, _MONTH, _YEAR = 7, 30, 365
_LISTED = 10
_SHOWN = 300

AUTHOR_NAMES: Mapping[str, str] = {
    "consolidation": N_("consolidation"),
    "assistant": N_("the assistant"),
    "import": N_("import"),
    "undo": N_("an undo"),
    "judge": N_("the judge"),
    "client": N_("a program"),
}
"""Names of authors of changes that are not people, marked for translation."""


def author_name(author: str) -> str:
    """Return the name of an author of changes that is not a person, such as "the judge"."""
    return _(AUTHOR_NAMES[author]) if author in AUTHOR_NAMES else author


_CONFLICTS = {"low": N_("low"), "medium": N_("medium"), "high": N_("high")}
_VERDICTS = {
    "approved": N_("approved"),
    "known": N_("known"),
    "logged": N_("logged"),
    "pending": N_("pending"),
    "refused": N_("refused"),
}


def fact_label(fact: Fact, *, shared: bool = False) -> str:
    """Return a fact's number as the label of a line."""
    # Bold, since Markdown renderers renumber lists.
    return f"**{'w' * shared}{fact.id}.**"


def fact_line(fact: Fact, timezone: tzinfo | None = None, *, shared: bool = False) -> str:
    """Return a fact as one line, shortened; a quotation until its sentence is judged."""
    words = escape_markdown(shorten(fact_words(fact, timezone)))
    return f"{fact_label(fact, shared=shared)} {words}"


def shorten(text: str, most: int = _SHOWN) -> str:
    """Return a text, cut with an ellipsis if it is too long."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


def age_text(stamp: str, today: date, timezone: tzinfo | None) -> str:
    """Return an age, such as ``3 days``, or ``today``; empty if unknown.

    Args:
        stamp: Time in ISO 8601.
        today: Current date in the user's time zone.
        timezone: The user's time zone.
    """
    days = _days_since(stamp, today, timezone)
    if days is None:
        return ""
    if days <= 0:
        return _("today")
    if days < _DAYS:
        return ngettext("{n} day", "{n} days", days)
    if days < _WEEKS:
        return ngettext("{n} week", "{n} weeks", days // _WEEK)
    if days < _MONTHS:
        return ngettext("{n} month", "{n} months", days // _MONTH)
    return ngettext("{n} year", "{n} years", days // _YEAR)


def is_today(stamp: str, today: date, timezone: tzinfo | None) -> bool:
    """Return whether a time is of today, or later."""
    days = _days_since(stamp, today, timezone)
    return days is not None and days <= 0


def _days_since(stamp: str, today: date, timezone: tzinfo | None) -> int | None:
    try:
        moment = datetime.fromisoformat(stamp)
        return (today - moment.astimezone(timezone).date()).days
    except (ValueError, OverflowError):
        return None


def confidence_text(confidence: float) -> str:
    """Return a confidence in words and as a number."""
    words = next((words for least, words in _SURE if confidence >= least), _DOUBTFUL)
    return _(words, number=decimal_text(confidence, 2))


def validity_text(fact: Fact, timezone: tzinfo | None) -> str:
    """Return the period in which a fact holds or held."""
    since = local_time(fact.valid_from, timezone)
    if fact.valid_to is None:
        return _("since {time}", time=since)
    return _("from {start} to {end}", start=since, end=local_time(fact.valid_to, timezone))


def signals_text(found: Mapping[str, Any], *, erased: bool = False) -> str:
    """Return the gate's signals in words; empty if there are none.

    Args:
        found: The signals.
        erased: The words that supported the fact were erased since.
    """
    parts = []
    quality = found.get("source_quality")
    if isinstance(quality, (int, float)):
        number = decimal_text(quality, 2)
        if quality < 0.9:
            parts.append(_("its source is weak ({number})", number=number))
        elif erased:
            parts.append(
                _(
                    "a person's own words supported it, which were erased since ({number})",
                    number=number,
                )
            )
        else:
            parts.append(_("a person's own words support it ({number})", number=number))
    conflict = found.get("conflict_level")
    if conflict == "none":
        parts.append(_("nothing contradicts it"))
    elif isinstance(conflict, str):
        level = _(_CONFLICTS[conflict]) if conflict in _CONFLICTS else conflict
        parts.append(_("it contradicts another source ({level})", level=level))
    radius = found.get("blast_radius")
    if radius == "severe":
        parts.append(_("a mistake would affect everyone"))
    elif isinstance(radius, str):
        parts.append(_("a mistake would affect only this memory"))
    if judged := reason_text(found.get("judge")):
        parts.append(judged)
    return joined(parts)


def decision_text(decided: ProposalDecision, *, erased: bool = False) -> str:
    """Return a decision in words: verdict, reason and the gate's signals.

    Args:
        decided: The decision.
        erased: The words that supported the fact were erased since.
    """
    text = _(_VERDICTS[decided.verdict])
    if decided.reason and decided.reason != decided.verdict:
        text = joined([text, f"{decided.reason}"])
    # The judge's ruling may be the reason itself.
    signals = {k: v for k, v in decided.signals.items() if v != decided.reason}
    went_by = signals_text(signals, erased=erased)
    return joined_clauses([text, went_by]) if went_by else text


def bullet_list(lines: Iterable[str]) -> str:
    """Return lines as a bullet list, cut after the first ``_LISTED``."""
    found = list(lines)
    shown = found[:_LISTED]
    if len(found) > _LISTED:
        shown.append(ngettext("and {n} more", "and {n} more", len(found) - _LISTED))
    return "\n".join(f"- {one}" for one in shown)


def fact_count_text(count: int) -> str:
    """Return a number of facts in words."""
    return ngettext("{n} fact", "{n} facts", count)
