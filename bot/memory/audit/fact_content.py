"""Find duplicate, contradictory, stale, secret and instructing facts by their texts. Pure.

Rule 1: duplicates and contradictions are reported in pairs.
Rule 2: a fact is stale if nobody said it for a year, or if it names a date that was ahead when it
    was said and is past now.
Rule 3: a fact that instructs the assistant needs a person's own words in a private scope, or an
    owner's.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from rapidfuzz import fuzz

from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.language.dates import PartialDate, relative_dates
from bot.language.folding import fold_text, words
from bot.language.lexicon import WEEKDAYS
from bot.language.numerals import with_digits
from bot.language.quantities import extract_quantities
from bot.memory.audit.findings import (
    AuditedScope,
    AuditedSession,
    AuditFinding,
    parse_timestamp,
    redacted_fact_text,
)
from bot.memory.gate.fact_similarity import (
    fact_comparison_key,
    is_contradiction,
    is_same_fact,
)
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.transcript import is_owner
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.tape.entries import TapeEntry

_LONG = timedelta(days=365)
_ALIKE = 50
"""Similarity of 100 below which texts are never duplicates; this test is a hundred times faster."""

_SAID_ON = LazyPattern(r"(?:(?<!\s)\s++)?[\[(](?:[^\W\d]{1,12} ){0,3}(\d{4}-\d\d-\d\d)[\])]")


def duplicates_and_contradictions(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield pairs of active facts that say the same or contradict each other."""
    facts = sorted(scope.fold.active(), key=lambda fact: (fact.valid_from, fact.id))
    for place, newer in enumerate(facts):
        for older in facts[:place]:
            numbers = tuple(sorted((older.id, newer.id)))
            if _same(newer, older):
                # Suggest to remove the fact with less evidence.
                spare = older if len(older.evidence) < len(newer.evidence) else newer
                why = _(
                    "they say the same: {older} and {newer}",
                    older=redacted_fact_text(older),
                    newer=redacted_fact_text(newer),
                )
                yield AuditFinding(
                    "duplicates", scope.name, numbers, why, scope.remove_commands(spare)
                )
            elif is_contradiction(newer.text, older.text):
                why = _(
                    "they contradict each other: {older} and, newer, {newer}",
                    older=redacted_fact_text(older),
                    newer=redacted_fact_text(newer),
                )
                do = _(
                    "{first}, or {second}",
                    first=scope.remove_commands(older),
                    second=scope.edit_command(older),
                )
                yield AuditFinding("contradictions", scope.name, numbers, why, do)


def _same(fact: Fact, other: Fact) -> bool:
    mine, theirs = fact_comparison_key(fact.text), fact_comparison_key(other.text)
    if mine != theirs and fuzz.token_set_ratio(mine, theirs) < _ALIKE:
        return False
    return is_same_fact(fact.text, other.text)


def stale_facts(scope: AuditedScope, now: datetime) -> Iterator[AuditFinding]:
    """Yield active facts that nobody said for a year, or whose date is past.

    Args:
        scope: The scope to check.
        now: Present time in the user's time zone.
    """
    for fact in scope.fold.active():
        why = _past(fact, now) or _old(fact, now)
        if why is not None:
            do = _(
                "{first}, or {second}",
                first=scope.edit_command(fact),
                second=scope.remove_commands(fact),
            )
            yield AuditFinding(
                "stale", scope.name, (fact.id,), f"{why}: {redacted_fact_text(fact)}", do
            )


def _old(fact: Fact, now: datetime) -> str | None:
    stamps = [evidence.when for evidence in fact.evidence if evidence.when]
    newest = parse_timestamp(max(stamps, default=fact.changed))
    if newest is None or now - newest <= _LONG:
        return None
    return _("nobody has said it since {day}", day=newest.astimezone(now.tzinfo).date())


def _past(fact: Fact, now: datetime) -> str | None:
    """Return a text about the announced day of a fact that is past; None if there is none."""
    marks = _SAID_ON.findall(fact.text)
    text = _SAID_ON.sub("", fact.text)
    stamps = sorted(evidence.when for evidence in fact.evidence if evidence.when) or [
        fact.valid_from
    ]
    first, newest = _date(stamps[0], now), _date(stamps[-1], now)
    noted = _iso_date(marks[-1]) if marks else first
    low = fold_text(text)
    ahead = [
        day
        for partial_date in extract_quantities(text, low, demanded=True).days
        if newest is not None and (day := _last_of(partial_date)) is not None and day > newest
    ]
    if noted is not None:
        relative = low if marks else _certain(low)
        found = (_last_of(partial_date) for partial_date in relative_dates(relative, noted))
        ahead += [day for day in found if day is not None and day >= noted]
    if not ahead or max(ahead) >= now.date():
        return None
    return _("its date, {day}, has passed", day=max(ahead))


def _certain(low: str) -> str:
    """Return a text without weekdays and numbers, which are relative dates only in some sentences.

    "On Mondays" and "three days a week" recur.
    """
    plain = re.sub(r"\d+", " ", with_digits(low))
    return " ".join(word for word in words(plain) if word not in WEEKDAYS)


def _last_of(day: PartialDate) -> date | None:
    """Return the last day that a partial date may mean; None without a year."""
    if day.year is None:
        return None
    month = day.month or 12
    try:
        return date(day.year, month, day.day or calendar.monthrange(day.year, month)[1])
    except ValueError:
        return None


def _date(stamp: str, now: datetime) -> date | None:
    moment = parse_timestamp(stamp)
    return moment.astimezone(now.tzinfo).date() if moment is not None else None


def _iso_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def secret_facts(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield active and pending facts that look like a secret."""
    for fact in (*scope.fold.active(), *scope.fold.pending()):
        if (what := detect_secret(fact.text)) is not None:
            why = _("it looks like {what}", what=what)
            yield AuditFinding("secrets", scope.name, (fact.id,), why, scope.remove_commands(fact))


def secret_notes(session: AuditedSession) -> Iterator[AuditFinding]:
    """Yield daily notes that look like a secret."""
    for note in session.dailies:
        if (what := detect_secret(note.content)) is not None:
            why = _("the notes of {day} seem to contain {what}", day=note.date, what=what)
            do = _("/memory forget WORDS, with the words next to it")
            yield AuditFinding("secrets", session.name, (), why, do)


def instruction_facts(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield active facts that instruct the assistant, unless people who may do so said them."""
    for fact in scope.fold.active():
        cited = scope.evidence_of(fact)
        allowed = bool(cited) and all(
            _may_order(scope, evidence, entry) for evidence, entry in cited
        )
        if not allowed and contains_instructions(fact.text):
            why = _(
                "it tells the assistant what to do ({admission}): {text}",
                admission=scope.admission_text(fact),
                text=redacted_fact_text(fact),
            )
            yield AuditFinding("orders", scope.name, (fact.id,), why, scope.remove_commands(fact))


def _may_order(scope: AuditedScope, cited: Evidence, entry: TapeEntry | None) -> bool:
    if entry is not None and is_owner(entry) and cited.is_own_words:
        return True
    return cited.origin == "person" and scope.name != WORKSPACE_SCOPE
