"""Files that go out, as messages of their own."""

from __future__ import annotations

import logging
from functools import partial

import anyio.to_thread
import discord

from bot.bus import OutFile
from channels.delivery.files import check
from channels.delivery.screen import Outgoing
from channels.discord.deferred import Deferred
from channels.discord.faults import mapped
from channels.discord.uplink import NOBODY, Uplink

logger = logging.getLogger(__name__)

MOST_UPLOAD = 10 * 1024 * 1024
"""Bytes that Discord takes from bots everywhere: https://discord.com/developers/docs/reference#uploading-files."""

_UPLOAD_SECONDS = 300.0
_LOOKED_THROUGH = 50


class Uploads:
    """Sends files.

    Args:
        uplink: The connection of the moment.
        deferred: Slash commands, whose answers may go where the bot may not write.
    """

    def __init__(self, uplink: Uplink, deferred: Deferred) -> None:
        self._uplink = uplink
        self._deferred = deferred

    async def send(self, message: Outgoing[OutFile], *, young: bool) -> str:
        """Show a file; return its message's id.

        Args:
            message: The file.
            young: The process may have shown it before a restart: the last messages are looked
                through for it.

        Raises:
            FileRefused: It is gone or too large.
            ScreenError: It could not be sent.
        """
        await check(message.piece, MOST_UPLOAD)
        with mapped(), anyio.fail_after(_UPLOAD_SECONDS):
            shown = await self._already(message) if young else None
            return shown or await self._post(message)

    async def _already(self, message: Outgoing[OutFile]) -> str | None:
        bot = self._uplink.client.user
        try:
            async for found in self._uplink.at(message.address).history(limit=_LOOKED_THROUGH):
                mine = bot is not None and found.author.id == bot.id
                if mine and any(one.filename == message.piece.name for one in found.attachments):
                    return str(found.id)
        except discord.Forbidden as error:
            logger.debug("what was shown before cannot be looked for: %s", error)
        return None

    async def _post(self, message: Outgoing[OutFile]) -> str:
        try:
            sent = await self._uplink.at(message.address).send(
                file=await _opened(message.piece),
                nonce=self._uplink.written.nonce(message.key),
                allowed_mentions=NOBODY,
            )
        except discord.Forbidden:
            # discord.py closes what it tried to send.
            again = await _opened(message.piece)
            try:
                shown = await self._deferred.follow_up_file(message.key, again)
            finally:
                again.close()
            if shown is None:
                raise
            return shown
        self._uplink.written.message(sent.id)
        return str(sent.id)


async def _opened(file: OutFile) -> discord.File:
    return await anyio.to_thread.run_sync(partial(discord.File, file.path, filename=file.name))
