"""One gateway connection, from login until it is lost, and its event handlers."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import discord
from anyio.abc import TaskGroup

from bot.core.i18n import _, format_duration
from channels.base import ChannelContext, ConnectionStatus
from channels.delivery.messenger import MessengerError
from channels.discord.client import DiscordClient
from channels.discord.current_client import CurrentClient
from channels.discord.errors import MIN_BACKOFF_SECONDS, call_with_retries
from channels.discord.intake import DiscordIntake
from channels.discord.interactions import InteractionHandler, register_commands
from channels.discord.message_content import clean_name
from channels.discord.missed_messages import MissedMessageReader
from channels.discord.shards import IdentifySlot, Shard
from channels.keyed_executor import KeyedExecutor

logger = logging.getLogger(__name__)

MIN_REMAINING_SESSIONS = 50
"""No session is begun while fewer than this remain of Discord's daily limit."""

_CLOSE_SECONDS = 3.0
_CALL_SECONDS = 10.0
_MAX_DISCONNECTS = 6
_DISCONNECT_WINDOW_SECONDS = 60.0
_MOST_SERVERS = 5


class MessageContentIntentMissing(Exception):
    """The application lacks the privileged Message Content intent."""


@dataclass(slots=True)
class AnnouncementState:
    """What was already announced to the operator; outlives a connection.

    Attributes:
        bot: Whether the bot's name was announced.
        servers: The number of servers to which the bot was added.
        token_shared: Whether it was announced that another program uses the token.
    """

    bot: bool = False
    servers: int = 0
    token_shared: bool = False


