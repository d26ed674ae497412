"""Load the current memory of a conversation or scope, and view and filter its facts.

Rule 1: nothing is cached between requests: erased facts are gone from the next page.
Rule 2: reading writes to no tape, and creates none.
Rule 3: numbers are those of the chats: ``3`` in the scope, ``w3`` in the workspace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field

from bot.agent.commands.memory.fact_text import age_text, confidence_text
from bot.bus import WebUser
from bot.core.errors import HttpError, TapeNotFound
from bot.core.i18n import _
from bot.inspector.dependencies import WebContext
from bot.inspector.parameters import Cursor
from bot.inspector.reading import ReadModel
from bot.inspector.reading.decisions import (
    DecisionView,
    EvidenceView,
    decisions_on,
    evidence_of,
)
from bot.inspector.reading.sessions import is_conversation
from bot.memory.records.fact import EvidenceOrigin, Fact, FactStatus
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.fact_words import fact_words
from bot.memory.session import long_term_memory as longterm
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX, is_shared_scope
from bot.memory.session.scope.scope_memory import ScopeKind, ScopeMemory
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.service import TapeService

FactFilter = Literal["active", "pending", "superseded", "retired", "dropped", "ended", "all"]
"""A filter by status; ``ended`` is any status that no longer holds."""

_CHATS = 6
"""Conversations that are tried when looking for one in which to change a scope."""

_ENDED = ("superseded", "retired", "dropped")


class FactView(ReadModel):
    """A fact in its current state."""

    number: str = Field(description="As in chats: `3`, or `w3` for a shared fact.")
    scope: str = Field(description="The tape that contains it.")
    text: str = Field(description="One line; empty if it was erased.")
    quoted: bool = Field(
        description="Whether it is a quotation: no judge or person confirmed a sentence."
    )
    subject: str = Field(description="Its subject; may be empty.")
    status: FactStatus
    erased: bool = Field(description="Whether it was erased.")
    origin: EvidenceOrigin = Field(description="Origin of its weakest evidence.")
    confidence: float = Field(description="0 to 1.")
    sure: str = Field(description="The same in words.")
    age: str = Field(description="Age, such as `3 days`; empty if unknown.")
    valid_from: str = Field(description="Start of validity, ISO 8601 in UTC.")
    valid_to: str | None = Field(description="End of validity; null if it is still valid.")
    changed: str = Field(description="When it last changed, ISO 8601 in UTC.")
    admitted: int = Field(
        description="Id of the entry with the decision that admitted it; 0 if there is none."
    )
    supersedes: str | None = Field(description="Number of the fact that it replaced.")
    evidence: int = Field(description="Number of stored pieces of evidence.")


class FactPage(ReadModel):
    """A page of facts, by subject."""

    tape: str
    scope: str
    session: str = Field(description="The conversation in which commands change them.")
    total: int = Field(description="Number of matching facts.")
    facts: list[FactView]
    next: int | None = Field(description="Cursor of the next page; null at the end.")


class FactDetail(ReadModel):
    """A fact with its evidence, the gate's decisions and its history."""

    fact: FactView
    session: str = Field(description="The conversation in which commands change it.")
    evidence: list[EvidenceView] = Field(description="Oldest first.")
    decisions: list[DecisionView] = Field(description="Decisions of the write gate, newest first.")
    replaced: list[FactView] = Field(description="Facts that it replaced, newest first.")
    replaced_by: list[FactView] = Field(description="Facts that replaced it.")


@dataclass(frozen=True, slots=True)
class FactQuery:
    """The filter and page of a list of facts; parameters of a route."""

    words: Annotated[
        str,
        Query(
            max_length=200, description="Facts that contain all of these words; case is ignored."
        ),
    ] = ""
    status: Annotated[
        FactFilter,
        Query(description="Facts with this status; `ended`: no longer valid; `all`: any status."),
    ] = "active"
    subject: Annotated[
        str | None,
        Query(max_length=40, description="Their subject; empty for facts without a subject."),
    ] = None
    cursor: Cursor = 0
    limit: Annotated[int, Query(ge=1, le=500, description="Number of results.")] = 100


