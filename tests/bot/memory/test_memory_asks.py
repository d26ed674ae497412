"""What begins with the program's word for "remember:" is a fact, in any of its languages."""

from __future__ import annotations

import pytest

from bot.agent.notebook import NotebookModel
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

ASKED = [
    ("remember: the wifi is called Otter", "The wifi is called Otter"),
    ("Remember:  my locker code\nis 4711", "My locker code is 4711"),
    ("Merke dir: ich mag Tee", "Ich mag Tee"),
    ("Retiens\u00a0: j'habite à Lyon", "J'habite à Lyon"),
    ("запомни: я живу в Осло", "Я живу в Осло"),
    ("запам’ятай: я живу в Осло", "Я живу в Осло"),
    ("记住：我住在上海", "我住在上海"),
]

NOT_ASKED = [
    "Do you remember: that evening?",
    "She said: remember: you owe me",
    "remember",
    "remember:",
    "I remember that day well",
    "Note: this is an automatic mail",
]


@pytest.mark.parametrize("model", [NotebookModel(), ScriptedModel([])], ids=["notebook", "model"])
async def test_what_is_asked_to_be_remembered_is_kept_in_the_persons_words(tmp_path, model):
    async with session_host(tmp_path, model) as host:
        for said, kept in ASKED:
            assert kept in await host.channel.ask(said)
        listed = await host.channel.ask("/memory")
        assert all(kept in listed for _, kept in ASKED)


async def test_what_only_looks_like_it_is_for_the_model(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("I see."))) as host:
        for said in NOT_ASKED:
            assert await host.channel.ask(said) == "I see."
        assert "**1.**" not in await host.channel.ask("/memory")


async def test_a_line_of_memory_is_one_line_whatever_is_said(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert "Two lines of it" in await host.channel.ask("/memory add - two\n\n  lines\tof it ")
        await host.channel.ask(f"/memory add {'x' * 5_000}")
        assert "xxx" not in await host.channel.ask("/memory")
