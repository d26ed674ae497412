"""Find stale and secret facts by their texts and dates. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from bot.core.i18n import _
from bot.memory.audit.findings import (
    AuditedScope,
    AuditedSession,
    AuditFinding,
    parse_timestamp,
    redacted_fact_text,
)
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.fact import Fact

_LONG = timedelta(days=365)


def stale_facts(scope: AuditedScope, now: datetime) -> Iterator[AuditFinding]:
    """Yield active facts that nobody said for a year.

    Args:
        scope: The scope to check.
        now: Present time in the user's time zone.
    """
    for fact in scope.fold.active():
        if (why := _old(fact, now)) is not None:
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
