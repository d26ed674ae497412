"""The program as a person runs it: its menus list what acts, and reminders come to chat and terminal."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from platform_program import running
from waiting import until

from testkit.discord.server import DiscordServer
from testkit.discord.validation import components
from testkit.telegram.server import TelegramServer

NEW = {"remind", "schedules", "timezone", "budget", "approve", "deny", "approvals"}


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[tuple[TelegramServer, DiscordServer, int]]:
    """Run the program on both platforms; Ada owns it. Yield them, and her id on Discord."""
    async with TelegramServer() as telegram, DiscordServer() as discord:
        telegram.private(telegram.user(7, "Ada"))
        ada = discord.user("Ada")
        settings = {
            "TAPEBOT_TELEGRAM_TOKEN": telegram.token,
            "TAPEBOT_TELEGRAM_API_BASE": telegram.url,
            "TAPEBOT_DISCORD_TOKEN": discord.token,
            "TAPEBOT_DISCORD_API_BASE": discord.api_url,
            "TAPEBOT_DISCORD_GATEWAY_URL": discord.gateway_url,
            "TAPEBOT_OWNERS": f"telegram:7,discord:{ada}",
        }
        async with running(folder, **settings):
            await telegram.until(lambda books: books.polling)
            await discord.until_connected(within=60)
            yield telegram, discord, ada


@pytest.mark.slow
async def test_the_menus_list_what_acts_and_a_reminder_comes_to_both_platforms(tmp_path):
    async with both(tmp_path) as (telegram, discord, ada):
        await telegram.until(lambda books: books.called("setMyCommands"))
        menu = json.loads(telegram.records.called("setMyCommands")[-1].params["commands"])
        assert {one["command"] for one in menu} >= NEW
        assert not [call for call in telegram.records.rejected if call.method == "setMyCommands"]
        registered = await discord.until(lambda books: books.commands.get(0))
        assert {one["name"] for one in registered} >= NEW
        assert len(registered) <= 100
        for one in registered:
            assert re.fullmatch(r"[-_'\w]{1,32}", one["name"])
            texts = [one["description"], *(each["description"] for each in one["options"])]
            assert all(1 <= len(text) <= 100 for text in texts), one

        chat = discord.direct(ada)
        offered = await discord.autocomplete(chat, ada, "budget", "what", "")
        assert {one["value"] for one in offered} == {"all", "set", "rate", "off"}
        telegram.say(telegram.private(7), 7, "/remind in 1 second drink water")
        discord.slash(chat, ada, "remind", {"what": "in 1 second drink water"})
        await telegram.until(lambda books: any("(for " in text for text in books.texts(7)))
        shown = next(one for one in telegram.records.messages(7) if "(for " in one.text)
        telegram.press(shown, "Snooze 10 min")
        await telegram.until(lambda books: any("Again at" in text for text in books.texts(7)))
        shown = await discord.until(
            lambda _: next((one for one in discord.answers(chat) if "(for " in one.content), None)
        )
        [snooze] = [
            each["custom_id"]
            for each in components(shown.components)
            if each.get("label") == "Snooze 1 h"
        ]
        discord.press(shown.id, snooze, ada)
        await discord.until(
            lambda _: any("Again at" in one.content for one in discord.answers(chat))
        )


@pytest.mark.slow
async def test_who_lost_access_gets_no_reminder_and_the_log_says_why(tmp_path):
    async with both(tmp_path) as (telegram, _, _):
        telegram.private(telegram.user(8, "Bob"))

        async def ask(person: int, text: str, answer: str) -> str:
            telegram.say(person, person, text)
            await telegram.until(lambda books: any(answer in one for one in books.texts(person)))
            return telegram.records.texts(person)[-1]

        [code] = re.findall(r"/pair (\S+)", await ask(8, "hello", "The code is valid"))
        await ask(7, f"/pair {code}", "Bob")
        await ask(8, "/remind in 5 seconds drink water", "Reminder 1")
        await ask(7, "/pair remove telegram:8", "may no longer use this bot")
        log = tmp_path / "home" / "logs" / "tapebot.log"
        await until(lambda: "telegram:8: no access" in log.read_text())
        assert not [text for text in telegram.records.texts(8) if "(for " in text]
