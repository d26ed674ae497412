"""A person who counts, what a consolidation learns of that, and a provider whose cache serves the talk."""

from __future__ import annotations

import json
from dataclasses import replace

from bot.llm.base import ModelReply, ModelRequest, Usage
from bot.testing.host import Host, HostLimits
from bot.testing.scripted_model import (
    USAGE,
    ScriptedModel,
    ScriptStep,
    consolidation_reply,
    fact_change,
    text_reply,
)

SMALL = HostLimits(window=10)
COUNTS = fact_change("The user counts number 1.", "I count number 1.")
LEARNED = consolidation_reply("[2026-02-10 10:00] Ada counted.", COUNTS)
CACHED = replace(USAGE, prompt_tokens=40, cached_tokens=30)
"""What a provider reports whose cache serves a conversation."""


async def count(host: Host, turns: int, *, begin: int = 1) -> None:
    for number in range(begin, begin + turns):
        assert await host.channel.ask(f"I count number {number}.") == "ok"


def model_of(*consolidation: ScriptStep, usage: Usage = USAGE) -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply("ok", usage=usage), consolidation=consolidation)


def cached_model(*consolidation: ScriptStep, usage: Usage = CACHED) -> ScriptedModel:
    return model_of(*consolidation, usage=usage)


def kept(*claims: tuple[str, ...]) -> ModelReply:
    """Return what a model writes at the end of the conversation's prompt: claims and quotes."""
    operations = [{"op": "add", "text": text, "quotes": quotes} for text, *quotes in claims]
    history = "[2026-02-10 10:00] Ada counted."
    return text_reply(json.dumps({"history_entry": history, "changes": operations}))


def is_continued(request: ModelRequest) -> bool:
    return "memory_recall" in {tool.name for tool in request.tools}
