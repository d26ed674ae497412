"""A provider whose cache serves a conversation, and consolidations at the end of its prompt."""

from __future__ import annotations

import json
from dataclasses import replace

from bot.llm.base import ModelReply, ModelRequest, Usage
from bot.testing.scripted_model import USAGE, ScriptedModel, ScriptStep, text_reply

CACHED = replace(USAGE, prompt_tokens=40, cached_tokens=30)
"""What a provider reports whose cache serves a conversation."""


def operation(text: str, *quotes: str, **more: object) -> dict[str, object]:
    return {"op": "add", "fact": None, "text": text, "evidence": quotes, **more}


def kept(
    *operations: dict[str, object], history: str = "[2026-02-10 10:00] Ada counted."
) -> ModelReply:
    return text_reply(json.dumps({"history_entry": history, "operations": operations}))


def cached_model(*consolidation: ScriptStep, usage: Usage = CACHED) -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply("ok", usage=usage), consolidation=consolidation)


def is_continued(request: ModelRequest) -> bool:
    return "memory_recall" in {tool.name for tool in request.tools}
