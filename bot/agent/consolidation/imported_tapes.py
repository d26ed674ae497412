"""The tapes of a person's imported conversations, and how far they were read for facts.

An imported tape has no worker: nobody writes there. A session of the person reads it in portions, in
the order of time. What it finds is proposed to the person's scope, and waits there for the person.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass, replace

from bot.agent.consolidation.policy import EntryRange
from bot.agent.consolidation.runner import ConsolidationResult, consolidation_entries
from bot.core.errors import TapeNotFound, VersionConflict
from bot.core.reasons import Reason
from bot.memory.records.imports import SESSION_IMPORTED, assistant_of
from bot.memory.records.proposals import ProposalBatch
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry
from bot.tape.store import TapeStore

MOST_PENDING = 100
"""Facts that wait for the person, above which no more are looked for."""

_FARTHEST = 10_000
"""Entries after a boundary, above which a tape is in use for something else."""


@dataclass(frozen=True, slots=True)
class ImportedTape:
    """One imported conversation.

    Attributes:
        name: Name of its tape.
        since: Time of its first message.
        until: Time of its last one.
        imported: When it was imported.
        messages: Number of its messages.
        through: Id of the last entry that was read for facts; 0 if none was.
        last: Id of the last entry to read.
    """

    name: str
    since: str
    until: str
    imported: str
    messages: int
    through: int
    last: int

    @property
    def unread(self) -> EntryRange | None:
        """The entries that were not read for facts yet; None if all were."""
        return EntryRange(self.through + 1, self.last) if self.through < self.last else None


async def read_imported_tape(
    store: TapeStore, name: str, people: Collection[str]
) -> ImportedTape | None:
    """Return a conversation that was imported for a person; None if a tape holds none.

    Lines of memory and notes are no conversation: they are nobody's words.

    Args:
        store: The store.
        name: Name of the tape.
        people: The person's identities, such as ``telegram:42``.
    """
    through = seen = 0
    try:
        async with aclosing(store.read_back(name)) as entries:
            async for entry in entries:
                if entry.name == MEMORY_CONSOLIDATED and type(entry.data.get("through")) is int:
                    through = max(through, entry.data["through"])
                if entry.name == SESSION_IMPORTED:
                    return _imported_tape(name, entry, through, people)
                seen += 1
                if seen > _FARTHEST:
                    return None
    except TapeNotFound:
        pass
    return None


def _imported_tape(
    name: str, boundary: TapeEntry, through: int, people: Collection[str]
) -> ImportedTape | None:
    told = boundary.data.get("conversation")
    if not isinstance(told, dict) or told.get("for") not in people:
        return None
    last, messages = told.get("last"), told.get("messages")
    return ImportedTape(
        name,
        since=str(told.get("since") or ""),
        until=str(told.get("until") or ""),
        imported=str(boundary.meta.get("ts") or ""),
        messages=messages if type(messages) is int else 0,
        through=through,
        last=last if type(last) is int else boundary.id - 1,
    )


def people_of(memory: LongTermMemory) -> tuple[str, ...]:
    """Return the identities of the person whose memory a session uses; none in a group."""
    home = memory.home.name
    if not home.startswith(PERSON_SCOPE_PREFIX):
        return ()
    return memory.scopes.identities(home) or (home.removeprefix(PERSON_SCOPE_PREFIX),)


async def propose_findings(
    store: TapeStore, tape: str, home: ScopeMemory, result: ConsolidationResult
) -> int:
    """Propose what was found in a part of an imported tape, and mark the part as read.

    Only new facts are proposed: old words do not end, confirm or reword what is known. After a kill
    between the two, the part is read again, and the batch's key prevents a second proposal.

    Returns:
        The number of facts that wait for the person because of it.

    Raises:
        TapeWriteError: The storage failed; the part is read again.
    """
    reason = Reason("imported_conversation", who=assistant_of(tape))
    proposals = tuple(
        replace(proposal, review_reason=proposal.review_reason or reason)
        for proposal in result.proposals
        if proposal.op in ("add", "supersede")
    )
    waiting = 0
    if proposals:
        key = f"range:{tape}:{result.range.first}-{result.range.last}"
        outcome = await home.apply(ProposalBatch(key, "consolidation", proposals))
        waiting = 0 if outcome.repeated else len(outcome.with_verdict("pending"))
    try:
        version = await store.version(tape)
        await store.append_many(tape, consolidation_entries(result, version), expect=version)
    except (TapeNotFound, VersionConflict):
        # It was erased meanwhile, or another process was faster.
        return waiting
    return waiting
