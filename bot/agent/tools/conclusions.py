"""Save conclusions, heuristics and policies with the entries they cite.

Rule 1: the model cites evidence by entry number; the gate computes what it is worth.
Rule 2: entries of other problems than the active one are not accepted as evidence.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, cast

from bot.agent.tools.registry import ToolContext
from bot.agent.tools.save import MemoryChange
from bot.core.errors import MemoryRefused
from bot.core.patterns import LazyPattern
from bot.memory.gate.write_result import WriteResult
from bot.memory.records.compartment_records import PatternType, SynthesizedPattern
from bot.memory.records.episodes import episode_id
from bot.tape.search import problem_of

_CONFIDENCE = 0.7
"""Confidence of a conclusion: lower than that of a statement."""

_POLICY = LazyPattern(
    r"(?:when|if) (?P<if>[^,;]{1,500})[,;] *(?:then )?(?P<then>.{1,500})", re.IGNORECASE
)
_UNSET = datetime.fromtimestamp(0, UTC)


async def conclude(change: MemoryChange, number: int, context: ToolContext) -> tuple[bool, str]:
    """Save a conclusion, heuristic or policy; return whether it was saved, and a reply."""
    try:
        evidence = change.entries or [entry.id for entry in context.answered_messages]
        pattern = SynthesizedPattern(
            "",
            cast("PatternType", change.op),
            _content(change),
            [episode_id(context.tape.name, one) for one in await _read(evidence, context)],
            _CONFIDENCE,
            _UNSET,
            _UNSET,
        )
        cause = f"{context.cause}:{number}"
        written = await context.memory.bus.add_synthesis(pattern, by="assistant", cause=cause)
    except MemoryRefused as error:
        return False, f"Not kept: {error}."
    return bool(written), _told(written)


def _content(change: MemoryChange) -> dict[str, Any]:
    text = " ".join(change.text.split())
    if not text:
        raise MemoryRefused(f"a {change.op} has a text")
    if change.op != "policy":
        return {"text": text}
    hit = _POLICY.search(text)
    if hit is None:
        raise MemoryRefused('a policy reads "if ..., then ..."')
    return {"text": text, "if": hit["if"].strip(), "then": hit["then"].strip(" .")}


async def _read(evidence: list[int], context: ToolContext) -> list[int]:
    """Return the entries if all of them may be cited here.

    Raises:
        MemoryRefused: An entry does not exist or belongs to another problem.
    """
    for number in evidence:
        entry = next(iter(await context.tape.read_entries(number, number)), None)
        if entry is None:
            raise MemoryRefused(f"there is no entry {number} here")
        if (problem := problem_of(entry)) != context.problem:
            raise MemoryRefused(
                f"entry {number} belongs to the problem `{problem}`, which is not worked on now"
            )
    return evidence


def _told(written: WriteResult) -> str:
    """Return the outcome as a text for the model."""
    if written:
        return f"Kept as {written.id}; it fades unless new evidence confirms it."
    return f"Not kept: {written.explanation}"
