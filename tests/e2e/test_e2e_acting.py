"""The program as a person runs it: of whom access is taken away no reminder comes."""

from __future__ import annotations

import re

import pytest
from platform_program import running
from waiting import until

from testkit.telegram.server import TelegramServer


@pytest.mark.slow
async def test_who_lost_access_gets_no_reminder_and_the_log_says_why(tmp_path):
    async with TelegramServer() as telegram:
        for number, name in ((7, "Ada"), (8, "Bob")):
            telegram.private(telegram.user(number, name))

        async def ask(person: int, text: str, answer: str) -> str:
            telegram.say(person, person, text)
            await telegram.until(lambda books: any(answer in one for one in books.texts(person)))
            return telegram.records.texts(person)[-1]

        settings = {
            "TAPEBOT_TELEGRAM_TOKEN": telegram.token,
            "TAPEBOT_TELEGRAM_API_BASE": telegram.url,
            "TAPEBOT_OWNERS": "telegram:7",
        }
        async with running(tmp_path, **settings):
            [code] = re.findall(r"/pair (\S+)", await ask(8, "hello", "The code is valid"))
            await ask(7, f"/pair {code}", "Bob")
            await ask(8, "/remind in 5 seconds drink water", "Reminder 1")
            await ask(7, "/pair remove telegram:8", "may no longer use this bot")
            log = tmp_path / "home" / "logs" / "tapebot.log"
            await until(lambda: "telegram:8: no access" in log.read_text())
            assert not [text for text in telegram.records.texts(8) if "(for " in text]
