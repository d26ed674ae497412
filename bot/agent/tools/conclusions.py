"""Conclusions of ``memory.save``: what follows from what happened, with the entries that it is drawn from.

Rule 1: the model names evidence by the numbers of entries; what that is worth, the gate computes.
Rule 2: what belongs to a problem that is not worked on is no evidence here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, cast

from bot.agent.tools.registry import ToolContext
from bot.agent.tools.save import MemoryChange
from bot.core.errors import MemoryRefused
from bot.memory.bus.compartment_records import PatternType, SynthesizedPattern
from bot.memory.bus.provenance import episode_id
from bot.memory.bus.write_result import WriteResult
from bot.tape.search import problem_of

_CONFIDENCE = 0.7
"""Of what is concluded: less than what was said."""

_POLICY = re.compile(
    r"(?:when|if) (?P<if>[^,;]{1,500})[,;] *(?:then )?(?P<then>.{1,500})", re.IGNORECASE
)
_UNSET = datetime.fromtimestamp(0, UTC)


async def conclude(change: MemoryChange, number: int, context: ToolContext) -> tuple[bool, str]:
    """Keep a conclusion, heuristic or policy; return whether it was kept, and what the model is told.

    Args:
        change: Names its kind, its text and its entries; without entries, it rests on what is being answered.
        number: Its place among those of one call.
        context: Of the call.
    """
    try:
        evidence = change.entries or [one.id for one in context.answered_messages]
        pattern = SynthesizedPattern(
            "",
            cast("PatternType", change.op),
            _content(change),
            [episode_id(context.tape.name, one) for one in await _read(evidence, context)],
            _CONFIDENCE,
            _UNSET,
            _UNSET,
        )
        cause = f"call:{context.call_key}:{number}"
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
    """Return evidence that may be named here.

    Raises:
        MemoryRefused: An entry is not there, or of another problem.
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
    """Return what became of it."""
    if written:
        return f"Kept as {written.id}; it fades unless new evidence confirms it."
    return f"Not kept: {written.explanation}"
