"""One life of the connection: from the login until it is lost."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from functools import partial

import anyio
import discord
from anyio.abc import TaskGroup

from channels.base import ChannelContext
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
"""Where fewer are left of the day's, no more is begun until there are new ones."""

_CLOSE_SECONDS = 3.0
_CALL_SECONDS = 10.0
_MAX_DISCONNECTS = 6
_DISCONNECT_WINDOW_SECONDS = 60.0
_MOST_SERVERS = 5


class MessageContentIntentMissing(Exception):
    """The application may not read what people write."""


@dataclass(slots=True)
class AnnouncementState:
    """What whoever runs the program was told already; it outlives a life.

    Attributes:
        bot: Who the bot is.
        servers: To how many servers it was added.
        token_shared: That another program uses the token.
        disconnected: That there is no connection.
    """

    bot: bool = False
    servers: int = 0
    token_shared: bool = False
    disconnected: bool = False


class GatewayConnection:
    """What happens on one connection, handed to lanes that outlive it.

    Args:
        platform: What the program gives.
        lanes: Keep the order within each chat.
        intake: Takes messages.
        missed: Reads what was said before.
        interactions: Takes commands and buttons.
        uplink: Told when there is a connection.
        announced: What was announced in earlier lives.
        shard: Whose events it gets.
        turn: Says when it may begin a session.

    Attributes:
        session_started_at: When its session began, by the event loop's clock; None while there was none.
    """

    def __init__(
        self,
        platform: ChannelContext,
        *,
        lanes: KeyedExecutor,
        intake: DiscordIntake,
        missed: MissedMessageReader,
        interactions: InteractionHandler,
        uplink: CurrentClient,
        announced: AnnouncementState,
        shard: Shard,
        turn: IdentifySlot,
    ) -> None:
        self._platform = platform
        self._lanes = lanes
        self._intake = intake
        self._missed = missed
        self._interactions = interactions
        self._uplink = uplink
        self._announced = announced
        self._shard = shard
        self._turn = turn
        self.session_started_at: float | None = None
        self._client = DiscordClient(self, shard, turn.wait)
        self._breaks: deque[float] = deque(maxlen=_MAX_DISCONNECTS)

    async def run(self, token: str) -> Exception | None:
        """Live until the connection is lost; return what ended it, None for a clean end."""
        async with anyio.create_task_group() as tasks:
            try:
                ended = await self._connected(token, tasks)
            finally:
                self._uplink.clear_client()
                self._client.events = None
                tasks.cancel_scope.cancel()
                await self._close()
        return ended

    def session_started(self) -> None:
        """Read what was missed in direct conversations, since these are not announced."""
        self.session_started_at = anyio.current_time()
        for channel_id in self._missed.start_session():
            self._lanes.submit(str(channel_id), partial(self._missed.catch_up, channel_id))

    def disconnected(self) -> None:
        """End this life where the gateway breaks one connection after the other.

        discord.py connects anew without a pause; whoever supervises makes longer and longer ones.
        """
        now = anyio.current_time()
        self._breaks.append(now)
        if (
            len(self._breaks) == _MAX_DISCONNECTS
            and now - self._breaks[0] < _DISCONNECT_WINDOW_SECONDS
        ):
            logger.warning(
                "Discord's gateway broke %d connections within a minute", _MAX_DISCONNECTS
            )
            self._lanes.submit("close", self._client.close)

    def ready(self) -> None:
        """Read what was missed where no server told of it, and say who the bot is, once."""
        client = self._client
        for channel_id in self._missed.unlisted_channels(client):
            self._lanes.submit(str(channel_id), partial(self._missed.catch_up, channel_id))
        if self._announced.disconnected:
            self._announced.disconnected = False
            label = self._shard.label
            self._platform.announce(f"Discord{label}: the connection is there again")
        if self._announced.bot or client.user is None:
            return
        self._announced.bot = True
        me = clean_name(client.user.name)
        self._platform.announce(f"Discord{self._shard.label}: @{me} is here")
        self._platform.on_connected()
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
            self._platform.announce(f"Discord: it is on no server yet; invite it with {link}")

    def guild_available(self, guild: discord.Guild, *, new: bool) -> None:
        """Look at what a server has."""
        if new:
            self._added(guild)
        for channel in (*guild.channels, *guild.threads):
            self.channel_available(channel)

    def channel_available(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """Follow a channel that is open to the bot."""
        if isinstance(channel, discord.abc.Messageable):
            self._lanes.submit(str(channel.id), partial(self._missed.follow_channel, channel))

    def message_received(self, message: discord.Message) -> None:
        """Take a message, after what was missed before it."""
        if message.author.id == self._bot_id and self._uplink.sent_messages.is_foreign(message):
            self._lanes.submit(f"own {message.id}", partial(self._foreign, message))
        self._lanes.submit(str(message.channel.id), partial(self._said, message))

    def message_edited(self, event: discord.RawMessageUpdateEvent) -> None:
        """Take an edit."""
        before = event.cached_message.content if event.cached_message else None
        self._lanes.submit(str(event.channel_id), partial(self._changed, event, before))

    def reaction_added(self, event: discord.RawReactionActionEvent) -> None:
        """Take a reaction."""
        client, channel_id = self._client, event.channel_id
        who = event.member or client.get_user(event.user_id)
        if event.user_id == self._bot_id or (who and who.bot):
            return
        unlisted = client.get_partial_messageable(channel_id, guild_id=event.guild_id)
        channel = client.get_channel(channel_id) or unlisted
        self._lanes.submit(
            str(channel_id), partial(self._intake.handle_reaction, event, who, channel)
        )

    def interaction_received(self, interaction: discord.Interaction) -> None:
        """Take a command or a button."""
        self._interactions.handle(interaction)

    @property
    def _bot_id(self) -> int:
        return self._uplink.bot_id

    def _added(self, guild: discord.Guild) -> None:
        """Say how to allow a server; anybody may add a public bot, so not for each of very many."""
        name = clean_name(guild.name)
        self._announced.servers += 1
        if self._announced.servers > _MOST_SERVERS:
            logger.warning("the bot was added to one more server, %s (%d)", name, guild.id)
            return
        self._platform.announce(
            f"Discord: added to the server {name}; whoever is allowed may use it there, "
            f"and everybody there after /pair here or with discord:{guild.id} in TAPEBOT_ALLOW"
        )

    async def _connected(self, token: str, tasks: TaskGroup) -> Exception | None:
        try:
            await self._connect(token, tasks)
        except Exception as ended:  # noqa: BLE001 - whoever supervises says what it means
            return ended
        return None

    async def _connect(self, token: str, tasks: TaskGroup) -> None:
        client = self._client
        await client.login(token)
        flags = client.application.flags if client.application else None
        if flags is not None and not _content_allowed(flags):
            raise MessageContentIntentMissing
        self._uplink.set_client(client)
        if self._shard.first:
            tasks.start_soon(self._register)
        await self._turn.reserve(self._uplink.bot_id, await self._afford())
        # A lost connection ends this life: discord.py's own waits grow to a quarter of an hour, and
        # it breaks down if the first connection of all fails. It still resumes what can be resumed.
        await client.connect(reconnect=False)

    async def _said(self, message: discord.Message) -> None:
        await self._missed.catch_up(message.channel.id)
        await self._intake.handle_message(message, self._bot_id)

    async def _changed(self, event: discord.RawMessageUpdateEvent, before: str | None) -> None:
        # What is edited may be among what was missed.
        await self._missed.catch_up(event.channel_id)
        await self._intake.handle_edit(event.message, before, self._bot_id)

    async def _foreign(self, message: discord.Message) -> None:
        """Say that somebody else writes with the bot's token, once."""
        if message.nonce is None:
            # Then the id tells, once the call that may have made it has returned.
            await anyio.sleep(_CALL_SECONDS)
        if self._announced.token_shared or not self._uplink.sent_messages.is_foreign(message):
            return
        self._announced.token_shared = True
        self._platform.announce(
            "Discord: another program uses this bot's token, and both answer. End it; if you do "
            "not know it, reset the token: https://discord.com/developers/applications"
        )

    async def _afford(self) -> int:
        """Wait while hardly any sessions are left: Discord takes the token away beyond the last.

        Returns:
            How many sessions Discord lets begin at once.
        """
        while True:
            wanted, _, limit = await self._client.http.get_bot_gateway()
            if wanted > self._shard.count:
                logger.warning("Discord recommends TAPEBOT_DISCORD_SHARDS=%d for this bot", wanted)
            left, wait = limit["remaining"], max(limit["reset_after"] / 1000, MIN_BACKOFF_SECONDS)
            if left >= MIN_REMAINING_SESSIONS:
                return limit["max_concurrency"]
            self._platform.announce(
                f"Discord: only {left} of {limit['total']} connections a day are left; it "
                f"connects again in {_duration(wait)}. Does another program use the bot's token?"
            )
            await anyio.sleep(wait)

    async def _register(self) -> None:
        commands = partial(register_commands, self._client, self._platform.commands)
        try:
            await call_with_retries("the list of slash commands", commands)
        except MessengerError as error:
            logger.warning("the slash commands are not registered: %s", error)

    async def _close(self) -> None:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._client.close()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            # Where the gateway did not say goodbye, the sockets are closed all the same.
            await self._client.http.close()


def _content_allowed(flags: discord.ApplicationFlags) -> bool:
    return flags.gateway_message_content or flags.gateway_message_content_limited


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.0f} min"
