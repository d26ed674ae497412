"""``memory.conclude``: keeps what follows from what happened, with the entries that it is drawn from.

Rule 1: the model names evidence by the numbers of entries; what that is worth, the gate computes.
Rule 2: what belongs to a problem that is not worked on is no evidence here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.errors import MemoryRefused
from bot.memory.bus.provenance import episode_id
from bot.memory.bus.records import SynthesizedPattern
from bot.memory.bus.written import Written
from bot.tape.search import problem_of
from bot.tools.registry import Tool, ToolContext, ToolOutcome

_CONFIDENCE = 0.7
"""Of what is concluded: less than what was said."""

_MOST = 24
_UNSET = datetime.fromtimestamp(0, UTC)


class ConcludeArguments(BaseModel):
    """Arguments of ``memory.conclude``."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["conclusion", "heuristic", "policy"] = Field(
        description="conclusion: what follows from what happened; heuristic: what tends to work; "
        "policy: if something, then something."
    )
    text: str = Field(min_length=1, max_length=1_000, description="One sentence.")
    evidence: list[int] = Field(
        default_factory=list,
        max_length=_MOST,
        description="Numbers of the entries that it is drawn from; left out, what is being answered.",
    )
    if_: str = Field("", alias="if", max_length=500, description="Of a policy: when it applies.")
    then: str = Field("", max_length=500, description="Of a policy: what is to be done then.")


async def _conclude(arguments: ConcludeArguments, context: ToolContext) -> ToolOutcome:
    context.check_learning()
    content = _content(arguments)
    evidence = [one.id for one in context.asking] if not arguments.evidence else arguments.evidence
    pattern = SynthesizedPattern(
        "",
        arguments.type,
        content,
        [episode_id(context.tape.name, one) for one in await _read(evidence, context)],
        _CONFIDENCE,
        _UNSET,
        _UNSET,
    )
    bus = context.memory.bus
    written = await bus.add_synthesis(pattern, by="assistant", cause=f"call:{context.call}")
    status = "ok" if written else "error"
    return ToolOutcome(_told(written), status, change=context.memory.current)


def _content(arguments: ConcludeArguments) -> dict[str, Any]:
    if arguments.type != "policy":
        return {"text": arguments.text}
    when, then = arguments.if_.strip(), arguments.then.strip()
    if not when or not then:
        raise MemoryRefused("a policy says when it applies (`if`) and what is done (`then`)")
    # The gate judges the text: nothing that is done may stand beside it only.
    text = f"{arguments.text.strip().rstrip('.')}: if {when}, then {then}"
    return {"text": text, "if": when, "then": then}


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


def _told(written: Written) -> str:
    """Return what became of it."""
    if written:
        return f"Kept as {written.id}; it fades unless new evidence confirms it."
    return f"Not concluded: {written.why}"


CONCLUDE = Tool(
    "memory.conclude",
    "Keep what follows from several things that happened here, with the entries that show it. Not for "
    "what the user says about themselves: that is memory.save.",
    ConcludeArguments,
    _conclude,
)
