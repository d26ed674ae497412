"""Run all audit rules over one scope or one session. Pure."""

from __future__ import annotations

from datetime import datetime

from bot.memory.audit import bus_consistency as compartments
from bot.memory.audit import consistency as books
from bot.memory.audit import fact_content as content
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
    audit_findings = [
        *content.stale_facts(scope, now),
        *content.secret_facts(scope),
        *unsupported_facts(scope),
        *books.broken_fact_chains(scope),
        *books.flapping_facts(scope),
        *books.overdue_pending_facts(scope, now),
        *compartments.groundless_beliefs(scope),
        *compartments.sourceless_references(scope),
        *compartments.problem_errors(scope),
        *compartments.unexplained_decisions(scope),
    ]
    return sorted(
        audit_findings,
        key=lambda audit_finding: (
            AUDIT_FINDING_KINDS.index(audit_finding.kind),
            audit_finding.facts,
        ),
    )


def audit_session(session: AuditedSession) -> list[AuditFinding]:
    """Return the findings for a session's memory zone, notes and own records."""
    audit_findings = [*content.secret_notes(session), *books.zone_mismatches(session)]
    if session.own is not None:
        rules = (compartments.problem_errors, compartments.unexplained_decisions)
        audit_findings += [finding for rule in rules for finding in rule(session.own)]
    return audit_findings
