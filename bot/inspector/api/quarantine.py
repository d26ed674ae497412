"""API route of the quarantine: facts that wait for a person, and what the gate rejected."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from bot.inspector.api import API
from bot.inspector.api.parameters import Cursor, TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading.decisions import (
    DecisionView,
    EvidenceView,
    evidence_of,
    reasons_of,
    rejected_decisions,
)
from bot.inspector.reading.facts import FactView, LoadedMemory, load_memory
from bot.memory.records.fact import Fact

router = APIRouter(prefix=API, tags=["memory"])

_TURNED_DOWN = 20
"""The most rejected decisions to return, newest first."""


class QuarantinedFact(BaseModel):
    """A fact that waits for a person's decision."""

    model_config = ConfigDict(frozen=True)

    fact: FactView
    reason: str = Field(description="Why it is not believed.")
    evidence: EvidenceView | None = Field(description="The newest piece.")


class Quarantine(BaseModel):
    """What the write gate did not admit to memory."""

    model_config = ConfigDict(frozen=True)

    tape: str
    scope: str
    session: str
    total: int = Field(description="Facts that wait.")
    waiting: list[QuarantinedFact]
    next: int | None = Field(description="Cursor of what follows; null at the end.")
    turned_down: list[DecisionView] = Field(
        description="The newest that were refused, or are on record only; on the first page."
    )


@router.get("/quarantine")
async def list_quarantine(
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    cursor: Cursor = 0,
    limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 50,
) -> Quarantine:
    """List facts that wait for a person's decision, with reasons, and recent rejections."""
    return await quarantine(web, await load_memory(web, visitor, tape), cursor, limit)


async def quarantine(web: WebContext, held: LoadedMemory, cursor: int, limit: int) -> Quarantine:
    """Return waiting facts and recent rejections; see ``list_quarantine``."""
    pending = held.facts.pending()
    end = cursor + limit
    reasons = await reasons_of(held.scope_tape, pending[cursor:end])
    shown = [await _waiting(web, held, one, reasons.get(one.id, "")) for one in pending[cursor:end]]
    lately = (
        []
        if cursor
        else await rejected_decisions(held.scope_tape, held.facts.last_entry_id, _TURNED_DOWN)
    )
    return Quarantine(
        tape=held.tape,
        scope=held.scope_tape.name,
        session=held.session,
        total=len(pending),
        waiting=shown,
        next=end if end < len(pending) else None,
        turned_down=lately,
    )


async def _waiting(web: WebContext, held: LoadedMemory, fact: Fact, reason: str) -> QuarantinedFact:
    newest = Fact(fact.id, fact.text, evidence=fact.evidence[-1:])
    evidence = await evidence_of(web.store, newest)
    return QuarantinedFact(
        fact=held.view(fact),
        reason=reason,
        evidence=evidence[0] if evidence else None,
    )