@dataclass(frozen=True, slots=True)
class LoadedMemory:
    """The memory of a conversation or scope, loaded for one request.

    Attributes:
        tape: The conversation or scope that was asked for.
        scope: The memory of the scope that its facts belong to, open; holding it keeps it open.
        workspace: The facts that everybody reads.
        conversation: The conversation's state; None for a scope.
        session: The conversation in which commands change the memory; empty if none is known.
        now: The current time in the user's time zone.
    """

    tape: str
    scope: ScopeMemory
    workspace: FactFold
    conversation: SessionFold | None
    session: str
    now: datetime

    @property
    def scope_tape(self) -> TapeService:
        """The tape of the scope."""
        return self.scope.tape

    @property
    def kind(self) -> ScopeKind:
        """The kind of the scope."""
        return self.scope.kind

    @property
    def facts(self) -> FactFold:
        """The facts of the scope."""
        return self.scope.fold

    @property
    def timezone(self) -> tzinfo | None:
        """The user's time zone."""
        return self.now.tzinfo

    @property
    def is_workspace(self) -> bool:
        """Whether its facts are those of the workspace."""
        return self.kind == "workspace"

    def view(self, fact: Fact, *, shared: bool | None = None) -> FactView:
        """Return a fact as the API and pages show it."""
        everybodys = self.is_workspace if shared is None else shared
        before = fact.supersedes
        return FactView(
            number=fact_number(fact.id, shared=everybodys),
            scope=WORKSPACE_SCOPE if everybodys else self.scope_tape.name,
            text=fact_words(fact, self.timezone),
            quoted=fact.quoted,
            subject=fact.subject,
            status=fact.status,
            erased=not fact.text,
            origin=fact.origin,
            confidence=fact.confidence,
            sure=confidence_text(fact.confidence),
            age=age_text(fact.valid_from, self.now.date(), self.timezone),
            valid_from=fact.valid_from,
            valid_to=fact.valid_to,
            changed=fact.changed,
            admitted=fact.admitted,
            supersedes=fact_number(before, shared=everybodys) if before is not None else None,
            evidence=len(fact.evidence),
        )


def fact_page(loaded_memory: LoadedMemory, fact_query: FactQuery) -> FactPage:
    """Return a page of facts."""
    facts = filter_facts(
        loaded_memory.facts.facts.values(), fact_query.status, fact_query.words, fact_query.subject
    )
    end = fact_query.cursor + fact_query.limit
    return FactPage(
        tape=loaded_memory.tape,
        scope=loaded_memory.scope_tape.name,
        session=loaded_memory.session,
        total=len(facts),
        facts=[loaded_memory.view(fact) for fact in facts[fact_query.cursor : end]],
        next=end if end < len(facts) else None,
    )


async def fact_detail(web: WebContext, loaded_memory: LoadedMemory, number: str) -> FactDetail:
    """Return one fact with its evidence and history; of an erased one, only what is left.

    Raises:
        HttpError: 404 if there is no fact of this number.
    """
    shared = number.startswith("w") or loaded_memory.is_workspace
    fold = loaded_memory.workspace if shared else loaded_memory.facts
    fact = fold.facts.get(int(number.removeprefix("w")))
    if fact is None:
        where = WORKSPACE_SCOPE if shared else loaded_memory.scope_tape.name
        raise HttpError(
            404,
            "not_found",
            _(
                "there is no fact {number} in {where}; /memory lists the facts",
                number=number,
                where=where,
            ),
        )
    scope = TapeService(web.store, WORKSPACE_SCOPE) if shared else loaded_memory.scope_tape
    before = fold.history(fact)[1:] if fact.text else []
    after = fold.successors(fact)
    return FactDetail(
        fact=loaded_memory.view(fact, shared=shared),
        session=loaded_memory.session,
        evidence=await evidence_of(web.store, fact),
        decisions=await decisions_on(scope, fold, fact),
        replaced=[loaded_memory.view(other, shared=shared) for other in before],
        replaced_by=[
            loaded_memory.view(other, shared=shared) for other in after if other.status != "pending"
        ],
    )


