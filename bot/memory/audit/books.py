"""Whether the books agree: chains, whole states, zones, and what waits. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from bot.memory.audit.finding import (
    AuditedScope,
    AuditedSession,
    Finding,
    day_of,
    moment_of,
    told,
)
from bot.memory.facts.fact import Fact
from bot.memory.facts.fold import FactFold

_WAITS = timedelta(days=30)
_ENDS = 2
"""How often the same words may end before that is flapping."""


def chains(scope: AuditedScope) -> Iterator[Finding]:
    """Yield chains of facts in which a link is missing, or which close on themselves."""
    facts = scope.fold.facts
    for fact in facts.values():
        if fact.supersedes is not None and fact.supersedes not in facts:
            why = f"it took the place of {fact.supersedes}, which does not exist"
            yield Finding("loops", scope.name, (fact.id,), why, _look(scope))
    told_of: set[int] = set()
    for start in facts.values():
        ring = _ring(start, facts)
        if ring and told_of.isdisjoint(ring):
            told_of |= set(ring)
            why = "they took the place of each other in a circle"
            yield Finding("loops", scope.name, tuple(sorted(ring)), why, _look(scope))


def _ring(start: Fact, facts: dict[int, Fact]) -> list[int]:
    """Return the numbers of the circle that a chain runs into; none where it ends."""
    passed: list[int] = []
    at: int | None = start.id
    while at is not None and at in facts:
        if at in passed:
            return passed[passed.index(at) :]
        passed.append(at)
        at = facts[at].supersedes
    return []


def flapping(scope: AuditedScope) -> Iterator[Finding]:
    """Yield what was believed and ended again, more than twice."""
    for ended in scope.replay.endings.values():
        numbers = tuple(sorted(set(ended)))
        known = [fact for number in numbers if (fact := scope.fold.get(number)) is not None]
        if len(ended) > _ENDS and known:
            why = f"it was added and ended {len(ended)} times: {told(known[-1])}"
            yield Finding("loops", scope.name, numbers, why, scope.remove(*known))


def folds(scope: AuditedScope) -> Iterator[Finding]:
    """Yield where the facts as the program opens them are not what the whole tape says."""
    opened, whole = _comparable(scope.fold), _comparable(scope.replay.fold)
    if opened == whole:
        return
    mine, theirs = opened.facts, whole.facts
    numbers = tuple(n for n in sorted(mine.keys() | theirs.keys()) if mine.get(n) != theirs.get(n))
    why = "the last whole state on the tape and the changes before it do not agree"
    if not numbers:
        why += " on what was decided, paused or cleared, or on what the memory bus holds"
    yield Finding("bookkeeping", scope.name, numbers, why, _look(scope))


def _comparable(fold: FactFold) -> FactFold:
    """Return of a fold what must be the same however it was read."""
    return FactFold(
        facts=fold.facts,
        next_id=fold.next_id,
        keys=fold.keys,
        paused=fold.paused,
        cleared=fold.cleared,
        # When a problem was last worked on is told by turns.
        compartments=replace(fold.compartments, used=None),
    )


def pending(scope: AuditedScope, now: datetime) -> Iterator[Finding]:
    """Yield what has waited for a person for more than a month."""
    for fact in scope.fold.pending():
        since = moment_of(fact.changed)
        if since is not None and now - since > _WAITS:
            number = scope.number(fact)
            why = f"it has waited since {day_of(fact.changed, now.tzinfo)}: {told(fact)}"
            do = f"/memory accept {number}, or /memory drop {number}"
            yield Finding("bookkeeping", scope.name, (fact.id,), why, do)


def zones(session: AuditedSession) -> Iterator[Finding]:
    """Yield what a session's prompt shows of memory otherwise than the facts say."""
    parts = ("long-term memory", "what everybody reads", "shared reference")
    for part, shown, rendered in zip(
        parts, session.zone, session.rendered or session.zone, strict=True
    ):
        if shown != rendered:
            extra = len(set(shown.splitlines()) - set(rendered.splitlines()))
            lost = len(set(rendered.splitlines()) - set(shown.splitlines()))
            why = (
                f"its prompt shows {part} otherwise than the facts: {extra} lines more, {lost} less"
            )
            do = "send this chat a message, which renders it anew; then audit again"
            yield Finding("bookkeeping", session.name, (), why, do)


def _look(scope: AuditedScope) -> str:
    return f'tapebot tape verify "{scope.name}" says whether the file is damaged'
