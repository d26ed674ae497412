"""Read the state of memory: facts by status, consolidation, the current zone, and the quarantine."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.core.reasons import reason_text
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.decisions import (
    DecisionView,
    EvidenceView,
    evidence_of,
    reasons_of,
    rejected_decisions,
)
from bot.inspector.reading.facts import FactView, LoadedMemory, filter_facts, last_change
from bot.memory.records.fact import Fact
from bot.memory.session.scope.scope_memory import ScopeKind
from bot.memory.session.state.session_fold import SessionFold

_TURNED_DOWN = 20
"""The most rejected decisions to return, newest first."""


class ZoneNow(ReadModel):
    """The current memory zone."""

    version: int
    opened: int = Field(description="Id of the anchor that opens it.")
    sealed: int = Field(description="Id of the anchor that seals it.")
    at: str = Field(description="When it was written, ISO 8601 in UTC.")
    in_prompt: bool = Field(description="Whether the prompt shows this version; if not, it shows "
                                        "an earlier one until the next boundary or consolidation.")  # fmt: skip
    long_term: str = Field(description="Markdown.")
    shared: str = Field(description="Markdown.")
    reference: str = Field(description="Values and beliefs, a line each.")
    notes: list[tuple[str, str]] = Field(description="Day and Markdown, oldest first.")


class ConsolidationStatus(ReadModel):
    """The state of a conversation's consolidation."""

    state: Literal["never", "done", "failed"]
    at: str = Field(
        description="Time of the last one, done or failed, ISO 8601; empty if there was none."
    )
    entry: int | None = Field(description="Id of the entry that records it.")
    error: str = Field(description="Why it failed; it will be retried.")
    waiting: int = Field(description="Messages that are not consolidated yet.")


class MemoryView(ReadModel):
    """The state of memory of a conversation or scope."""

    tape: str
    scope: str = Field(description="The tape that its facts are on.")
    kind: ScopeKind = Field(description="Their owner: a conversation, a person or everyone.")
    session: str = Field(
        description="The conversation in which commands change it; empty if none is known."
    )
    identities: list[str] = Field(description="Identities of their owner, including linked ones.")
    paused: bool = Field(description="Whether memory is paused.")
    active: int = Field(description="Facts that are believed.")
    pending: int = Field(description="Pending facts.")
    ended: int = Field(description="Facts that are no longer valid.")
    erased: int = Field(description="Erased facts.")
    shared: int = Field(description="Shared facts.")
    last_change: int | None = Field(
        description="The entry that `/memory undo` would undo; `/memory undo ID` undoes only that one."
    )
    subjects: list[tuple[str, int]] = Field(
        description="Subjects of active facts, with the number of facts."
    )
    consolidation: ConsolidationStatus | None = Field(description="Null for a scope.")
    zone: ZoneNow | None = Field(description="Null for a scope, and if there is none yet.")


class QuarantinedFact(ReadModel):
    """A fact that waits for a person's decision."""

    fact: FactView
    reason: str = Field(description="Why it is not believed.")
    evidence: EvidenceView | None = Field(description="The newest piece.")


class Quarantine(ReadModel):
    """What the write gate did not admit to memory."""

    tape: str
    scope: str
    session: str
    total: int = Field(description="Facts that wait.")
    waiting: list[QuarantinedFact]
    next: int | None = Field(description="Cursor of the next page; null at the end.")
    turned_down: list[DecisionView] = Field(
        description="The newest refused or only recorded proposals; on the first page."
    )


async def memory_view(web: WebContext, loaded_memory: LoadedMemory) -> MemoryView:
    """Return the state of memory."""
    facts = loaded_memory.facts.facts.values()
    active = loaded_memory.facts.active()
    subjects: dict[str, int] = {}
    for other in filter_facts(active, "active", "", None):
        name = other.subject.strip().lower()
        subjects[name] = subjects.get(name, 0) + 1
    fold = loaded_memory.conversation
    return MemoryView(
        tape=loaded_memory.tape,
        scope=loaded_memory.scope_tape.name,
        kind=loaded_memory.kind,
        session=loaded_memory.session,
        identities=list(web.scopes.identities(loaded_memory.scope_tape.name)),
        paused=loaded_memory.facts.paused,
        active=len(active),
        pending=len(loaded_memory.facts.pending()),
        ended=sum(bool(fact.text) and fact.status not in ("active", "pending") for fact in facts),
        erased=sum(not fact.text for fact in facts),
        shared=len(loaded_memory.workspace.active()),
        last_change=await last_change(loaded_memory),
        subjects=list(subjects.items()),
        consolidation=_consolidation(fold) if fold is not None else None,
        zone=_zone(fold) if fold is not None else None,
    )


def _consolidation(fold: SessionFold) -> ConsolidationStatus:
    failed, done = fold.consolidation_failure, fold.last_consolidation
    last = failed if failed is not None else done
    return ConsolidationStatus(
        state="failed" if failed is not None else "never" if done is None else "done",
        at=str(last.meta.get("ts") or "") if last is not None else "",
        entry=last.id if last is not None else None,
        error=reason_text(failed.data.get("error")) if failed is not None else "",
        waiting=fold.window.unconsolidated,
    )


def _zone(fold: SessionFold) -> ZoneNow | None:
    span, zone = fold.zone.span, fold.zone.snapshot
    if span is None:
        return None
    return ZoneNow(
        version=zone.version,
        opened=span[0],
        sealed=span[1],
        at=fold.zone.saved_at,
        in_prompt=fold.prompt_zone_span == span,
        long_term=zone.long_term,
        shared=zone.shared,
        reference=zone.reference,
        notes=[(daily_note.date, daily_note.content) for daily_note in zone.dailies],
    )


async def quarantine(
    web: WebContext, loaded_memory: LoadedMemory, cursor: int, limit: int
) -> Quarantine:
    """Return the facts that wait for a person, with reasons, and recent rejections."""
    pending = loaded_memory.facts.pending()
    end = cursor + limit
    reasons = await reasons_of(loaded_memory.scope_tape, pending[cursor:end])
    quarantined_facts = [
        await _waiting(web, loaded_memory, fact, reasons.get(fact.id, ""))
        for fact in pending[cursor:end]
    ]
    lately = (
        []
        if cursor
        else await rejected_decisions(loaded_memory.scope_tape, loaded_memory.facts, _TURNED_DOWN)
    )
    return Quarantine(
        tape=loaded_memory.tape,
        scope=loaded_memory.scope_tape.name,
        session=loaded_memory.session,
        total=len(pending),
        waiting=quarantined_facts,
        next=end if end < len(pending) else None,
        turned_down=lately,
    )


async def _waiting(
    web: WebContext, loaded_memory: LoadedMemory, fact: Fact, reason: str
) -> QuarantinedFact:
    newest = Fact(fact.id, fact.gloss, evidence=fact.evidence[-1:])
    evidence = await evidence_of(web.store, newest)
    return QuarantinedFact(
        fact=loaded_memory.view(fact),
        reason=reason,
        evidence=evidence[0] if evidence else None,
    )
