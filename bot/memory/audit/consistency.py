"""Check replaced facts, memory zones and pending facts for consistency. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from bot.core.i18n import N_, _, ngettext
from bot.memory.audit.findings import (
    AuditedScope,
    AuditedSession,
    AuditFinding,
    day_of,
    parse_timestamp,
    redacted_fact_text,
)
from bot.memory.records.fact import Fact

_WAITS = timedelta(days=30)
_ENDS = 2
"""How often facts with the same text may end before they count as flapping."""


def broken_fact_chains(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield chains of replaced facts with a missing link or a cycle."""
    facts = scope.fold.facts
    for fact in facts.values():
        if fact.supersedes is not None and fact.supersedes not in facts:
            why = _("it replaced {fact}, which does not exist", fact=fact.supersedes)
            yield AuditFinding("loops", scope.name, (fact.id,), why, _look(scope))
    told_of: set[int] = set()
    for start in facts.values():
        ring = _ring(start, facts)
        if ring and told_of.isdisjoint(ring):
            told_of |= set(ring)
            why = _("they replaced each other in a circle")
            yield AuditFinding("loops", scope.name, tuple(sorted(ring)), why, _look(scope))


def _ring(start: Fact, facts: dict[int, Fact]) -> list[int]:
    """Return the numbers of the cycle that a chain runs into; empty if it ends."""
    passed: list[int] = []
    at: int | None = start.id
    while at is not None and at in facts:
        if at in passed:
            return passed[passed.index(at) :]
        passed.append(at)
        at = facts[at].supersedes
    return []


def flapping_facts(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield facts that were added and ended more than twice."""
    for ended in scope.replay.endings.values():
        numbers = tuple(sorted(set(ended)))
        facts = [fact for number in numbers if (fact := scope.fold.get(number)) is not None]
        if len(ended) > _ENDS and facts:
            why = ngettext(
                "it was added and ended {n} time: {text}",
                "it was added and ended {n} times: {text}",
                len(ended),
                text=redacted_fact_text(facts[-1]),
            )
            yield AuditFinding("loops", scope.name, numbers, why, scope.remove_commands(*facts))


def overdue_pending_facts(scope: AuditedScope, now: datetime) -> Iterator[AuditFinding]:
    """Yield facts that have been pending for more than 30 days."""
    for fact in scope.fold.pending():
        since = parse_timestamp(fact.changed)
        if since is not None and now - since > _WAITS:
            number = scope.number_of(fact)
            why = _(
                "it has been pending since {day}: {text}",
                day=day_of(fact.changed, now.tzinfo),
                text=redacted_fact_text(fact),
            )
            do = _(
                "{first}, or {second}",
                first=f"/memory accept {number}",
                second=f"/memory drop {number}",
            )
            yield AuditFinding("bookkeeping", scope.name, (fact.id,), why, do)


def zone_mismatches(session: AuditedSession) -> Iterator[AuditFinding]:
    """Yield the parts of a session's memory zone that differ from its rendered facts."""
    parts = (N_("long-term memory"), N_("shared facts"), N_("shared reference"))
    for part, shown, rendered in zip(
        parts, session.zone, session.rendered or session.zone, strict=True
    ):
        if shown != rendered:
            extra = len(set(shown.splitlines()) - set(rendered.splitlines()))
            lost = len(set(rendered.splitlines()) - set(shown.splitlines()))
            why = _(
                "its prompt shows {part} differently from the facts: {extra} lines more, {lost} less",
                part=_(part),
                extra=extra,
                lost=lost,
            )
            do = _("send a message to this chat to render it again; then audit again")
            yield AuditFinding("bookkeeping", session.name, (), why, do)


def _look(scope: AuditedScope) -> str:
    return _(
        "{command} says whether the file is damaged", command=f'tapebot tape verify "{scope.name}"'
    )
