"""A discord.py client that passes gateway events on and limits the size of what it receives.

discord.py runs each handler in its own task, in the order of the events. So a handler only submits
work to a lane without waiting, and the channel's tasks do it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import aiohttp
import anyio
import discord
from discord.gateway import ReconnectWebSocket
from discord.http import HTTPClient
from yarl import URL

from channels.discord.shards import Shard
from channels.response_limits import MAX_RESPONSE_BYTES, limit_response_size

logger = logging.getLogger(__name__)

# At lower levels discord.py logs messages of people who are not authorized yet, and URLs that hold
# interaction tokens.
logging.getLogger("discord").setLevel(logging.WARNING)

SILENCE_SECONDS = 60.0
"""Seconds without a gateway message after which the connection counts as dead."""

_LONGEST_LIMIT = 30.0
_CLOSE_SECONDS = 30.0
_OPEN_SECONDS = 15.0
_GUILD_SECONDS = 1.0
_VITAL = {"READY", "RESUMED"}


class SessionInvalidated(OSError):
    """The gateway session cannot be resumed."""


class ClientEvents(Protocol):
    """The receiver of gateway events; each call returns at once."""

    def session_started(self) -> None:
        """A new gateway session began, which does not replay earlier events."""
        ...

    def ready(self) -> None:
        """The list of servers is complete."""
        ...

    def disconnected(self) -> None:
        """The connection broke; discord.py reconnects unless the client is closed."""
        ...

    def guild_available(self, guild: discord.Guild, *, new: bool) -> None:
        """A server is available; ``new`` if the bot was just added to it."""
        ...

    def channel_available(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """A channel or thread became available."""
        ...

    def message_received(self, message: discord.Message) -> None:
        """A message was sent."""
        ...

    def message_unreadable(self, data: Any) -> None:
        """A message was sent that discord.py cannot read."""
        ...

    def message_edited(self, event: discord.RawMessageUpdateEvent) -> None:
        """A message was edited."""
        ...

    def reaction_added(self, event: discord.RawReactionActionEvent) -> None:
        """A reaction was added to a message."""
        ...

    def interaction_received(self, interaction: discord.Interaction) -> None:
        """A slash command, an autocompletion or a button press arrived."""
        ...


class DiscordClient(discord.Client):
    """The discord.py client of one gateway connection.

    Attributes:
        events: Receives the events; None once the connection has ended.
    """

    def __init__(
        self, events: ClientEvents, shard: Shard, wait_for_slot: Callable[[], Awaitable[None]]
    ) -> None:
        intents = discord.Intents.none()
        intents.guilds = True
        intents.messages = True
        intents.reactions = True
        intents.message_content = True
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        tracing = aiohttp.TraceConfig()
        tracing.on_request_start.append(_bound)
        super().__init__(
            http_trace=tracing,
            intents=intents,
            shard_id=None if shard.is_only else shard.number,
            shard_count=None if shard.is_only else shard.count,
            max_ratelimit_timeout=_LONGEST_LIMIT,
            heartbeat_timeout=SILENCE_SECONDS,
            guild_ready_timeout=_GUILD_SECONDS,
            chunk_guilds_at_startup=False,
        )
        self.http.ws_connect = partial(_gateway, self.http)  # type: ignore[method-assign]
        self.events: ClientEvents | None = events
        self._wait_for_slot = wait_for_slot
        parsers = self._connection.parsers
        for event in parsers.keys() - _VITAL:
            parsers[event] = partial(self._run_logged, event, parsers[event])

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Dispatch an event while there is a receiver; some tasks of discord.py outlive the client.

        Discord limits the number of sessions a day. If the session is lost, discord.py would begin
        another one at once. So this raises instead, and ``DiscordChannel`` reconnects with backoff.

        Raises:
            SessionInvalidated: The session is lost and cannot be resumed.
        """
        lost = sys.exc_info()[1] if event == "disconnect" else None
        if isinstance(lost, ReconnectWebSocket) and not lost.resume:
            raise SessionInvalidated("Discord no longer knows the session") from lost  # for the log
        if self.events is not None and not self.is_closed():
            super().dispatch(event, *args, **kwargs)

    async def before_identify_hook(
        self,
        shard_id: int | None,  # noqa: ARG002 - always this client's shard
        *,
        initial: bool = False,  # noqa: ARG002 - each connection begins one session
    ) -> None:
        """Wait until IDENTIFY may be sent."""
        await self._wait_for_slot()

    async def on_connect(self) -> None:
        """Pass the event on."""
        if self.events:
            self.events.session_started()

    async def on_disconnect(self) -> None:
        """Pass the event on."""
        if self.events:
            self.events.disconnected()

    async def on_ready(self) -> None:
        """Pass the event on."""
        if self.events:
            self.events.ready()

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """Pass the event on."""
        if self.events:
            self.events.guild_available(guild, new=False)

    async def on_guild_join(self, guild: discord.Guild) -> None:
        """Pass the event on."""
        if self.events:
            self.events.guild_available(guild, new=True)

    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        """Pass the event on."""
        if self.events:
            self.events.channel_available(channel)

    async def on_thread_create(self, thread: discord.Thread) -> None:
        """Pass the event on."""
        if self.events:
            self.events.channel_available(thread)

    async def on_thread_join(self, thread: discord.Thread) -> None:
        """Pass the event on."""
        if self.events:
            self.events.channel_available(thread)

    async def on_message(self, message: discord.Message) -> None:
        """Pass the event on."""
        if self.events:
            self.events.message_received(message)

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        """Pass the event on."""
        if self.events:
            self.events.message_edited(event)

    async def on_raw_reaction_add(self, event: discord.RawReactionActionEvent) -> None:
        """Pass the event on."""
        if self.events:
            self.events.reaction_added(event)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Pass the event on."""
        if self.events:
            self.events.interaction_received(interaction)

    def _run_logged(self, event: str, parse: Callable[[Any], None], data: Any) -> None:
        """Parse an event; if discord.py cannot, log that and keep the connection."""
        try:
            parse(data)
        except Exception:  # one bad event must not end the connection
            logger.exception("an event %s of Discord could not be read", event)
            if event == "MESSAGE_CREATE" and self.events:
                self.events.message_unreadable(data)

    async def on_error(self, event_method: str, /, *_args: object, **_kwargs: object) -> None:
        """Log the exception of a handler."""
        logger.error("%s failed", event_method, exc_info=sys.exc_info())


async def _bound(session: aiohttp.ClientSession, *_: object) -> None:
    limit_response_size(session)


async def _gateway(
    http: HTTPClient, url: str, *, compress: int = 0
) -> aiohttp.ClientWebSocketResponse:
    """Connect to the gateway as discord.py does, but with a limit on the size of messages.

    Compression is turned off, since discord.py decompresses without any limit.
    """
    session: aiohttp.ClientSession = http._HTTPClient__session  # type: ignore[attr-defined] # noqa: SLF001
    with anyio.fail_after(_OPEN_SECONDS):
        return await session.ws_connect(
            URL(url).without_query_params("compress"),
            max_msg_size=MAX_RESPONSE_BYTES,
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
            autoclose=False,
            headers={"User-Agent": http.user_agent},
            compress=compress,
        )
