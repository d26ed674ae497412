"""Commands as a person meets them: unknown ones, languages, time zones, the tape, the choice of a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.pair import pair_command
from bot.bus import AccessRequest, Address, Answer
from bot.bus.access.control import open_access_control
from bot.core.i18n import LANGUAGES
from bot.llm.base import CapabilityProfile
from bot.llm.presets import ModelPresets, Preset
from bot.runtime.settings import load_settings
from bot.testing.fake_channel import ADA
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from tests.bot.agent.telling import BOB, EVE, GROUP, pressed, say, talk

GERMAN = replace(ADA, language="de")
NOTHING_RUNS = {"en": "Nothing is running.", "de": "Es läuft nichts.", "fr": "Rien n'est en cours."}


@pytest.mark.parametrize("text", ["/usr/bin is full", "/ hello", "//", "a /new", "/4"])
async def test_text_with_a_slash_is_a_message(tmp_path, text):
    async with session_host(tmp_path, ScriptedModel([text_reply("just text")])) as host:
        assert await host.channel.ask(text) == "just text"


async def test_an_unknown_command_or_form_names_the_nearest_and_help_lists_every_one(tmp_path):
    model = ScriptedModel()
    async with session_host(tmp_path, model) as host:
        await talk(
            host,
            ("/memroy", "no command `/memroy`", "`/memory`"),
            ("/Hlep@tapebot", "`/help`"),
            ("/memory udno", "Did you mean `/memory undo`?"),
            ("/tape serch x", "Did you mean `/tape search`?", "`/tape anchors TOPIC`"),
        )
        told = await host.channel.ask("/help")
        assert all(f"`/{one.name}`" in told for one in builtin_commands().visible_commands())
    assert model.requests == []


async def test_each_person_is_answered_in_their_choice_or_else_in_their_clients_language(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert await say(host, "/stop", sender=GERMAN) == NOTHING_RUNS["de"]
        bob = replace(BOB, language="fr")
        assert await say(host, "/stop", sender=bob, **GROUP) == NOTHING_RUNS["fr"]
        assert await say(host, "/stop", sender=EVE, **GROUP) == NOTHING_RUNS["en"]
        assert "English" in await say(host, "/language english", sender=GERMAN)
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert await say(host, "/stop", sender=GERMAN, chat="2") == NOTHING_RUNS["en"]
        await say(host, "/language")
        assert pressed(host) == [(title, f"/language {code}") for code, title in LANGUAGES.items()]
        for wanted in ("de-AT", "allemand", "Немецкий", "德语"):
            await talk(host, (f"/language {wanted}", "Deutsch"), ("/stop", NOTHING_RUNS["de"]))
            await say(host, "/language en")
        await talk(host, ("/language italiana", "`/language it`"), ("/stop", NOTHING_RUNS["en"]))


async def test_a_time_zone_is_set_by_its_city_and_asked_about_where_it_is_not_clear(
    tmp_path, monkeypatch
):
    zones = {
        "Berlin, Germany": "Europe/Berlin",
        "NEW_YORK": "America/New_York",
        "Sao Paulo": "America/Sao_Paulo",
        "Москва": "Europe/Moscow",
        "utc": "UTC",
    }
    async with session_host(tmp_path, ScriptedModel([])) as host:
        for wanted, zone in zones.items():
            monkeypatch.setenv("TAPEBOT_TIMEZONE", wanted)
            assert load_settings(home=tmp_path).timezone == zone
            await talk(host, (f"/timezone {wanted}", f"`{zone}`"), ("/timezone", f"`{zone}`"))
        choice = "Did you mean `/timezone America/Chicago` or `/timezone America/Winnipeg`?"
        await talk(
            host,
            ("/timezone central", choice),
            ("/timezone Brlin", "Did you mean `/timezone Europe/Berlin`?"),
            ("/timezone GMT+2", "Give its IANA name"),
            ("/timezone", "`UTC`"),
        )


async def test_the_tape_tells_its_state_its_phases_and_what_was_said(tmp_path):
    handed = tool_call_reply(("tape_handoff", {"name": "trip", "summary": "Lisbon is booked."}))
    steps = iter([text_reply("ok"), handed])
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")))
    async with session_host(tmp_path, model) as host:
        await talk(host, ("My bicycle is green.",), ("begin anew",), ("/new now",))
        for _ in range(2):  # the second time there is the command itself on the tape
            told = await say(host, "/tape search green bicycle", sender=BOB, role="member")
            assert told.count("My bicycle is green.") == 1
            assert "Ada" in told
        await talk(
            host,
            ("/tape search zebra", "No matching records."),
            ("/tape search", "What should I search for?"),
            ("/tape", "- Tape: `fake:1`", "- This phase: `session/new`", "sealed segments: "),
        )
        told = await say(host, "/tape anchors")
        assert told.index("trip") < told.index("session/start")
        assert "session/start" not in await say(host, "/tape anchors lisbon")


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


STRANGER = AccessRequest(Address("fake", "9"), EVE, True, ("9",), "hello")


async def test_an_owner_lets_a_stranger_in_who_is_told_and_a_member_does_not(tmp_path):
    async def tell(address: Address, text: str) -> None:
        await host.bus.send(Answer(address, "told", text))

    async with open_access_control(tmp_path, owners=("fake:7",), send_notice=tell) as access:
        commands = builtin_commands([pair_command(access)])
        async with session_host(tmp_path, ScriptedModel(), commands=commands) as host:
            code = ((await access.authorize(STRANGER)).reply or "").split("/pair ")[1].split()[0]
            await talk(host, (f"/pair {code}", "Only an owner"), sender=BOB, role="member")
            assert (await access.authorize(STRANGER)).role is None
            await talk(host, (f"/pair {code}", "`fake:9` `Eve` may use this bot now"))
            await host.channel.wait_until(
                lambda: any(one.address.chat_id == "9" for one in host.channel.answers)
            )
            assert (await access.authorize(STRANGER)).role == "member"
            await talk(host, ("/pair remove fake:9",))
            assert (await access.authorize(STRANGER)).role is None
