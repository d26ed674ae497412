"""A private chat and a group in Telegram, for the tests of what reaches the bus."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from telegram_rig import Rig, rigged

from channels.base import MenuCommand

GROUP = -1001


@asynccontextmanager
async def garden(folder: Path) -> AsyncIterator[Rig]:
    """A channel for Ada's private chat and for the group "Garden"."""
    async with rigged(folder) as rig:
        rig.chat = rig.telegram.private(7)
        rig.group = rig.telegram.group(GROUP, "Garden")
        rig.answering = False
        rig.commands = (MenuCommand("memory", "What I know"),)
        yield rig


async def settled(rig) -> list:
    """Return all that reached the bus once nothing is on its way."""
    await rig.telegram.until_confirmed()
    mark = rig.telegram.say(rig.chat, 7, "the last")
    await rig.until(lambda: any(one.id == str(mark) for one in rig.inbounds))
    return [one for one in rig.inbounds if one.id != str(mark)]
