"""API routes of facts: list them, and show one with its evidence and gate decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from bot.core.errors import HttpError
from bot.inspector.api import API
from bot.inspector.api.parameters import Cursor, TapeName
from bot.inspector.dependencies import Owner, WebContext, WebContextDep
from bot.inspector.reading.decisions import (
    DecisionView,
    EvidenceView,
    decisions_on,
    evidence_of,
)
from bot.inspector.reading.facts import (
    FactFilter,
    FactView,
    LoadedMemory,
    filter_facts,
    load_memory,
)
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.tape.service import TapeService

router = APIRouter(prefix=API, tags=["memory"])

FactNumber = Annotated[
    str,
    Query(
        pattern=r"^w?[0-9]{1,9}$",
        description="As chats show it: `3`; `w3` of what everybody reads.",
    ),
]
Words = Annotated[str, Query(max_length=200, description="All of these words are in it; any case.")]
StatusWanted = Annotated[
    FactFilter,
    Query(description="Of one status; `ended` is all that hold no longer; `all` is whatever."),
]
Subject = Annotated[
    str | None,
    Query(max_length=40, description="What they are about; empty for those without a subject."),
]


class FactPage(BaseModel):
    """A page of facts, by subject."""

    model_config = ConfigDict(frozen=True)

    tape: str
    scope: str
    session: str = Field(description="The conversation in which commands change them.")
    total: int = Field(description="Facts that fit.")
    facts: list[FactView]
    next: int | None = Field(description="Cursor of what follows; null at the end.")


class FactDetail(BaseModel):
    """A fact with its evidence, the gate's decisions and its history."""

    model_config = ConfigDict(frozen=True)

    fact: FactView
    session: str = Field(description="The conversation in which commands change it.")
    evidence: list[EvidenceView] = Field(description="Oldest first.")
    decisions: list[DecisionView] = Field(description="Of the write gate, newest first.")
    replaced: list[FactView] = Field(description="Whose place it took, newest first.")
    replaced_by: list[FactView] = Field(description="What took its place.")


@router.get("/facts")
async def list_facts(
    web: WebContextDep,
    visitor: Owner,
    tape: TapeName,
    *,
    words: Words = "",
    status: StatusWanted = "active",
    subject: Subject = None,
    cursor: Cursor = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="How many.")] = 100,
) -> FactPage:
    """List facts by subject, those without one last.

    For a conversation, these are the facts of its scope; facts that everybody reads are listed by
    `tape=workspace:shared`. Erased facts are never listed.
    """
    held = await load_memory(web, visitor, tape)
    wanted = FactQuery(words, status, subject, cursor, limit)
    return fact_page(held, wanted)


@router.get("/fact")
async def get_fact(
    web: WebContextDep, visitor: Owner, tape: TapeName, number: FactNumber
) -> FactDetail:
    """Return one fact with its evidence, the write gate's decisions and reasons, and its history.

    Of an erased fact, only its number, dates, entries and verdicts are left.
    """
    return await fact_detail(web, await load_memory(web, visitor, tape), number)


@dataclass(frozen=True, slots=True)
class FactQuery:
    """The filter and page of a list of facts; see ``list_facts``."""

    words: str = ""
    status: FactFilter = "active"
    subject: str | None = None
    cursor: int = 0
    limit: int = 100


def fact_page(held: LoadedMemory, wanted: FactQuery) -> FactPage:
    """Return a page of facts; see ``list_facts``."""
    found = filter_facts(held.facts.facts.values(), wanted.status, wanted.words, wanted.subject)
    end = wanted.cursor + wanted.limit
    return FactPage(
        tape=held.tape,
        scope=held.scope_tape.name,
        session=held.session,
        total=len(found),
        facts=[held.view(one) for one in found[wanted.cursor : end]],
        next=end if end < len(found) else None,
    )


async def fact_detail(web: WebContext, held: LoadedMemory, number: str) -> FactDetail:
    """Return one fact; see ``get_fact``.

    Raises:
        HttpError: 404 if there is no fact of this number.
    """
    shared = number.startswith("w") or held.is_workspace
    fold = held.workspace if shared else held.facts
    fact = fold.facts.get(int(number.removeprefix("w")))
    if fact is None:
        where = WORKSPACE_SCOPE if shared else held.scope_tape.name
        raise HttpError(
            404, "not_found", f"there is no fact {number} in {where}; /memory lists them"
        )
    scope = TapeService(web.store, WORKSPACE_SCOPE) if shared else held.scope_tape
    before = fold.history(fact)[1:] if fact.text else []
    after = [one for one in fold.facts.values() if one.supersedes == fact.id]
    return FactDetail(
        fact=held.view(fact, shared=shared),
        session=held.session,
        evidence=await evidence_of(web.store, fact),
        decisions=await decisions_on(scope, fact),
        replaced=[held.view(one, shared=shared) for one in before],
        replaced_by=[held.view(one, shared=shared) for one in after if one.status != "pending"],
    )
