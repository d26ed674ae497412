"""Find the messages whose facts have ended, so that recall can say so of them."""

from __future__ import annotations

from bot.memory.session.long_term_memory import LongTermMemory


def outdated_entries(memory: LongTermMemory) -> frozenset[int]:
    """Return the ids of the session's entries that facts rest on which have ended.

    Words that an active fact rests on by itself, and not by way of one whose place it took, do not
    count, nor what a judge refuted.
    """
    tape, believed, ended = memory.tape.name, set(), set()
    fold = memory.home.fold
    for fact in fold.facts.values():
        here = {one.span for one in fact.evidence if one.tape == tape}
        if fact.status == "active":
            before = {one.span for other in fold.predecessors(fact) for one in other.evidence}
            # Facts that were merged or split, without new words, are as true as they were.
            believed |= here - before or here
        elif fact.status in ("superseded", "retired") and not fact.is_refuted:
            ended |= here
    return frozenset(entry for _, entry, _ in ended - believed)
