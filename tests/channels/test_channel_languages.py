"""Channels know the language of their clients, and list commands in every language."""

from __future__ import annotations

import json

import pytest
from discord_rig import Rig as DiscordRig
from telegram_rig import rigged

from bot.core.i18n import LANGUAGES, _, use_language
from channels.base import MenuCommand

SUMMARY = "show or choose the language that I speak with you"
COMMAND = MenuCommand("language", SUMMARY, (("auto", "follow the language of your app"),))


def in_language(code: str, text: str = SUMMARY) -> str:
    with use_language(code):
        return _(text)


@pytest.fixture
async def rig(tmp_path):
    async with rigged(tmp_path) as rig:
        yield rig


async def test_telegram_lists_commands_in_each_language_and_sets_only_what_differs(rig):
    rig.commands = (COMMAND,)
    spoken = {code for code in LANGUAGES if in_language(code) != SUMMARY}
    for looked_up in (12, 24):
        async with rig.running():
            await rig.telegram.until(
                lambda books, most=looked_up: len(books.called("getMyCommands")) == most
            )
            rig.telegram.say(rig.telegram.private(7), 7, "Hello?")
            await rig.arrived(looked_up // 12)
    calls = [call.params for call in rig.telegram.records.called("setMyCommands")]
    assert {call.get("language_code") for call in calls} == {None, *spoken}
    assert len(calls) == len(spoken) + 1
    menus = {call.get("language_code"): json.loads(call["commands"]) for call in calls}
    assert menus["de"] == [{"command": "language", "description": in_language("de")}]


async def test_telegram_states_the_language_of_the_client(rig):
    rig.telegram.user(8, "Eva", language="de-AT")
    rig.telegram.user(9, "Bo", language="tlh")
    async with rig.running():
        for person in (8, 9):
            rig.access_control.people[str(person)] = "member"
            rig.telegram.say(rig.telegram.private(person), person, "Hello")
        await rig.arrived(2)
    assert {one.sender.id: one.sender.language for one in rig.inbounds} == {"8": "de", "9": ""}


async def test_discord_states_the_language_of_the_client_that_gives_a_command(server, tmp_path):
    made = DiscordRig(server, tmp_path)
    eva = server.user("eva", shown="Eva", locale="pt-BR")
    made.doors.people[str(eva)] = "owner"
    place = server.channel(server.guild("home", [eva]), "general")
    async with made.connected():
        await server.until(lambda books: books.commands.get(0))
        server.slash(place, eva, "memory")
        (inbound,) = await made.hear()
    assert inbound.sender.language == "pt"
