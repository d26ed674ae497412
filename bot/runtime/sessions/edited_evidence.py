"""Put the facts that rest on an edited message before the judge again, with its new words."""

from __future__ import annotations

from dataclasses import replace

from bot.memory.records.evidence import cite, may_learn_from, sender_text
from bot.memory.records.fact import LONGEST_QUOTE, Evidence
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.records.quote_spans import find_quote, nearest_passage
from bot.memory.session.long_term_memory import LongTermMemory
from bot.tape.entries import TapeEntry


async def reread_facts(memory: LongTermMemory, edit: TapeEntry) -> None:
    """Give the facts that rest on an edited message its new words as evidence.

    Args:
        memory: The session's long-term memory.
        edit: The message's new words, on the session's tape.
    """
    tape, edited = memory.tape.name, str(edit.meta.get("edits") or "")
    proposals = []
    for fact in memory.home.fold.facts.values():
        if fact.status != "active" or not edited:
            continue
        rests_on = [_as_edited(one, tape, edit, edited) for one in fact.evidence]
        left = tuple(one for one in rests_on if one is not None)
        if left != fact.evidence:
            proposals.append(Proposal("reread", fact=fact.id, evidence=left))
    if proposals:
        await memory.write(ProposalBatch(f"reread:{tape}:{edit.id}", "person", tuple(proposals)))


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
