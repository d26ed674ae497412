"""``MEMORY.md`` and ``HISTORY.md`` follow what the program remembers, whatever happens to it."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from platform_program import Program, running

from bot.exchange.files import folder_name
from bot.testing.telegram_server import TelegramServer

pytestmark = pytest.mark.slow

ADA = 7
SOON = 60.0


class World:
    """Ada, the offline responder, and a folder for the files."""

    def __init__(self, telegram: TelegramServer, folder: Path) -> None:
        self.telegram, self.folder = telegram, folder
        self.files = folder / "read me"

    @asynccontextmanager
    async def program(self) -> AsyncIterator[Program]:
        async with running(
            self.folder,
            TAPEBOT_MODEL="offline",
            TAPEBOT_TELEGRAM_TOKEN=self.telegram.token,
            TAPEBOT_TELEGRAM_API_BASE=self.telegram.url,
            TAPEBOT_OWNERS=f"telegram:{ADA}",
            TAPEBOT_MEMORY_FILES=str(self.files),
        ) as program:
            yield program

    async def say(self, text: str, chat: int = ADA) -> str:
        """Say something; return what is answered."""
        place = self.telegram.private(ADA) if chat == ADA else chat
        before = len(self.telegram.books.texts(ADA))
        self.telegram.say(place, ADA, text)
        await self.telegram.until(lambda books: len(books.texts(ADA)) > before, within=SOON)
        return self.telegram.books.texts(ADA)[-1]

    def file(self, name: str, session: str = f"telegram:{ADA}") -> Path:
        return self.files / folder_name(session) / name

    def read(self, name: str) -> str:
        path = self.file(name)
        return path.read_text("utf-8") if path.exists() else ""

    async def until(self, name: str, text: str, *, there: bool = True) -> None:
        with anyio.fail_after(SOON):
            while (text in self.read(name)) is not there or not self.file(name).exists():
                await anyio.sleep(0.05)  # files have no event


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as telegram:
        telegram.user(ADA, "Ada")
        yield World(telegram, tmp_path)


async def test_the_files_follow_what_is_learned_corrected_and_forgotten(world: World):
    async with world.program():
        await world.say("/memory add I like jasmine tea")
        await world.until("MEMORY.md", "- I like jasmine tea")
        await world.say("/memory edit 1 I like green tea")
        await world.until("MEMORY.md", "- I like green tea")
        assert "jasmine" not in world.read("MEMORY.md")
        await world.say("My boat is called Zirkon.")
        assert await world.say("/new") == "New session started."
        await world.until("HISTORY.md", "Zirkon")
        assert world.read("HISTORY.md").startswith("[20")
        for path in (world.file("MEMORY.md"), world.file("HISTORY.md")):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        world.file("MEMORY.md").write_text("I was here.")
        await world.say("/memory add I like rye bread")
        await world.until("MEMORY.md", "- I like rye bread")
        assert "I was here" not in world.read("MEMORY.md")
        await world.say("/memory forget Zirkon")
        [asked] = [one for one in world.telegram.books.shown if one.buttons][-1:]
        world.telegram.press(asked, asked.buttons[0][0]["callback_data"])
        await world.telegram.until(
            lambda books: any("Forgotten" in one for one in books.texts(ADA)), within=SOON
        )
        # It has been said that it is gone.
        assert "Zirkon" not in world.read("HISTORY.md") + world.read("MEMORY.md")
        await world.until("MEMORY.md", "- I like rye bread")


async def test_what_a_kill_left_out_is_written_at_the_next_start(world: World):
    async with world.program() as program:
        await world.say("/memory add I like jasmine tea")
        await world.until("MEMORY.md", "jasmine")
        await world.say("/memory add I like rye bread")
        program.process.kill()
        await program.process.wait()
    world.file("HISTORY.md").unlink()
    async with world.program():
        await world.until("MEMORY.md", "rye bread")
        await world.until("HISTORY.md", "")


async def test_a_folder_that_cannot_be_written_is_told_once_and_costs_no_answer(world: World):
    world.files.write_text("a file stands here")
    async with world.program():
        await world.say("/memory add I like jasmine tea")
        await world.say("/memory add I like rye bread")
        log = world.folder / "home" / "logs" / "tapebot.log"
        with anyio.fail_after(SOON):
            while "are not current" not in log.read_text("utf-8"):
                await anyio.sleep(0.05)  # files have no event
        world.files.unlink()
        await world.say("/memory add I like oats")
        await world.until("MEMORY.md", "oats")
    assert log.read_text("utf-8").count("are not current") == 1
    assert "jasmine" in world.read("MEMORY.md")


async def test_what_is_known_of_a_person_is_not_in_a_groups_files(world: World):
    group = world.telegram.group(-100500, "Club")
    async with world.program():
        await world.say("/memory add I like jasmine tea")
        await world.until("MEMORY.md", "jasmine")
        world.telegram.say(group, ADA, "@tape_bot /memory add We meet on Fridays")
        session = "telegram:-100500"
        with anyio.fail_after(SOON):
            while not world.file("MEMORY.md", session).exists() or "Fridays" not in world.file(
                "MEMORY.md", session
            ).read_text("utf-8"):
                await anyio.sleep(0.05)  # files have no event
        assert "jasmine" not in world.file("MEMORY.md", session).read_text("utf-8")
        assert "Fridays" not in world.read("MEMORY.md")
