"""Find evidence whose words were erased."""

from __future__ import annotations

from bot.core.errors import TapeNotFound
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
from bot.tape.store import TapeStore


async def is_evidence_erased(evidence: Evidence, store: TapeStore) -> bool:
    """Return whether the words that a piece of evidence quotes were erased from its message.

    Raises:
        TapeError: The tape cannot be read.
    """
    if evidence.quote:
        return False
    try:
        entries = await store.read(evidence.tape, evidence.entry, evidence.entry)
    except TapeNotFound:
        return False
    return any(
        is_erased(entry) or ERASED_TEXT in str(entry.payload.get("content") or "")
        for entry in entries
    )


async def is_all_evidence_erased(fact: Fact, store: TapeStore) -> bool:
    """Return whether a fact had evidence, and the words of all of it were erased.

    Raises:
        TapeError: A tape cannot be read.
    """
    for evidence in fact.evidence:
        if not await is_evidence_erased(evidence, store):
            return False
    return bool(fact.evidence)
