"""What people say of themselves, in many languages and wordings, is kept: the gate is no wall."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from folded import fold_entries

from bot.bus import Sender
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_change,
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


async def _is_kept(host: Host, chat: int, pair: Pair, *, private: bool = True) -> bool:
    """Return whether memory holds just what was said, with the sentence for it that a judge may confirm."""
    name = f"person:fake:{chat}" if private else f"fake:c{chat}"
    facts = fold_entries(await host.tape(name)).active()
    claim, who = pair["claim"], "the user" if private else f"Ada ({chat})"
    claim = claim if private else f"{who}: {claim}"
    return [(fact.gloss, fact.text) for fact in facts] == [
        (claim, f'On 6 March 2026 {who} said: "{pair["said"]}"')
    ]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_an_honest_consolidation_learns_is_kept(tmp_path, language):
    current: list[Pair] = []

    def answer(_: Any) -> Any:
        pair = current[-1]
        return consolidation_reply(
            "[2026-03-06 10:00] Talk.", fact_change(pair["claim"], pair["said"])
        )

    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=answer)
    lost = []
    async with session_host(tmp_path, model, clock=ManualClock(FRIDAY)) as host:
        for chat, pair in enumerate(_in(language)):
            current.append(pair)
            await _say(host, chat, pair["said"])
            await _say(host, chat, "/new")
            if not await _is_kept(host, chat, pair):
                lost.append(pair)
    assert not lost


@pytest.mark.slow
async def test_what_is_honestly_said_in_a_group_is_kept_with_who_said_it(tmp_path):
    pairs = [pair for language in LANGUAGES for pair in _in(language)[:2]]
    steps = [consolidation_reply("Talk.", fact_change(one["claim"], one["said"])) for one in pairs]
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=steps)
    lost = []
    async with session_host(tmp_path, model, clock=ManualClock(FRIDAY)) as host:
        for chat, pair in enumerate(pairs):
            await _say(host, chat, pair["said"], private=False)
            await _say(host, chat, "/new", private=False)
            if not await _is_kept(host, chat, pair, private=False):
                lost.append(pair)
    assert not lost
