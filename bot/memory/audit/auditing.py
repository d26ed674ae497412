"""All rules of an audit over one scope, or over what one session shows. Pure."""

from __future__ import annotations

from datetime import datetime

from bot.memory.audit import books, compartments, content
from bot.memory.audit.finding import KINDS, AuditedScope, AuditedSession, Finding
from bot.memory.audit.grounds import groundless


def audit_scope(scope: AuditedScope, now: datetime) -> list[Finding]:
    """Return what is wrong with the facts of a scope and what else it holds, kind by kind.

    Args:
        scope: The facts and what they rest on.
        now: In the user's time zone.
    """
    found = [
        *content.alike(scope),
        *content.stale(scope, now),
        *content.secrets(scope),
        *content.orders(scope),
        *groundless(scope, now.tzinfo),
        *books.chains(scope),
        *books.flapping(scope),
        *books.folds(scope),
        *books.pending(scope, now),
        *compartments.beliefs(scope),
        *compartments.references(scope),
        *compartments.problems(scope),
        *compartments.links(scope),
    ]
    return sorted(found, key=lambda one: (KINDS.index(one.kind), one.facts))


def audit_session(session: AuditedSession) -> list[Finding]:
    """Return what is wrong with what a session shows of its memory, and with its problems."""
    found = [*content.noted_secrets(session), *books.zones(session)]
    if session.own is not None:
        rules = (books.folds, compartments.problems, compartments.links)
        found += [finding for rule in rules for finding in rule(session.own)]
    return found
