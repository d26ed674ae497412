"""A claim in other words than were said, a model that saves it, its judge, and the wait for that."""

from __future__ import annotations

from typing import Any

from bot.testing.host import Host
from bot.testing.scripted_model import (
    Script,
    ScriptedModel,
    consolidation_reply,
    judgement_reply,
    text_reply,
    tool_call_reply,
)

HOME = "person:fake:7"
SAID = "Sis got herself a flat near the harbour in Porto."
CLAIM = "The user's sister bought an apartment by the docks of Porto."


def always(ruling: str) -> Script:
    return lambda request: judgement_reply(request, lambda _: ruling)


def add(*texts: str) -> list[dict[str, Any]]:
    return [{"op": "add", "text": text} for text in texts]


def change(fact: int, text: str, *ended: int) -> list[dict[str, Any]]:
    ends = [{"op": "end", "facts": [one]} for one in ended]
    return [{"op": "change", "facts": [fact], "text": text}, *ends]


def saving(judgement: Script, *turns: list[dict[str, Any]] | None) -> ScriptedModel:
    """A model that saves changes, turn by turn, where there are some."""
    steps = []
    for one in turns:
        steps += [tool_call_reply(("memory_save", {"changes": one}))] if one else []
        steps.append(text_reply("saved"))
    left = iter(steps)
    return ScriptedModel(lambda _: next(left, text_reply("ok")), judgement=judgement)


def consolidating(judgement: Script, *operations: dict[str, Any]) -> ScriptedModel:
    """A model that learns the operations when a session ends."""
    return ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=lambda _: consolidation_reply("[2026-02-10] Talk.", *operations),
        judgement=judgement,
    )


async def learned(host: Host, *said: str) -> str:
    """Say something and begin a new session; return what memory says."""
    for one in (*said, "/new"):
        await host.channel.ask(one)
    return await host.channel.ask("/memory")


async def judged(host: Host, count: int = 1) -> str:
    """Wait until the judge has ruled this often; return what memory says."""
    found = await host.events("memory.facts", HOME)
    while sum(one.data["author"] == "judge" for one in found) < count:
        found = await host.wait_for_event("memory.facts", len(found) + 1, session=HOME)
    return await host.channel.ask("/memory")
