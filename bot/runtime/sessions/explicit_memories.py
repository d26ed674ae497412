"""Save facts that a person explicitly asks to remember, and read those again whose message was edited.

Rule 1: a saved fact cites a message that is on the tape.
Rule 2: its batch key comes from the message, so that a repetition after a kill saves it once.
Rule 3: in a group the fact names the speaker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.memory.gate.remember_requests import find_explicit_memory, propose_remembered_line
from bot.memory.records.conversation_entries import replaced_entry_id
from bot.memory.records.evidence import (
    MEMORY_PAUSED,
    cite,
    entry_origin,
    is_local_only,
    may_learn_from,
    sender_text,
)
from bot.memory.records.fact import LONGEST_QUOTE, OWN_WORDS, Evidence, Fact
from bot.memory.records.proposals import Proposal, ProposalBatch, ProposalDecision
from bot.memory.records.quote_spans import find_quote, nearest_passage
from bot.memory.session.long_term_memory import PRIVATE_PROBLEM, LongTermMemory
from bot.tape.entries import TapeEntry


class ExplicitMemories:
    """Saves explicit memories from one session's messages.

    Args:
        memory: The session's long-term memory.
    """

    def __init__(self, memory: LongTermMemory) -> None:
        self._memory = memory

    async def save(self, entries: Sequence[TapeEntry]) -> list[str]:
        """Save what messages on the tape ask to remember.

        Returns:
            One sentence for the model about each fact that was not saved.
        """
        notes: list[str] = []
        for entry in entries:
            if (original := await self._original(entry)) is not None:
                await self.replace(entry, original)
                continue
            proposal = self._proposal(entry)
            if proposal is None:
                continue
            if entry.meta.get(MEMORY_PAUSED) is True:
                notes.append(_not_saved("memory is paused; `/memory resume` ends that"))
                continue
            if not may_learn_from(entry) and not is_local_only(entry):
                notes.append(_not_saved("the token of this program lacks the right `propose`"))
                continue
            if is_local_only(entry):
                notes.append(_not_saved(PRIVATE_PROBLEM))
                continue
            key = f"said:{self._memory.tape.name}:{entry.id}"
            outcome = await self._memory.write(ProposalBatch(key, "person", (proposal,)))
            notes += [
                _told(decision) for decision in outcome.decisions if decision.verdict != "approved"
            ]
        return notes

    async def replace(self, entry: TapeEntry, original: TapeEntry) -> None:
        """Save what an edited message asks to remember, replacing what the original asked."""
        if (
            entry.meta.get(MEMORY_PAUSED) is True
            or is_local_only(entry)
            or self._key(entry) in self._memory.home.fold.decided_keys
        ):
            return
        new = self._proposal(entry)
        before = await self._asked_before(original, entry)
        if before is None or new is None or before.gloss == new.text:
            if new is not None and before is None:
                await self._write(entry, new)
            elif before is not None and new is None:
                await self._write(entry, Proposal("retire", fact=before.id))
            return
        evidence = new.evidence
        await self._write(entry, Proposal("supersede", new.text, before.id, evidence=evidence))

    async def reread(self, edit: TapeEntry) -> None:
        """Put the facts that rest on an edited message before the judge again, with its new words."""
        tape, edited = self._memory.tape.name, str(edit.meta.get("edits") or "")
        proposals = []
        for fact in self._memory.home.fold.facts.values():
            if fact.status != "active" or not edited:
                continue
            rests_on = [_as_edited(one, tape, edit, edited) for one in fact.evidence]
            left = tuple(one for one in rests_on if one is not None)
            if left != fact.evidence:
                proposals.append(Proposal("reread", fact=fact.id, evidence=left))
        if proposals:
            key = f"reread:{tape}:{edit.id}"
            await self._memory.write(ProposalBatch(key, "person", tuple(proposals)))

    async def _write(self, entry: TapeEntry, proposal: Proposal) -> None:
        await self._memory.write(ProposalBatch(self._key(entry), "person", (proposal,)))

    def _key(self, entry: TapeEntry) -> str:
        return f"edited:{self._memory.tape.name}:{entry.id}"

    async def _original(self, entry: TapeEntry) -> TapeEntry | None:
        """Return the message that an edit replaces; None for other messages."""
        replaced = replaced_entry_id(entry)
        entries = await self._memory.tape.read_entries(replaced, replaced) if replaced else []
        return entries[0] if entries else None

    async def _asked_before(self, original: TapeEntry, entry: TapeEntry) -> Fact | None:
        """Return the fact whose only evidence is the message or an earlier edit of it."""
        tape = self._memory.tape
        texts = [
            other
            for other in await tape.read_entries(original.id, entry.id - 1)
            if original.id in (other.id, replaced_entry_id(other))
            and self._proposal(other) is not None
        ]
        rests_on = {(tape.name, other.id) for other in texts}
        return next(
            (
                fact
                for fact in self._memory.facts()
                if len(fact.evidence) == 1
                and (fact.evidence[0].tape, fact.evidence[0].entry) in rests_on
            ),
            None,
        )

    def _proposal(self, entry: TapeEntry) -> Proposal | None:
        if entry_origin(entry) not in OWN_WORDS:
            return None
        line = find_explicit_memory(str(entry.payload.get("content", "")))
        return (
            None if line is None else propose_remembered_line(self._memory.tape.name, entry, line)
        )


def _as_edited(evidence: Evidence, tape: str, edit: TapeEntry, edited: str) -> Evidence | None:
    """Return evidence in the new words of its message if that was edited; None if none are left."""
    if evidence.tape != tape or evidence.inbound != edited or evidence.entry >= edit.id:
        return evidence
    said = sender_text(edit).strip() if may_learn_from(edit) else ""
    if evidence.quote and find_quote(evidence.quote, said):
        return evidence
    words = said if len(said) <= LONGEST_QUOTE else nearest_passage(evidence.quote, [said])
    context = (evidence.context, evidence.context_entry)
    now = replace(cite(tape, edit), quote=words, context=context[0], context_entry=context[1])
    return now if words else None


def _told(decided: ProposalDecision) -> str:
    if decided.verdict == "pending":
        return (
            "What the user asked to remember was set aside, since "
            f"{decided.reason!s}; `/memory pending` shows it."
        )
    return _not_saved(decided.reason)


def _not_saved(why: str) -> str:
    return f"What the user asked to remember was not saved just now: {why!s}."
