"""``/problem private on``: who sees what is said there, and what becomes of it."""

from __future__ import annotations

from bot.llm.presets import ModelPresets, Preset
from bot.tape.service import TapeService
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    consolidation_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)


def words(model: ScriptedModel) -> str:
    """Return everything that a model was asked."""
    return "".join(str(request.messages) for request in model.requests)


def two(opens: ScriptedModel, home: ScriptedModel) -> ModelPresets:
    return ModelPresets([Preset("open", opens), Preset("home", home, private=True)])


async def make_private(host: Host, name: str = "Health") -> str:
    await host.channel.ask(f"/problem new {name}")
    return await host.channel.ask("/problem private on")


async def test_a_private_problem_is_answered_by_a_private_model_whatever_is_chosen(tmp_path):
    opens = ScriptedModel(lambda _: text_reply("from outside"))
    home = ScriptedModel(lambda _: text_reply("from here"))
    async with session_host(tmp_path, opens, presets=two(opens, home)) as host:
        ask = host.channel.ask
        assert "“Health” is private." in await make_private(host)
        assert await ask("my knee hurts") == "from here"
        assert "only private models" in await ask("/model open")
        assert await ask("badly") == "from here"
        assert "this problem is private" in await ask("/status")
        assert "Health: active, private" in await ask("/problem")
        await ask("/problem switch general")
        assert await ask("hello") == "from outside"
    assert "knee" not in words(opens)


async def test_without_a_private_model_it_says_so_and_sends_nothing(tmp_path):
    opens = ScriptedModel(lambda _: text_reply("from outside"))
    presets = ModelPresets([Preset("open", opens)])
    async with session_host(tmp_path, opens, presets=presets) as host:
        assert "there is no private model" in await make_private(host)
        told = await host.channel.ask("my knee hurts")
        assert told.startswith("I sent your message nowhere: this problem is private")
    assert opens.requests == []


async def test_nothing_said_there_becomes_a_fact_and_who_asks_is_told(tmp_path):
    opens = ScriptedModel(lambda _: text_reply("ok"))
    save = tool_call_reply(memory_save_call("My knee hurts."))
    home = ScriptedModel(lambda r: save if r.messages[-1]["role"] == "user" else text_reply("ok"))
    async with session_host(tmp_path, opens, presets=two(opens, home)) as host:
        ask = host.channel.ask
        await ask("/memory add I live in Berlin.")
        await make_private(host)
        await ask("Remember that my knee hurts.")
        assert "nothing said in it becomes a part of memory" in words(home)
        for command in ("/memory add My knee hurts.", "/reference set knee hurts"):
            assert "this problem is private" in await ask(command)
        shown = await ask("/memory")
        assert "Berlin" in shown
        assert "knee" not in shown
        assert "Berlin" in words(home)
        await ask("/problem note must spare the knee")
        await ask("and now?")
        assert "spare the knee" in str(home.requests_for()[-1].messages)
        await ask("/problem switch general")
        await ask("hello")
    assert "knee" not in words(opens)


async def test_a_private_model_sums_it_up_and_no_other_does(tmp_path):
    def model() -> ScriptedModel:
        return ScriptedModel(
            lambda _: text_reply("ok"),
            consolidation=lambda _: consolidation_reply("[2026-02-10 10:00] The knee hurts."),
        )

    opens, home = model(), model()
    async with session_host(
        tmp_path, opens, presets=two(opens, home), bounds=HostLimits(window=10)
    ) as host:
        await make_private(host)
        for number in range(8):
            await host.channel.ask(f"my knee hurts, day {number}")
        [history, *_] = await host.wait_for_event("memory.history")
        assert history.meta["problem"] == "p1"
        assert history.meta["local_only"] is True
        assert home.requests_for("consolidation")
    assert opens.requests == []


async def test_a_quote_of_it_is_withheld_elsewhere(tmp_path):
    opens = ScriptedModel(lambda _: text_reply("ok"))
    home = ScriptedModel(lambda _: text_reply("Put **ice** on the knee"))
    async with session_host(tmp_path, opens, presets=two(opens, home)) as host:
        await make_private(host)
        await host.channel.ask("my knee hurts")
        await host.channel.ask("/problem switch general")
        for quote, shown in (("Put ice on the knee", False), ("a green bicycle", True)):
            asked = await host.channel.send("what of this?", quote=quote)
            await host.channel.wait_for_answer(asked)
            assert (quote in words(opens)) is shown


async def test_a_fork_of_it_is_private_too(tmp_path):
    opens = ScriptedModel(lambda _: text_reply("from outside"))
    home = ScriptedModel(lambda _: text_reply("from here"))
    async with session_host(tmp_path, opens, presets=two(opens, home)) as host:
        await make_private(host)
        await host.channel.ask("my knee hurts")
        await TapeService(host.store, "fake:1").fork_session("fake:2", intention="again")
        assert await host.channel.ask("and now?", chat="2") == "from here"
    assert opens.requests == []


async def test_a_private_turn_that_a_kill_interrupts_goes_on_with_a_private_model(tmp_path):
    opens, paused = ScriptedModel([]), PausedStep(text_reply("never"))
    async with session_host(tmp_path, opens, presets=two(opens, ScriptedModel([paused]))) as host:
        await make_private(host)
        asked = await host.channel.send("my knee hurts")
        await paused.entered.wait()
    home = ScriptedModel([text_reply("from here")])
    async with session_host(tmp_path, opens, presets=two(opens, home)) as host:
        assert await host.channel.wait_for_answer(asked) == "from here"
    assert opens.requests == []
