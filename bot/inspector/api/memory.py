"""API route of the state of memory: facts by status, consolidation, and the current zone."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from bot.inspector.api import API
from bot.inspector.api.parameters import TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading.facts import LoadedMemory, filter_facts, last_change, load_memory
from bot.memory.session.scope.scope_memory import ScopeKind
from bot.memory.session.view.session_fold import SessionFold

router = APIRouter(prefix=API, tags=["memory"])


class ZoneNow(BaseModel):
    """The current memory zone."""

    model_config = ConfigDict(frozen=True)

    version: int
    opened: int = Field(description="Id of the anchor that opens it.")
    sealed: int = Field(description="Id of the anchor that seals it.")
    at: str = Field(description="When it was written, ISO 8601 in UTC.")
    in_prompt: bool = Field(description="The prompt shows this version; else an earlier one until the "
                            "next boundary or consolidation.")  # fmt: skip
    long_term: str = Field(description="Markdown.")
    shared: str = Field(description="Markdown.")
    reference: str = Field(description="Values and beliefs, a line each.")
    notes: list[tuple[str, str]] = Field(description="Day and Markdown, oldest first.")


class ConsolidationStatus(BaseModel):
    """The state of a conversation's consolidation."""

    model_config = ConfigDict(frozen=True)

    state: Literal["never", "done", "failed"]
    at: str = Field(description="Of the last one, done or failed, ISO 8601; empty for never.")
    entry: int | None = Field(description="Id of the entry that records it.")
    error: str = Field(description="Why it failed; it is retried.")
    waiting: int = Field(description="Messages that are not consolidated yet.")


class MemoryView(BaseModel):
    """The state of memory of a conversation or scope."""

    model_config = ConfigDict(frozen=True)

    tape: str
    scope: str = Field(description="The tape that its facts are on.")
    kind: ScopeKind = Field(
        description="Whose they are: the conversation's, a person's, or everybody's."
    )
    session: str = Field(
        description="The conversation in which commands change it; empty where none is known."
    )
    identities: list[str] = Field(description="Of the person whose they are, joined ones included.")
    paused: bool = Field(description="Nothing is learned.")
    active: int = Field(description="Facts that are believed.")
    pending: int = Field(description="Facts that wait for a person.")
    ended: int = Field(description="Facts that hold no longer.")
    erased: int = Field(description="Facts whose words are gone for good.")
    shared: int = Field(description="Facts that everybody reads.")
    last_change: int | None = Field(
        description="What `/memory undo` would take back; `/memory undo ID` takes back that alone."
    )
    subjects: list[tuple[str, int]] = Field(description="Of what is believed, with how many facts.")
    consolidation: ConsolidationStatus | None = Field(description="Null of a scope.")
    zone: ZoneNow | None = Field(description="Null of a scope, and where there is none yet.")


@router.get("/memory")
async def get_memory(web: WebContextDep, visitor: Owner, tape: TapeName) -> MemoryView:
    """Return the state of memory of a conversation or scope.

    A private conversation's facts belong to the person, a group's to the group; everybody reads
    those of the workspace.
    """
    return await memory_view(web, await load_memory(web, visitor, tape))


async def memory_view(web: WebContext, held: LoadedMemory) -> MemoryView:
    """Return the state of memory; see ``get_memory``."""
    facts = held.facts.facts.values()
    active = held.facts.active()
    subjects: dict[str, int] = {}
    for one in filter_facts(active, "active", "", None):
        name = one.subject.strip().lower()
        subjects[name] = subjects.get(name, 0) + 1
    fold = held.conversation
    return MemoryView(
        tape=held.tape,
        scope=held.scope_tape.name,
        kind=held.kind,
        session=held.session,
        identities=list(web.scopes.identities(held.scope_tape.name)),
        paused=held.facts.paused,
        active=len(active),
        pending=len(held.facts.pending()),
        ended=sum(bool(one.text) and one.status not in ("active", "pending") for one in facts),
        erased=sum(not one.text for one in facts),
        shared=len(held.workspace.active()),
        last_change=await last_change(held),
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
        error=str(failed.data.get("error") or "") if failed is not None else "",
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
        notes=[(one.date, one.content) for one in zone.dailies],
    )
