"""A fact as people read it, in the current language. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from bot.core.i18n import N_, _, current_language, format_date
from bot.memory.records.fact import Evidence, Fact

_YOU_SAID = N_("On {day} you said: “{words}”")
_SOMEBODY_SAID = N_("On {day} {who} said: “{words}”")
_ANSWERED = N_("{said} (answering: “{question}”)")


def fact_words(fact: Fact, timezone: tzinfo | None) -> str:
    """Return a fact in the current language: its sentence, or a quotation until that is judged."""
    if not fact.quoted or not fact.gloss:
        return fact.gloss
    return "; ".join(_said(one, timezone) for one in fact.evidence if one.quote.strip())


def _said(evidence: Evidence, timezone: tzinfo | None) -> str:
    words, day = " ".join(evidence.quote.split()), _day(evidence.when, timezone)
    if evidence.origin == "person":
        said = _(_YOU_SAID, day=day, words=words)
    else:
        said = _(_SOMEBODY_SAID, day=day, who=evidence.who, words=words)
    return _(_ANSWERED, said=said, question=evidence.context) if evidence.context else said


def _day(stamp: str, timezone: tzinfo | None) -> str:
    try:
        day = datetime.fromisoformat(stamp).astimezone(timezone or UTC).date()
    except (ValueError, OverflowError):
        return _("an unknown day")
    if current_language() == "en":
        return f"{day.day} {day:%B %Y}"
    return format_date(day, "long")
