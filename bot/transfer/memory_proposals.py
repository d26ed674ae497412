"""Propose the lines of another assistant's memory to a person, once."""

from __future__ import annotations

from dataclasses import replace

from bot.core.clock import Clock
from bot.core.reasons import Reason
from bot.memory.records.evidence import cite
from bot.memory.records.imports import IMPORTED_EVENT, assistant_of
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.records.tombstones import is_erased
from bot.memory.session.linking.scope_registry import person_scope
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.service import TapeService
from bot.tape.store import TapeStore


async def propose_memory(store: TapeStore, clock: Clock, person: str, session: str) -> int:
    """Propose each line of an imported session of memory to a person.

    Returns:
        The number of new facts that wait for the person.

    Raises:
        TapeWriteError: The storage failed; importing again proposes them.
    """
    entries = await store.read(session)
    imported = next(entry for entry in entries if entry.name == IMPORTED_EVENT)
    who = f"{assistant_of(session)}'s memory"
    proposals = tuple(
        Proposal(
            "add",
            str(entry.payload["content"]),
            subject=str(entry.meta.get("subject") or ""),
            evidence=(replace(cite(session, entry), origin="import", who=who),),
            review_reason=Reason("imported_line", who=who),
        )
        for entry in entries
        if entry.kind == "message" and not is_erased(entry)
    )
    scope = ScopeMemory(TapeService(store, person_scope_of(person)), "person", clock)
    batch = ProposalBatch(f"import:{session}:{imported.data['digest']}", "import", proposals)
    outcome = await scope.apply(batch)
    return 0 if outcome.repeated else len(outcome.with_verdict("pending"))


def person_scope_of(person: str) -> str:
    """Return the tape of a person's facts, given an identity of theirs."""
    channel, _, sender = person.partition(":")
    return person_scope(channel, sender)
