"""``/model``: a chat's own choice of model, from the command to the requests."""

from __future__ import annotations

from bot.llm.base import CapabilityProfile
from bot.llm.presets import ModelPresets, Preset
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply
from tests.bot.agent.telling import GROUP, say, talk


def scripted(name: str, profile: CapabilityProfile | None = None) -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply(f"{name} answers"), profile=profile)


def host_of(folder, first=None, second=None, name="b"):
    """Run the program with two presets, of which ``a`` is the default."""
    first, second = first or scripted("first"), second or scripted("second")
    presets = ModelPresets([Preset("a", first), Preset(name, second)])
    return session_host(folder, first, presets=presets)


async def test_a_chat_switches_to_another_model_and_back_and_other_chats_do_not(tmp_path):
    async with host_of(tmp_path) as host:
        await talk(
            host,
            *(("/model", "**a** (chosen)", "**b**"), ("hello", "first answers")),
            *(("/model b", "**b** answers here"), ("hello", "second answers")),
        )
        assert await say(host, "hello", chat="2") == "first answers"
    async with host_of(tmp_path) as host:
        await talk(
            host,
            *(("hi", "second answers"), ("/new now",), ("hi", "second answers")),
            *(("/status", "preset `b`"), ("/model default", "**a** answers here")),
            *(("hello", "first answers"), ("/model b",)),
        )
    async with host_of(tmp_path, name="c") as host:  # it is gone from the settings
        await talk(host, ("hello", "first answers"), ("/model", "**a** (chosen)"))


async def test_a_turn_that_a_kill_interrupts_goes_on_with_its_own_model(tmp_path):
    paused = PausedStep(text_reply("never"))
    async with host_of(tmp_path, second=ScriptedModel([paused])) as host:
        await say(host, "/model b")
        thinking = await host.channel.send("think")
        await paused.entered.wait()
        await say(host, "/model default")
    async with host_of(tmp_path) as host:
        assert await host.channel.wait_for_answer(thinking) == "second answers"
        assert await say(host, "and now") == "first answers"


async def test_who_may_choose_what(tmp_path):
    first, second, third = scripted("first"), scripted("second"), scripted("third")
    presets = ModelPresets(
        [Preset("fast", first), Preset("good", second, owner_only=True), Preset("home", third)]
    )
    async with session_host(tmp_path, first, presets=presets) as host:
        assert "**good**" not in await say(host, "/model", role="member")
        await talk(
            host,
            ("/model good", "Only an owner may choose `good`."),
            ("/model hom", "Did you mean `/model home`?"),
            role="member",
        )
        await talk(host, ("/model home", "only an owner"), role="member", **GROUP)
        await talk(host, ("/model good", "**good** answers here"), **GROUP)
        assert await say(host, "hello", role="member", **GROUP) == "second answers"