async def last_change(loaded_memory: LoadedMemory) -> int | None:
    """Return the id of the change that ``/memory undo`` would take back; None if there is none.

    Pages pass it to the command, so that it undoes this change even if others followed.
    """
    proposal_batch = None if loaded_memory.is_workspace else await loaded_memory.scope.undo_batch()
    return None if proposal_batch is None else proposal_batch.undone_entry


def fact_number(number: int, *, shared: bool) -> str:
    """Return a fact's number as chats show it."""
    return f"{'w' * shared}{number}"


async def load_memory(web: WebContext, visitor: WebUser, tape: str) -> LoadedMemory:
    """Load the memory of a conversation or scope.

    Raises:
        TapeNotFound: There is no such tape, or it holds no facts.
    """
    if not (
        is_conversation(tape) or tape == WORKSPACE_SCOPE or tape.startswith(PERSON_SCOPE_PREFIX)
    ):
        raise TapeNotFound(_("{tape} is internal and has no facts", tape=tape))
    workspace = web.scopes.workspace()
    await workspace.open()
    conversation: SessionFold | None = None
    if tape == WORKSPACE_SCOPE:
        scope, session = workspace, visitor.address.session
    elif is_shared_scope(tape):
        await web.store.version(tape)
        scope = await _opened(web, tape)
        session = await _chat_of(web, visitor, scope)
    else:
        await web.store.version(tape)
        conversation, session = await load_session_fold(web, tape), tape
        scope = await _home_scope(web, tape, conversation)
    now = web.agent.clock.now().astimezone(web.agent.timezone)
    return LoadedMemory(tape, scope, workspace.fold, conversation, session, now)


async def _home_scope(web: WebContext, tape: str, fold: SessionFold) -> ScopeMemory:
    home = await home_of(web, tape, fold)
    if home == tape:
        return web.scopes.home(TapeService(web.store, tape), fold.facts, "")
    return await _opened(web, home)


async def load_session_fold(web: WebContext, tape: str) -> SessionFold:
    """Return a conversation's state.

    Raises:
        TapeNotFound: There is no such tape.
    """
    return await load_fold(TapeService(web.store, tape))


async def home_of(web: WebContext, tape: str, fold: SessionFold) -> str:
    """Return the tape of a conversation's current home scope."""
    return await longterm.resolve_home(TapeService(web.store, tape), fold.home_scope, web.scopes)


async def _opened(web: WebContext, name: str) -> ScopeMemory:
    scope = web.scopes.person(name)
    await scope.open()
    return scope


async def _chat_of(web: WebContext, visitor: WebUser, scope: ScopeMemory) -> str:
    """Return a private conversation of a scope's person; empty if none is found."""
    newest = sorted(scope.fold.facts.values(), key=lambda fact: fact.changed, reverse=True)
    said = (
        evidence.tape
        for fact in newest
        for evidence in fact.evidence
        if evidence.origin == "person"
    )
    tried = (*web.scopes.identities(scope.name), visitor.address.session, *said)
    for tape in [
        fromkey for fromkey in dict.fromkeys(tried) if fromkey and not is_shared_scope(fromkey)
    ][:_CHATS]:
        try:
            if await home_of(web, tape, await load_session_fold(web, tape)) == scope.name:
                return tape
        except TapeNotFound:
            continue
    return ""


def filter_facts(
    facts: Iterable[Fact], which: FactFilter, words: str, subject: str | None
) -> list[Fact]:
    """Return the matching facts by subject, those without one last; never erased ones."""
    sought = words.casefold().split()
    wanted = subject.strip().casefold() if subject is not None else None
    found = [
        fact
        for fact in facts
        if fact.text
        and _is_of(fact.status, which)
        and (wanted is None or fact.subject.strip().casefold() == wanted)
        and _says(fact, sought)
    ]
    return sorted(
        found, key=lambda fact: (not fact.subject, fact.subject.strip().casefold(), fact.id)
    )


def _is_of(status: FactStatus, which: FactFilter) -> bool:
    return which in ("all", status) or (which == "ended" and status in _ENDED)


def _says(fact: Fact, sought: list[str]) -> bool:
    told = f"{fact.text}\n{fact.subject}".casefold()
    return all(word in told or word.removeprefix("#").removeprefix("w") == str(fact.id)
               for word in sought)  # fmt: skip
