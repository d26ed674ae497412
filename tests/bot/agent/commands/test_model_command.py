"""``/model``: a chat's own choice of model, from the command to the requests."""

from __future__ import annotations

from dataclasses import replace

from bot.core.ids import new_id
from bot.llm.base import CapabilityProfile
from bot.llm.presets import ModelPresets, Preset
from bot.runtime.sessions.services import ContextLimits
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply


def scripted(name: str, profile: CapabilityProfile | None = None) -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply(f"{name} answers"), profile=profile)


def presets_of(**models: ScriptedModel) -> ModelPresets:
    return ModelPresets([Preset(name, model) for name, model in models.items()])


async def test_a_chat_switches_to_another_model_and_back_and_other_chats_do_not(tmp_path):
    first, second = scripted("first"), scripted("second")
    async with session_host(tmp_path, first, presets=presets_of(a=first, b=second)) as host:
        shown = await host.channel.ask("/model")
        assert "**a** (chosen)" in shown
        assert "**b**" in shown
        assert await host.channel.ask("hello") == "first answers"
        assert "**b** answers here" in await host.channel.ask("/model b")
        assert await host.channel.ask("hello") == "second answers"
        assert await host.channel.ask("hello", chat="2") == "first answers"
        assert "preset `b`" in await host.channel.ask("/status")
        assert "**a** answers here" in await host.channel.ask("/model default")
        assert await host.channel.ask("hello") == "first answers"
        chosen = [entry.data for entry in await host.events("model.chosen")]
        assert [data["preset"] for data in chosen] == ["b", ""]
        assert all(data["by"] for data in chosen)


async def ask(host: Host, text: str, **who: object) -> str:
    """Send a message under an id that no earlier process used, and return its answer."""
    return await host.channel.wait_for_answer(
        await host.channel.send(text, message_id=new_id("m"), **who)
    )


async def test_the_choice_is_kept_over_a_restart_and_a_new_session(tmp_path):
    for asks in (["/model b", "hi"], ["hi"], ["/new now", "hi"]):
        first, second = scripted("first"), scripted("second")
        async with session_host(tmp_path, first, presets=presets_of(a=first, b=second)) as host:
            for text in asks:
                reply = await ask(host, text)
            assert reply == "second answers"


async def test_a_turn_that_a_kill_interrupts_goes_on_with_its_own_model(tmp_path):
    paused = PausedStep(text_reply("never"))
    first, second = scripted("first"), ScriptedModel([paused])
    async with session_host(tmp_path, first, presets=presets_of(a=first, b=second)) as host:
        await host.channel.ask("/model b")
        thinking = await host.channel.send("think")
        await paused.entered.wait()
        await host.channel.ask("/model default")
    first, second = scripted("first"), scripted("second")
    async with session_host(tmp_path, first, presets=presets_of(a=first, b=second)) as host:
        assert await host.channel.wait_for_answer(thinking) == "second answers"
        assert await ask(host, "and now") == "first answers"


async def test_who_may_choose_what(tmp_path):
    first, second, third = scripted("first"), scripted("second"), scripted("third")
    presets = ModelPresets(
        [Preset("fast", first), Preset("good", second, owner_only=True), Preset("home", third)]
    )
    async with session_host(tmp_path, first, presets=presets) as host:
        assert "**good**" not in await ask(host, "/model", role="member")
        assert "**good**" in await ask(host, "/model", role="owner")
        assert await ask(host, "/model good", role="member") == (
            "Only an owner may choose `good`. `/model` lists what you may choose."
        )
        assert "Did you mean `/model home`?" in await ask(host, "/model hom", role="member")
        group = {"chat": "9", "private": False}
        assert "only an owner" in await ask(host, "/model home", role="member", **group)
        assert "**good** answers here" in await ask(host, "/model good", role="owner", **group)
        assert await ask(host, "hello", role="member", **group) == "second answers"
        assert await host.events("model.chosen") == []


async def test_a_smaller_window_cuts_the_view_and_does_not_break_the_turn(tmp_path):
    large, small = scripted("large"), scripted("small", CapabilityProfile(context_tokens=2_000))
    presets = ModelPresets([Preset("a", large), Preset("b", small, context_tokens=2_000)])
    async with session_host(tmp_path, large, presets=presets) as host:
        host.supervisor._services = replace(
            host.services,
            limits_for=lambda window: ContextLimits(window * 3 // 4, window // 2, window),
        )
        for number in range(8):
            await host.channel.ask(f"{number} " + "word " * 400)
        await host.channel.ask("/model b")
        assert await host.channel.ask("and now") == "small answers"
        words = str(small.requests_for()[-1].messages)
        assert "7 word" in words
        assert "1 word" not in words
        await host.channel.ask("/model default")
        assert await host.channel.ask("back again") == "large answers"
