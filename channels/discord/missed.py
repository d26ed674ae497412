"""What was said while the bot was away.

Discord sends it to nobody: it is read from each followed channel's history. That of direct
conversations which a stranger opened meanwhile is not, since Discord lists no direct conversations
to bots; the first message that arrives there live is the first that is known.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import discord

from bot.bus import Knock, Sender
from channels.delivery.screen import ScreenError
from channels.discord.gate import Gate
from channels.discord.marks import Mark, Marks
from channels.discord.patience import patiently
from channels.discord.places import place_of

logger = logging.getLogger(__name__)

MOST = 1000
"""The most messages that are read of one channel."""

_PAGE = 100

Deal = Callable[[discord.Message], Awaitable[None]]


class Missed:
    """Reads each channel's history once for each session with Discord's gateway.

    Everything here runs in the channel's lane, so that live messages wait behind it.

    Args:
        client: The client of this connection.
        name: The name of our channel.
        gate: Says whether a channel of a server is open to all in it.
        marks: How far each channel was dealt with.
        deal: Deals with a message.
    """

    def __init__(
        self, client: discord.Client, name: str, gate: Gate, marks: Marks, deal: Deal
    ) -> None:
        self._client = client
        self._name = name
        self._gate = gate
        self._marks = marks
        self._deal = deal
        self._before: dict[int, Mark] = {}
        self._session = 0
        self._read: dict[int, int] = {}

    def begin(self) -> list[int]:
        """Begin anew after a new session was made; return the direct conversations to be read."""
        self._session += 1
        self._before = self._marks.snapshot()
        return [channel for channel, mark in self._before.items() if mark.guild_id is None]

    async def read(self, channel_id: int) -> None:
        """Deal with what came after the channel's mark, oldest first, unless that was done."""
        mark, session = self._marks.get(channel_id), self._session
        if self._read.get(channel_id) == session:
            return
        channel = self._channel(channel_id)
        # Where there is no mark, what comes live is the first that is known.
        if mark is not None and not _nothing_new(channel, mark):
            try:
                await patiently("what was missed", partial(self._read_after, channel, channel_id))
            except ScreenError as error:
                logger.info("what was missed in %d cannot be read: %s", channel_id, error)
            except Exception:  # whatever it is, it must not hold up what comes live
                logger.exception("what was missed in %d cannot be read", channel_id)
        # A session that began meanwhile has its own gap.
        self._read[channel_id] = session

    async def sight(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """Follow a channel or thread from now on if it is open to the bot, and read what was missed."""
        if self._marks.get(channel.id) is None and await self._open(channel):
            self._marks.meet(channel.id, self._start(channel), channel.guild.id)
            self._read.pop(channel.id, None)
        await self.read(channel.id)

    def _channel(self, channel_id: int) -> discord.abc.Messageable:
        channel = self._client.get_channel(channel_id)
        if isinstance(channel, discord.abc.Messageable):
            return channel
        # Without its server it would be taken for a direct conversation.
        guild_id = self._marks.guild_of(channel_id)
        return self._client.get_partial_messageable(channel_id, guild_id=guild_id)

    async def _open(self, channel: discord.abc.GuildChannel | discord.Thread) -> bool:
        """Whether a channel is allowed whoever speaks: nobody in particular is asked about."""
        place, bot = place_of(self._name, channel), self._client.user
        if place is None or bot is None:
            return False
        sender = Sender(str(bot.id), bot.display_name)
        verdict = await self._gate.admit(Knock(place.address, sender, place.private, place.ids))
        return verdict.role is not None

    def _start(self, channel: discord.abc.GuildChannel | discord.Thread) -> int:
        """Return the mark of a channel that is met for the first time: nothing old is answered."""
        if isinstance(channel, discord.Thread):
            parent = self._before.get(channel.parent_id)
            if parent is not None and channel.id > parent.message_id:
                # It was opened while the bot was away: all of it is new, its first message too.
                return channel.id - 1
        return getattr(channel, "last_message_id", None) or channel.id

    async def _read_after(self, channel: discord.abc.Messageable, channel_id: int) -> None:
        """Deal with a part of the history; what was dealt with stays so if it breaks off."""
        after, count = self._marks.get(channel_id) or 0, 0
        while count < MOST:
            page = [
                message
                async for message in channel.history(
                    limit=_PAGE, after=discord.Object(after), oldest_first=True
                )
            ]
            for message in page:
                await self._contained(message)
            count += len(page)
            if len(page) < _PAGE:
                return
            after = page[-1].id
        logger.warning("more than %d messages were missed in %d", MOST, channel_id)

    async def _contained(self, message: discord.Message) -> None:
        try:
            await self._deal(message)
        except Exception:  # whatever it is, the others go on
            logger.exception("a message that was missed could not be handled")
            self._marks.move(message.channel.id, message.id)


def _nothing_new(channel: object, mark: int) -> bool:
    newest = getattr(channel, "last_message_id", None)
    in_server = isinstance(channel, discord.abc.GuildChannel | discord.Thread)
    return in_server and newest is not None and newest <= mark
