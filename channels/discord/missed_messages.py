"""Read messages from channel history that were sent while the bot was offline.

Discord does not send them later. Direct messages in channels that a stranger opened meanwhile
cannot be read, since Discord lists no direct message channels to bots: there, the first live
message is the first one known.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import discord

from bot.bus import AccessRequest, Address
from bot.core.i18n import _, current_language, format_number, ngettext, use_language
from channels.base import ChannelContext
from channels.delivery.messenger import MessengerError
from channels.discord.current_client import CurrentClient
from channels.discord.errors import call_with_retries
from channels.discord.message_content import chat_location, sender_of
from channels.discord.read_positions import ChannelPosition, ReadPositions
from channels.intake import Intake

logger = logging.getLogger(__name__)

MAX_MISSED_MESSAGES = 1000
"""The most messages that are read from one channel: the newest ones."""

MAX_ANSWER_AGE = timedelta(days=2)
"""Older messages are not answered, since their senders no longer wait."""

MAX_CONCURRENT_CALLS = 4
"""The most calls at once; after a long absence every channel has messages to read."""

_PAGE = 100


MessageHandler = Callable[[discord.Message, bool], Awaitable[None]]
"""Handles a message; the flag tells whether it is too old to be answered."""


class ChannelUnavailable(Exception):
    """A channel was deleted, or the bot has no access to it."""


class MissedMessageReader:
    """Read each channel's history once per gateway session.

    All methods that read run in the channel's lane, so that live messages wait for them, and retry
    when the connection is lost.
    """

    def __init__(
        self,
        name: str,
        client: CurrentClient,
        context: ChannelContext,
        positions: ReadPositions,
        *,
        intake: Intake,
        handle: MessageHandler,
        tell: Callable[[Address, str], None],
    ) -> None:
        self._name = name
        self._client = client
        self._context = context
        self._positions = positions
        self._intake = intake
        self._handle = handle
        self._tell_chat = tell
        self._before: dict[int, ChannelPosition] = {}
        self._session = 0
        self._read: dict[int, int] = {}
        self._calls = anyio.CapacityLimiter(MAX_CONCURRENT_CALLS)

    def start_session(self) -> list[int]:
        """Reset for a new gateway session; return the direct message channels to read."""
        self._session += 1
        self._read.clear()
        self._before = self._positions.snapshot()
        return [channel for channel, position in self._before.items() if position.guild_id is None]

    def unlisted_channels(self, client: discord.Client) -> list[int]:
        """Return followed server channels that no server listed, such as archived threads."""
        away = {guild.id for guild in client.guilds if guild.unavailable}
        return [
            channel
            for channel, position in self._positions.snapshot().items()
            if position.guild_id is not None
            and position.guild_id not in away
            and client.get_channel(channel) is None
        ]

    async def catch_up(self, channel_id: int) -> None:
        """Handle messages after the channel's read position, oldest first, once per session."""
        session = self._session
        if self._read.get(channel_id) == session:
            return
        # Without a read position, only live messages count.
        if self._positions.get(channel_id) is not None:
            try:
                await call_with_retries(
                    "what was missed", partial(self._read_after, channel_id)
                )  # for the log
            except ChannelUnavailable as error:
                self._positions.unfollow(channel_id)
                logger.warning("channel %d is no longer followed: %s", channel_id, error)
            except MessengerError as error:
                logger.info("missed messages in %d cannot be read: %s", channel_id, error)
            except Exception:  # an unexpected error must not block live messages
                logger.exception("missed messages in %d cannot be read", channel_id)
        # A session that began meanwhile has missed other messages.
        self._read[channel_id] = session

    async def follow_channel(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """Follow an open channel or thread from now on, and read what was missed."""
        if self._positions.get(channel.id) is None and await self._open(channel):
            self._positions.follow(channel.id, self._start(channel), channel.guild.id)
            self._read.pop(channel.id, None)
        await self.catch_up(channel.id)

    async def _channel(self, channel_id: int) -> discord.abc.Messageable:
        client = self._client.client
        channel = client.get_channel(channel_id)
        if isinstance(channel, discord.abc.Messageable):
            return channel
        if self._positions.guild_of(channel_id) is None:
            return client.get_partial_messageable(channel_id)
        try:
            async with self._calls:
                found = await client.fetch_channel(channel_id)
        except (discord.Forbidden, discord.NotFound) as error:
            raise ChannelUnavailable(str(error)) from error
        if not isinstance(found, discord.abc.Messageable):
            raise ChannelUnavailable("I cannot write there")  # for the log
        return found

    async def _open(self, channel: discord.abc.GuildChannel | discord.Thread) -> bool:
        """Return whether everybody in a channel has access, tested with the bot as the sender."""
        location, bot = chat_location(self._name, channel), self._client.me
        if location is None or bot is None:
            return False
        asked = AccessRequest(
            location.address, sender_of(bot), location.private, location.access_ids
        )
        authorize = partial(self._context.access.authorize, asked)
        return (await self._intake.until_done(None, authorize)).role is not None

    def _start(self, channel: discord.abc.GuildChannel | discord.Thread) -> int:
        """Return the read position of a new channel, so that no old message is answered."""
        if isinstance(channel, discord.Thread):
            parent = self._before.get(channel.parent_id)
            if parent is not None and channel.id > parent.message_id:
                # It was created while the bot was offline: all its messages are new.
                return channel.id - 1
        return getattr(channel, "last_message_id", None) or channel.id

    async def _read_after(self, channel_id: int) -> None:
        """Handle missed messages; after an error, a retry continues where it stopped."""
        channel = await self._channel(channel_id)
        language = current_language()
        if (person := getattr(channel, "recipient", None)) is not None:
            language = await self._context.language(self._name, sender_of(person))
        with use_language(language):
            await self._read_channel(channel, channel_id)

    async def _read_channel(self, channel: discord.abc.Messageable, channel_id: int) -> None:
        after = self._positions.get(channel_id) or 0
        if _nothing_new(channel, after):
            return
        batch = await self._page(channel, after)
        if len(batch) == _PAGE:
            newest = await self._before_newest(channel, after)
            if newest != after:
                logger.warning(
                    "more than %d messages were missed in %d", MAX_MISSED_MESSAGES, channel_id
                )
                self._tell(
                    channel_id,
                    ngettext(
                        "While I was away, more than {n} message was sent here. I read only the "
                        "newest. Please send again what still matters.",
                        "While I was away, more than {n} messages were sent here. I read only the "
                        "newest of them. Please send again what still matters.",
                        MAX_MISSED_MESSAGES,
                    ),
                )
                after, batch = newest, await self._page(channel, newest)
        old = 0
        while batch:
            for message in batch:
                old += await self._run_logged(message)
            after = batch[-1].id
            batch = await self._page(channel, after) if len(batch) == _PAGE else []
        if old:
            logger.warning("messages in %d that were too old to be answered: %d", channel_id, old)
            self._tell(
                channel_id,
                _(
                    "While I was away, messages were sent here that are too old for me to answer: "
                    "{number}. Please send again what still matters.",
                    number=format_number(old),
                ),
            )

    def _tell(self, channel_id: int, text: str) -> None:
        """Tell of skipped messages in a direct message channel, never on a server."""
        if self._positions.guild_of(channel_id) is None:
            self._tell_chat(Address(self._name, str(channel_id)), text)

    async def _page(self, channel: discord.abc.Messageable, after: int) -> list[discord.Message]:
        async with self._calls:
            history = channel.history(limit=_PAGE, after=discord.Object(after), oldest_first=True)
            return [message async for message in history]

    async def _before_newest(self, channel: discord.abc.Messageable, after: int) -> int:
        """Return the id after which to read: the position, unless too many messages follow it."""
        count, before = 0, None
        while count < MAX_MISSED_MESSAGES:
            async with self._calls:
                history = channel.history(limit=_PAGE, before=before)
                newer = [each.id async for each in history if each.id > after]
            if len(newer) < _PAGE:
                return after
            count, before = count + len(newer), discord.Object(newer[-1])
        return before.id - 1 if before is not None else after

    async def _run_logged(self, message: discord.Message) -> bool:
        """Handle a message; return whether it is too old to be answered."""
        old = datetime.now(UTC) - message.created_at > MAX_ANSWER_AGE
        try:
            await self._handle(message, old)
        except Exception:  # one message's failure must not stop the others
            logger.exception("a message that was missed could not be handled")
            self._positions.advance(message.channel.id, message.id)
        return old


def _nothing_new(channel: object, position: int) -> bool:
    newest = getattr(channel, "last_message_id", None)
    in_server = isinstance(channel, discord.abc.GuildChannel | discord.Thread)
    return in_server and newest is not None and newest <= position