class GatewayConnection:
    """Run one gateway connection and submit its events to lanes that outlive it.

    Attributes:
        session_started_at: When the session began, by the event loop's clock; None if none has.
    """

    def __init__(
        self,
        context: ChannelContext,
        *,
        executor: KeyedExecutor,
        intake: DiscordIntake,
        missed: MissedMessageReader,
        interactions: InteractionHandler,
        current_client: CurrentClient,
        announced: AnnouncementState,
        status: ConnectionStatus,
        shard: Shard,
        identify_slot: IdentifySlot,
    ) -> None:
        self._context = context
        self._executor = executor
        self._intake = intake
        self._missed = missed
        self._interactions = interactions
        self._current_client = current_client
        self._announced = announced
        self._status = status
        self._shard = shard
        self._identify_slot = identify_slot
        self.session_started_at: float | None = None
        self._client = DiscordClient(self, shard, identify_slot.wait)
        self._disconnected_at: deque[float] = deque(maxlen=_MAX_DISCONNECTS)

    async def run(self, token: str) -> Exception | None:
        """Run until the connection is lost; return its error, None after a clean end."""
        async with anyio.create_task_group() as tasks:
            try:
                ended = await self._run_client(token, tasks)
            finally:
                self._current_client.clear_client()
                self._client.events = None
                tasks.cancel_scope.cancel()
                await self._close()
        return ended

    def session_started(self) -> None:
        """Catch up on direct messages, whose channels the gateway does not list."""
        self.session_started_at = anyio.current_time()
        for channel_id in self._missed.start_session():
            self._executor.submit(str(channel_id), partial(self._missed.catch_up, channel_id))

    def disconnected(self) -> None:
        """Close the connection if the gateway breaks it six times within a minute.

        discord.py reconnects without a delay; ``DiscordChannel`` does so with backoff.
        """
        now = anyio.current_time()
        self._disconnected_at.append(now)
        if (
            len(self._disconnected_at) == _MAX_DISCONNECTS
            and now - self._disconnected_at[0] < _DISCONNECT_WINDOW_SECONDS
        ):
            logger.warning(
                "Discord's gateway broke %d connections within a minute", _MAX_DISCONNECTS
            )
            self._executor.submit("close", self._client.close)

    def ready(self) -> None:
        """Catch up on channels that no server listed, and announce the bot once."""
        client = self._client
        for channel_id in self._missed.unlisted_channels(client):
            self._executor.submit(str(channel_id), partial(self._missed.catch_up, channel_id))
        self._status.restored()
        if self._announced.bot or client.user is None:
            return
        self._announced.bot = True
        me = clean_name(client.user.name)
        self._context.announce(
            _("Discord{label}: connected as @{me}", label=self._shard.label, me=me)
        )
        self._context.on_connected()
        if self._shard.is_only and not client.guilds and client.application_id is not None:
            permissions = discord.Permissions(
                view_channel=True,
                send_messages=True,
                send_messages_in_threads=True,
                read_message_history=True,
            )
            link = discord.utils.oauth_url(
                client.application_id,
                permissions=permissions,
                scopes=("bot", "applications.commands"),
            )
            self._context.announce(
                _("Discord: the bot is on no server yet; invite it with {link}", link=link)
            )

    def guild_available(self, guild: discord.Guild, *, new: bool) -> None:
        """Follow the channels and threads of a server."""
        if new:
            self._announce_server(guild)
        for channel in (*guild.channels, *guild.threads):
            self.channel_available(channel)

    def channel_available(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """Follow a channel if everybody in it may use the bot, and catch up on it."""
        if isinstance(channel, discord.abc.Messageable):
            self._executor.submit(str(channel.id), partial(self._missed.follow_channel, channel))

    def message_received(self, message: discord.Message) -> None:
        """Handle a message after those that were missed before it."""
        if message.author.id == self._bot_id and self._current_client.sent_messages.is_foreign(
            message
        ):
            self._executor.submit(f"own {message.id}", partial(self._check_foreign, message))
        self._executor.submit(str(message.channel.id), partial(self._handle_message, message))

    def message_unreadable(self, data: Any) -> None:
        """Tell the sender of a message that cannot be read."""
        unread = partial(self._intake.handle_unreadable, data, self._bot_id)
        self._executor.submit("unreadable", unread)  # for the log

    def message_edited(self, event: discord.RawMessageUpdateEvent) -> None:
        """Handle an edit after the missed messages of its channel."""
        before = event.cached_message.content if event.cached_message else None
        self._executor.submit(str(event.channel_id), partial(self._handle_edit, event, before))

    def reaction_added(self, event: discord.RawReactionActionEvent) -> None:
        """Handle a reaction of a person."""
        client, channel_id = self._client, event.channel_id
        who = event.member or client.get_user(event.user_id)
        if event.user_id == self._bot_id or (who and who.bot):
            return
        unlisted = client.get_partial_messageable(channel_id, guild_id=event.guild_id)
        channel = client.get_channel(channel_id) or unlisted
        self._executor.submit(
            str(channel_id), partial(self._intake.handle_reaction, event, who, channel)
        )

    def interaction_received(self, interaction: discord.Interaction) -> None:
        """Handle a slash command or a button."""
        self._interactions.handle(interaction)

    @property
    def _bot_id(self) -> int:
        return self._current_client.bot_id

    def _announce_server(self, guild: discord.Guild) -> None:
        """Announce a new server a few times only, since anybody can add a public bot."""
        name = clean_name(guild.name)
        self._announced.servers += 1
        if self._announced.servers > _MOST_SERVERS:
            logger.warning("the bot was added to one more server, %s (%d)", name, guild.id)
            return
        self._context.announce(
            _(
                "Discord: added to the server {name}. Allowed people may use it there. To allow everyone there, send /pair here, or add discord:{id} to TAPEBOT_ALLOW",
                name=name,
                id=guild.id,
            )
        )

    async def _run_client(self, token: str, tasks: TaskGroup) -> Exception | None:
        try:
            await self._connect(token, tasks)
        except Exception as ended:  # noqa: BLE001 - ``DiscordChannel`` decides what it means
            return ended
        return None

    async def _connect(self, token: str, tasks: TaskGroup) -> None:
        client = self._client
        with anyio.fail_after(self._status.login_seconds):
            await client.login(token)
        flags = client.application.flags if client.application else None
        if flags is not None and not _content_allowed(flags):
            raise MessageContentIntentMissing
        self._current_client.set_client(client)
        if self._shard.first:
            tasks.start_soon(self._register)
        await self._identify_slot.reserve(
            self._current_client.bot_id, await self._wait_for_sessions()
        )
        # A lost connection ends this object: discord.py's own delays grow to a quarter of an hour,
        # and it raises if the very first connection fails. It still resumes sessions.
        await client.connect(reconnect=False)

    async def _handle_message(self, message: discord.Message) -> None:
        await self._missed.catch_up(message.channel.id)
        await self._intake.handle_message(message, self._bot_id)

    async def _handle_edit(self, event: discord.RawMessageUpdateEvent, before: str | None) -> None:
        # The edited message may be one of those that were missed.
        await self._missed.catch_up(event.channel_id)
        await self._intake.handle_edit(event.message, before, self._bot_id)

    async def _check_foreign(self, message: discord.Message) -> None:
        """Announce once that another program sends messages with the bot's token."""
        if message.nonce is None:
            # Without a nonce, only the id of a send that has returned can identify the message.
            await anyio.sleep(_CALL_SECONDS)
        if self._announced.token_shared or not self._current_client.sent_messages.is_foreign(
            message
        ):
            return
        self._announced.token_shared = True
        self._context.announce(
            _(
                "Discord: another program uses this bot's token, and both answer. Stop it; if you do "
                "not know it, reset the token: https://discord.com/developers/applications"
            )
        )

    async def _wait_for_sessions(self) -> int:
        """Wait while few sessions remain; Discord resets the token of a bot that exceeds the limit.

        Returns:
            ``max_concurrency``: how many sessions may begin at the same time.
        """
        while True:
            wanted, _type, limit = await self._client.http.get_bot_gateway()
            if wanted > self._shard.count:
                logger.warning("Discord recommends TAPEBOT_DISCORD_SHARDS=%d for this bot", wanted)
            left, wait = limit["remaining"], max(limit["reset_after"] / 1000, MIN_BACKOFF_SECONDS)
            if left >= MIN_REMAINING_SESSIONS:
                return limit["max_concurrency"]
            self._context.announce(
                _(
                    "Discord: only {left} of {limit} connections are left today; it connects again after {duration}. Does another program use the bot's token?",
                    left=left,
                    limit=limit["total"],
                    duration=format_duration(timedelta(seconds=wait)),
                )
            )
            await anyio.sleep(wait)

    async def _register(self) -> None:
        commands = partial(
            register_commands,
            self._client,
            self._context.commands,
            self._context.default_language,
        )
        try:
            await call_with_retries("the list of slash commands", commands)  # for the log
        except MessengerError as error:
            logger.warning("the slash commands are not registered: %s", error)

    async def _close(self) -> None:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._client.close()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            # Close the sockets even if the gateway did not answer the closing handshake.
            await self._client.http.close()


def _content_allowed(flags: discord.ApplicationFlags) -> bool:
    return flags.gateway_message_content or flags.gateway_message_content_limited
