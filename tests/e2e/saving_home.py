"""A home in which a model saves what it is told, a judge judges it, and a consolidation learns: for kills in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.llm.base import ModelReply, ModelRequest
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    judgement_reply,
    text_reply,
    tool_call_reply,
)

OLD = "Lotte: piano on Wednesdays at 16:00"
NEW = "Lotte: piano on Wednesdays at 17:00"
MOVED = "Lotte's piano moved to 17:00, same day."
FLAT = "Sis got herself a flat near the harbour in Porto."
BOUGHT = "The user's sister bought an apartment by the docks of Porto."
GYM = "I went to the gym once in Porto."
ALWAYS = "The user goes to a gym in Porto."
WORKS = "I work at Kestrel now."


def turn(request: ModelRequest) -> ModelReply:
    """Change the fact where it is told to have changed."""
    last = request.messages[-1]
    if last["role"] == "user" and MOVED in str(last["content"]):
        change: dict[str, Any] = {"op": "change", "fact": 1, "text": NEW}
        return tool_call_reply(("memory_save", {"changes": [change]}))
    return text_reply("ok")


def consolidation(request: ModelRequest) -> ModelReply:
    """Learn one thing in other words, one that was not said so, and one in the place of a fact."""
    told = str(request.messages[-1]["content"]).splitlines()
    operations = []
    for said, claim, fact in ((FLAT, BOUGHT, None), (GYM, ALWAYS, None), (WORKS, WORKS, 2)):
        number = next(
            (int(one[1:].split()[0]) for one in told if one[:1] == "#" and said in one), 0
        )
        if number:
            op = "add" if fact is None else "supersede"
            operations.append(fact_operation(claim, said, number, op=op, fact=fact, subject="life"))
    return consolidation_reply("[2026-02-10 10:00] They talked.", *operations)


def judgement(request: ModelRequest) -> ModelReply:
    """Find that once is not always."""
    return judgement_reply(
        request, lambda one: "overstated" if "gym" in one["claim"] else "supported"
    )


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Host]:
    """Run the program in a folder."""
    model = ScriptedModel(turn, consolidation=consolidation, judgement=judgement)
    async with session_host(folder, model, clock=ManualClock()) as host:
        yield host
