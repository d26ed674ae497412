"""A tool of a plug-in by which the model draws conclusions from the messages that it answers, or from entries."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.memory.records.compartment_records import PatternType, SynthesizedPattern
from bot.memory.records.episodes import episode_id

_UNSET = datetime.fromtimestamp(0, UTC)


class Conclusion(BaseModel):
    text: str
    entries: list[int] = []
    kind: PatternType = "conclusion"


async def _conclude(asked: Conclusion, context: ToolContext) -> ToolOutcome:
    entries = asked.entries or [entry.id for entry in context.answered_messages]
    evidence = [episode_id(context.tape.name, one) for one in entries]
    pattern = SynthesizedPattern(
        "", asked.kind, {"text": asked.text}, evidence, 0.7, _UNSET, _UNSET
    )
    written = await context.memory.bus.add_synthesis(
        pattern, by="assistant", cause=f"{context.cause}:0"
    )
    told = f"Kept as {written.id}" if written else f"Not kept: {written.explanation}"
    return ToolOutcome(told, zone_edit=context.memory.with_current_facts)


CONCLUDE = Tool("belief.add", "Conclude.", Conclusion, _conclude, effect="writes_own")
