"""Run all audit rules over one scope or one session. Pure."""

from __future__ import annotations

from datetime import datetime

from bot.memory.audit import (
    bus_consistency as compartments,
)
from bot.memory.audit import (
    consistency as books,
)
from bot.memory.audit import (
    fact_content as content,
)
from bot.memory.audit.fact_evidence import unsupported_facts
from bot.memory.audit.findings import (
    AUDIT_FINDING_KINDS,
    AuditedScope,
    AuditedSession,
    AuditFinding,
)


def audit_scope(scope: AuditedScope, now: datetime) -> list[AuditFinding]:
    """Return the findings for a scope's facts and compartments, sorted by kind.

    Args:
        scope: The scope to audit.
        now: Present time in the user's time zone.
    """
    found = [
        *content.duplicates_and_contradictions(scope),
        *content.stale_facts(scope, now),
        *content.secret_facts(scope),
        *content.instruction_facts(scope),
        *unsupported_facts(scope, now.tzinfo),
        *books.broken_fact_chains(scope),
        *books.flapping_facts(scope),
        *books.fold_mismatches(scope),
        *books.overdue_pending_facts(scope, now),
        *compartments.groundless_beliefs(scope),
        *compartments.sourceless_references(scope),
        *compartments.problem_errors(scope),
        *compartments.broken_links(scope),
    ]
    return sorted(found, key=lambda one: (AUDIT_FINDING_KINDS.index(one.kind), one.facts))


def audit_session(session: AuditedSession) -> list[AuditFinding]:
    """Return the findings for a session's memory zone, notes and own records."""
    found = [*content.secret_notes(session), *books.zone_mismatches(session)]
    if session.own is not None:
        rules = (books.fold_mismatches, compartments.problem_errors, compartments.broken_links)
        found += [finding for rule in rules for finding in rule(session.own)]
    return found
