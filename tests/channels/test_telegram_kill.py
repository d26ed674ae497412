"""A Telegram channel that is killed, by the signal that nothing can catch."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from preloaded import open_program

from testkit.telegram.media_files import TelegramMedia
from testkit.telegram.server import TelegramServer

HOST = Path(__file__).with_name("telegram_host.py")
ROOT = Path(__file__).parents[2]
SECONDS = 60


@pytest.fixture
async def telegram():
    async with TelegramServer() as server:
        server.private(server.user(7, "Ada"))
        yield server


@asynccontextmanager
async def bot(telegram, folder):
    """Run the bot within the block, then kill it."""
    command = [str(HOST), telegram.url, telegram.token, str(folder)]
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests", HOST.parent)))
    environment = {**os.environ, "PYTHONPATH": path}
    async with await open_program(
        command, environment=environment, stdout=None, stderr=None
    ) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.mark.slow
async def test_files_albums_and_texts_survive_kills_and_are_answered_once(telegram, tmp_path):
    spool = tmp_path / "telegram" / "spool"
    for part in range(3):
        telegram.faults.slow(method="download", gate=anyio.Event(), times=1)
        async with bot(telegram, tmp_path):
            if part == 0:
                telegram.voice(7, 7, b"spoken")
                telegram.album(
                    7,
                    7,
                    [TelegramMedia("photo", b"1"), TelegramMedia("photo", b"2", caption="two")],
                )
            telegram.say(7, 7, f"text {part}")
            await telegram.until_confirmed(SECONDS)
        assert telegram.records.texts(7) == []
        telegram.faults.clear()
    async with bot(telegram, tmp_path):
        telegram.say(7, 7, "the last")
        await telegram.until_messages(7, 6, SECONDS)
        await telegram.until_confirmed(SECONDS)
        # A file goes after its message is published, which may be after its answer is shown.
        with anyio.fail_after(SECONDS):
            while list(spool.iterdir()):
                await telegram.until_changed(0.1)
    assert telegram.records.texts(7) == [
        "echo: spoken",
        "echo: two",
        "echo: text 0",
        "echo: text 1",
        "echo: text 2",
        "echo: the last",
    ]
