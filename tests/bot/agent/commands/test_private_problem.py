"""``/problem private on``: who sees what is said there, and what becomes of it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from bot.llm.presets import ModelPresets, Preset
from bot.tape.service import TapeService
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)
from tests.bot.agent.telling import say, shown, talk

NEW = (("/problem new Health",), ("/problem private on", "“Health” is private."))


def scripted(text: str) -> ScriptedModel:
    summary = consolidation_reply("[2026-02-10 10:00] The knee hurts.")
    return ScriptedModel(lambda _: text_reply(text), consolidation=lambda _: summary)


@pytest.fixture
def opens() -> ScriptedModel:
    return scripted("from outside")


@asynccontextmanager
async def private(folder, opens: ScriptedModel, home: ScriptedModel | None, **settings):
    """Run the program with a model outside and a private one; the knee is nothing for the first."""
    presets = [Preset("open", opens)]
    presets += [Preset("home", home, private=True)] if home is not None else []
    async with session_host(folder, opens, presets=ModelPresets(presets), **settings) as host:
        yield host
    assert "knee" not in str([one.messages for one in opens.requests])


async def test_a_private_problem_is_answered_by_a_private_model_whatever_is_chosen(tmp_path, opens):
    async with private(tmp_path, opens, scripted("from here")) as host:
        await talk(
            host,
            ("/problem private on", "general is never private"),
            *(*NEW, ("my knee hurts", "from here"), ("/model open", "only private models")),
            *(("badly, my knee", "from here"), ("/status", "this problem is private")),
            *(("/problem", "Health: active, private"), ("/problem private off", "stays private")),
        )
        await TapeService(host.store, "fake:1").fork_session("fake:2", intention="again")
        assert await say(host, "and my knee now?", chat="2") == "from here"
        await talk(host, ("/problem switch general",), ("hello", "from outside"))


async def test_without_a_private_model_it_says_so_and_sends_nothing(tmp_path, opens):
    async with private(tmp_path, opens, None) as host:
        await say(host, "/problem new Health")
        nowhere = "I sent your message nowhere: this problem is private"
        await talk(
            host,
            *(("/problem private on", "there is no private model"), ("my knee hurts", nowhere)),
        )
    assert opens.requests == []


async def test_nothing_said_there_becomes_a_fact_and_who_asks_is_told(tmp_path, opens):
    save = tool_call_reply(memory_save_call("My knee hurts."))
    home = ScriptedModel(lambda r: save if r.messages[-1]["role"] == "user" else text_reply("ok"))
    async with private(tmp_path, opens, home) as host:
        await talk(
            host,
            *(("/memory add I live in Berlin.",), *NEW, ("Remember that my knee hurts.",)),
            ("/memory add My knee hurts.", "this problem is private"),
            ("/reference set knee hurts", "this problem is private"),
        )
        assert "nothing said in it becomes a part of memory" in shown(home)
        assert "Berlin" in shown(home)
        assert "knee" not in await say(host, "/memory")
        await talk(host, ("/problem note must spare the knee",), ("and now?",))
        assert "spare the knee" in shown(home)
        await talk(host, ("/problem switch general",), ("hello",))


async def test_a_private_model_sums_it_up_and_no_other_does(tmp_path, opens):
    home = scripted("ok")
    async with private(tmp_path, opens, home, bounds=HostLimits(window=10)) as host:
        await talk(host, *NEW, *((f"my knee hurts, day {number}",) for number in range(8)))
        [history, *_] = await host.wait_for_event("memory.history")
        assert (history.meta["problem"], history.meta["local_only"]) == ("p1", True)
    assert home.requests_for("consolidation")
    assert opens.requests == []


async def test_a_quote_of_it_is_withheld_elsewhere(tmp_path, opens):
    async with private(tmp_path, opens, scripted("Put **ice** on the knee")) as host:
        await talk(host, *NEW, ("my knee hurts",), ("/problem switch general",))
        for quote, withheld in (("Put ice on the knee", True), ("a green bicycle", False)):
            await say(host, "what of this?", quote=quote)
            assert (quote not in shown(opens)) is withheld
