"""From nothing to the first reply on each platform, with the program as a person runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from platform_program import PROGRAM, Program, running
from preloaded import environment
from telegram_peer_server import telegram_peer

from testkit.discord.server import DiscordServer
from testkit.ports import kept_port
from testkit.telegram.server import TelegramServer

Say = Callable[[str, str], Awaitable[None]]


def every_file_of(folder) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def converse(program: Program, claim: str, say: Say) -> None:
    await say("hello", "has no owner yet")
    await say(f"{claim} {program.claim_code}", "You own this bot now")
    await say("My name is Ada", "Kept.")
    await say("What is my name?", ": My name is Ada")


def check_ended(folder: Path, program: Program, token: str) -> None:
    """All went well, and the token is in no log, no tape and no output."""
    assert program.process.returncode == 0
    assert token.encode() not in every_file_of(folder / "home")
    assert token not in program.said


@pytest.mark.slow
async def test_a_token_and_a_command_lead_to_the_first_reply_on_telegram(tmp_path):
    async with TelegramServer() as telegram:
        telegram.private(telegram.user(7, "Ada"))

        async def say(text: str, reply: str) -> None:
            telegram.say(7, 7, text)
            await telegram.until(lambda books: reply in str(books.texts(7)[-1:]))

        (tmp_path / ".env").write_text(f"TAPEBOT_TELEGRAM_TOKEN={telegram.token}\n")
        async with running(tmp_path, TAPEBOT_TELEGRAM_API_BASE=telegram.url) as program:
            await program.until_said("Telegram: connected as @tape_bot")
            await program.until_said("/claim ")
            await converse(program, "/start", say)
    check_ended(tmp_path, program, telegram.token)


@pytest.mark.slow
async def test_a_token_and_a_command_lead_to_the_first_reply_on_discord(tmp_path):
    async with DiscordServer() as discord:
        ada = discord.user("Ada")
        chat = discord.direct(ada)
        settings = {
            "TAPEBOT_DISCORD_TOKEN": discord.token,
            "TAPEBOT_DISCORD_API_BASE": discord.api_url,
            "TAPEBOT_DISCORD_GATEWAY_URL": discord.gateway_url,
        }

        async def say(text: str, reply: str) -> None:
            discord.say(chat, ada, text)
            await discord.until(lambda _: reply in str(discord.answers(chat)[-1:]))

        async with running(tmp_path, **settings) as program:
            await program.until_said("Discord: connected as @tapebot")
            await program.until_said("/claim ")
            await converse(program, "/claim", say)
    check_ended(tmp_path, program, discord.token)


async def test_a_wrong_token_is_one_clear_line_and_ends_the_program(tmp_path):
    async with TelegramServer() as telegram:
        settings = {
            "TAPEBOT_TELEGRAM_TOKEN": "123456789:AAwrongwrongwrongwrongwrongwrongwro",
            "TAPEBOT_TELEGRAM_API_BASE": telegram.url,
        }
        async with running(tmp_path, **settings) as program:
            with anyio.fail_after(60):
                assert await program.process.wait() == 1
    # No code to own a bot that there is not.
    lines = program.said.splitlines()
    assert len(lines) == 1, program.said
    assert "TAPEBOT_TELEGRAM_TOKEN" in lines[0]
    assert "wrongwrong" not in program.said


@pytest.mark.slow
async def test_the_bot_answers_on_a_telegram_that_is_not_ours(tmp_path):
    async with telegram_peer() as telegram:
        settings = {
            "TAPEBOT_TELEGRAM_TOKEN": telegram.token,
            "TAPEBOT_TELEGRAM_API_BASE": telegram.url,
            "TAPEBOT_OWNERS": "telegram:7",
        }
        async with running(tmp_path, **settings) as program:
            await program.until_said("connected as")
            await telegram.say("remember: My name is Ada")
            await telegram.until_text("Added to memory")
            await telegram.say("What is my name?")
            await telegram.until_text(": My name is Ada")
            await telegram.say("/memory clear")
            await telegram.until_text("say yes or send")
            [*_, asked] = await telegram.messages()
            keyboard = asked["message"]["reply_markup"]["inline_keyboard"]
            [keep] = [one for row in keyboard for one in row if one["text"] == "Keep it"]
            await telegram.press(keep["callback_data"], asked)
            await telegram.until_text("What I remember")
            # The answer to a button takes the place of its message.
            assert len(await telegram.messages()) == 3


@pytest.mark.slow
async def test_doctor_tells_what_channel_of_the_running_program_has_no_connection(tmp_path):
    with kept_port() as port:
        settings = {
            "TAPEBOT_TELEGRAM_TOKEN": "123456789:" + "A" * 35,
            "TAPEBOT_TELEGRAM_API_BASE": f"http://127.0.0.1:{port}",
        }
        async with running(tmp_path, **settings) as program:
            await program.until_said("Telegram: no connection to 127.0.0.1; retrying")
            doctor = await anyio.run_process(
                [*PROGRAM, "doctor"], env=environment(tmp_path, **settings), check=False
            )
    assert b"Telegram: no connection to 127.0.0.1; retrying" in doctor.stdout
