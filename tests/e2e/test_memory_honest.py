"""What people say of themselves, in many languages and wordings, is kept: the gate is no wall."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.bus import Sender
from bot.memory.records.fact_fold import fold_entries
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    text_reply,
)

Pair = dict[str, str]

FRIDAY = datetime(2026, 3, 6, 10, 0, tzinfo=UTC)
_DATA = Path(__file__).parents[1] / "bot" / "memory" / "honest_statements.jsonl"
HONEST: list[Pair] = [json.loads(line) for line in _DATA.read_text(encoding="utf-8").splitlines()]
LANGUAGES = sorted({pair["language"] for pair in HONEST})


def _in(language: str) -> list[Pair]:
    return [pair for pair in HONEST if pair["language"] == language]


async def _say(host: Host, chat: int, text: str, *, private: bool = True) -> str:
    inbound = await host.channel.send(
        text, chat=f"c{chat}", sender=Sender(str(chat), "Ada"), private=private
    )
    return await host.channel.wait_for_answer(inbound)


async def _believed(host: Host, chat: int, *, private: bool = True) -> list[str]:
    name = f"person:fake:{chat}" if private else f"fake:c{chat}"
    return [fact.text for fact in fold_entries(await host.tape(name)).active()]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_an_honest_consolidation_learns_is_kept(tmp_path, language):
    current: list[Pair] = []

    def answer(_: Any) -> Any:
        pair = current[-1]
        return consolidation_reply(
            "[2026-03-06 10:00] Talk.", fact_operation(pair["claim"], pair["said"])
        )

    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=answer)
    lost = []
    async with session_host(tmp_path, model, clock=ManualClock(FRIDAY)) as host:
        for chat, pair in enumerate(_in(language)):
            current.append(pair)
            await _say(host, chat, pair["said"])
            await _say(host, chat, "/new")
            if [pair["claim"]] != await _believed(host, chat):
                lost.append(pair)
    assert not lost


@pytest.mark.slow
async def test_what_is_honestly_said_in_a_group_is_kept_with_who_said_it(tmp_path):
    pairs = [pair for language in LANGUAGES for pair in _in(language)[:2]]
    steps = [
        consolidation_reply("Talk.", fact_operation(one["claim"], one["said"])) for one in pairs
    ]
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=steps)
    lost = []
    async with session_host(tmp_path, model, clock=ManualClock(FRIDAY)) as host:
        for chat, pair in enumerate(pairs):
            await _say(host, chat, pair["said"], private=False)
            await _say(host, chat, "/new", private=False)
            found = await _believed(host, chat, private=False)
            if found != [f"Ada ({chat}): {pair['claim']}"]:
                lost.append((pair, found))
    assert not lost
