"""Validate a new belief: its content, its size, and its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.memory.gate.belief_updates import MOST_EVIDENCE, belief_faults, is_summary
from bot.memory.gate.evidence_status import find_evidence_faults
from bot.memory.gate.memory_validation import is_placeholder
from bot.memory.gate.secret_detection import check_no_secret
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import episode_id, parse_episode_id
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.store import TapeStore

MAX_BELIEF_TEXT = 1_000
MAX_BELIEF_CONTENT = 4_000
"""Size limit of a belief's content, in bytes of JSON."""

_UNKNOWN = datetime.fromtimestamp(0, UTC)


async def validate_belief(
    pattern: SynthesizedPattern, home: ScopeMemory, store: TapeStore, session: str
) -> SynthesizedPattern:
    """Return a belief in the form in which a scope stores it.

    Args:
        pattern: The proposed belief.
        home: The scope; it must be open.
        store: The store of the tapes with the evidence.
        session: Tape of the session that drew the conclusion.

    Raises:
        MemoryRefused: The belief is not valid; the message says why.
    """
    if home.fold.paused:
        raise MemoryRefused(_("memory is paused: nothing is learned until `/memory resume`"))
    if pattern.pattern_type == "fact":
        raise MemoryRefused(_("a fact is remembered (`memory.save`), not concluded"))
    text = " ".join(pattern.text.split())
    content = {**pattern.content, "text": text}
    _check_content(text, content)
    evidence = await _evidence(pattern.evidence_ids, home, store, session)
    confidence = min(1.0, max(0.0, pattern.confidence))
    return replace(
        pattern,
        content=content,
        evidence_ids=evidence,
        confidence=confidence,
        status="active",
        reason="",
    )


def _check_content(text: str, content: dict[str, Any]) -> None:
    if not text or is_placeholder(text):
        raise MemoryRefused(_("it says nothing"))
    try:
        told = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MemoryRefused(_("a belief must be JSON ({error})", error=error)) from error
    size = len(told.encode("utf-8", "backslashreplace"))
    if len(text) > MAX_BELIEF_TEXT or size > MAX_BELIEF_CONTENT:
        raise MemoryRefused(
            _(
                "a belief has at most {limit} characters and {bytes} bytes in all",
                limit=MAX_BELIEF_TEXT,
                bytes=MAX_BELIEF_CONTENT,
            )
        )
    for said in map(str, content.values()):
        check_no_secret(said, "secret_unasked")


async def _evidence(
    given: Iterable[str], home: ScopeMemory, store: TapeStore, session: str
) -> list[str]:
    """Return valid evidence ids without duplicates, with summary ids as episode ids.

    Raises:
        MemoryRefused: A piece is invalid, or there are none or too many.
    """
    named = (episode_id(session, int(one[1:])) if is_summary(one) else one for one in given)
    ids = list(dict.fromkeys(named))
    if not ids:
        raise MemoryRefused(_("a belief rests on evidence: name the entries that it is drawn from"))
    if len(ids) > MOST_EVIDENCE:
        raise MemoryRefused(
            _("name at most {limit} entries, the most telling ones", limit=MOST_EVIDENCE)
        )
    tapes = {place[0] for other in ids if (place := parse_episode_id(other)) is not None}
    if home.kind == "session" and tapes - {home.name}:
        raise MemoryRefused(_("what was said elsewhere is no evidence in this chat"))
    found = await find_evidence_faults(store, ids, session)
    resting = SynthesizedPattern("", "conclusion", {}, ids, 0.0, _UNKNOWN, _UNKNOWN)
    faults = belief_faults(resting, home.compartments.patterns, home.fold, found)
    if faults:
        what = ", ".join(map(str, faults.values()))
        raise MemoryRefused(_("{what}: name evidence that holds", what=what))
    return ids
