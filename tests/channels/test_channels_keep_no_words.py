"""What was said on a platform is in the bus's journal until it is done with, and in no other file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from telegram_rig import rigged

from bot.bus import SessionFull
from testkit.discord.records import DiscordUpload

WORDS = "xyzzy plugh"


def holding(folder: Path) -> list[str]:
    """Return the files that hold the words."""
    return [path.name for path in folder.rglob("*") if WORDS.encode() in content(path)]


def content(path: Path) -> bytes:
    """Return what a file holds; nothing of one that is given its name in this moment."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG, logger="channels")
    caplog.set_level(logging.DEBUG, logger="bot")


async def test_telegram_keeps_none(tmp_path, caplog):
    async with rigged(tmp_path) as rig:
        async with rig.running():
            rig.telegram.voice(rig.chat, 7, WORDS.encode())
            rig.telegram.say(rig.chat, 7, f"{WORDS} while the voice is fetched")
            rig.telegram.say(rig.chat, 13, f"{WORDS} of a stranger")
            await rig.arrived(2)
            await rig.shown(rig.chat, 2)
            rig.telegram.say(rig.chat, 7, f"/memory forget {WORDS}")
            await rig.arrived(3)
            await rig.shown(rig.chat, 3)
            await rig.until_handled()
            assert holding(tmp_path) == ["inbox.jsonl"]
        await rig.bus.purge()
        assert holding(tmp_path) == []
        assert any(path.is_dir() for path in tmp_path.rglob("spool"))
    assert WORDS not in caplog.text


async def test_discord_keeps_none(rig, server, ada, eve, general, tmp_path, caplog):
    async with rig.connected():
        place = server.direct(ada)
        rig.refusals[:] = [SessionFull("too many wait")]
        for number in range(2):
            server.say(place, ada, f"{WORDS} {number}", attachments=[DiscordUpload("a.txt", b"x")])
        server.say(server.direct(eve), eve, f"{WORDS} of a stranger")
        server.say(general, ada, f"<@{server.bot_id}> {WORDS}")
        await rig.hear(2)
    async with rig.connected():
        server.say(place, ada, f"{WORDS} after a restart")
        await rig.hear(3)
        assert holding(tmp_path) == ["inbox.jsonl"]
        await rig.bus.purge()
        assert holding(tmp_path) == []
    assert (tmp_path / "discord" / "marks.json").is_file()
    assert WORDS not in caplog.text
