"""One gateway connection of discord.py, from login until it is lost, and its event handlers.

discord.py runs each handler in its own task, in the order of the events. So a handler only submits
work, without waiting, to a lane that outlives the connection.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import aiohttp
import anyio
import discord
from anyio.abc import TaskGroup
from discord.gateway import ReconnectWebSocket
from discord.http import HTTPClient
from yarl import URL

from bot.core.i18n import _, format_duration
from channels.base import ChannelContext, ConnectionStatus
from channels.delivery.messenger import MessengerError
from channels.discord.commands import register_commands
from channels.discord.current_client import CurrentClient
from channels.discord.errors import MIN_BACKOFF_SECONDS, call_with_retries
from channels.discord.intake import DiscordIntake
from channels.discord.interactions import InteractionHandler
from channels.discord.message_content import clean_name
from channels.discord.missed_messages import MissedMessageReader
from channels.discord.shards import IdentifySlot, Shard
from channels.keyed_executor import KeyedExecutor
from channels.response_limits import MAX_RESPONSE_BYTES, limit_response_size

logger = logging.getLogger(__name__)

# At lower levels discord.py logs messages of people who are not authorized yet, and URLs that hold
# interaction tokens.
logging.getLogger("discord").setLevel(logging.WARNING)

SILENCE_SECONDS = 60.0
"""Seconds without a gateway message after which the connection counts as dead."""

MIN_REMAINING_SESSIONS = 50
"""No session is begun while fewer than this remain of Discord's daily limit."""

_LONGEST_LIMIT = 30.0
_CLOSING_SECONDS = 30.0
_OPEN_SECONDS = 15.0
_GUILD_SECONDS = 1.0
_CLOSE_SECONDS = 3.0
_MAX_DISCONNECTS = 6
_DISCONNECT_WINDOW_SECONDS = 60.0
_MOST_SERVERS = 5
_VITAL = {"READY", "RESUMED"}


class SessionInvalidated(OSError):
    """The gateway session cannot be resumed."""


class MessageContentIntentMissing(Exception):
    """The application lacks the privileged Message Content intent."""


@dataclass(slots=True)
class Services:
    """What outlives a connection.

    Attributes:
        announced: Whether the bot's name was announced.
        servers: The number of servers to which the bot was added.
    """

    context: ChannelContext
    executor: KeyedExecutor
    intake: DiscordIntake
    missed: MissedMessageReader
    interactions: InteractionHandler
    current: CurrentClient
    status: ConnectionStatus
    shard: Shard
    identify_slot: IdentifySlot
    announced: bool = False
    servers: int = field(default=0)


class DiscordClient(discord.Client):
    """Run one gateway connection.

    Attributes:
        session_started_at: When the session began, by the event loop's clock; None if none has.
    """

    def __init__(self, services: Services) -> None:
        shard = services.shard
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
        self.session_started_at: float | None = None
        self._services = services
        self._ended = False
        self._disconnected_at: deque[float] = deque(maxlen=_MAX_DISCONNECTS)
        parsers = self._connection.parsers
        for event in parsers.keys() - _VITAL:
            parsers[event] = partial(self._run_logged, event, parsers[event])

    # The connection.

    async def serve(self, token: str) -> Exception | None:
        """Run until the connection is lost; return its error, None after a clean end."""
        ended: Exception | None = None
        async with anyio.create_task_group() as tasks:
            try:
                await self._log_in_and_connect(token, tasks)
            except Exception as error:  # noqa: BLE001 - ``DiscordChannel`` decides what it means
                ended = error
            finally:
                self._services.current.clear_client()
                self._ended = True
                tasks.cancel_scope.cancel()
                for close in (self.close, self.http.close):
                    # The sockets are closed even if the gateway does not answer the handshake.
                    with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                        await close()
        return ended

    async def _log_in_and_connect(self, token: str, tasks: TaskGroup) -> None:
        services = self._services
        with anyio.fail_after(services.status.login_seconds):
            await self.login(token)
        flags = self.application.flags if self.application else None
        if flags is not None and not _content_allowed(flags):
            raise MessageContentIntentMissing
        services.current.set_client(self)
        if services.shard.first:
            tasks.start_soon(self._register)
        concurrency = await self._wait_for_sessions()
        await services.identify_slot.reserve(services.current.bot_id, concurrency)
        # A lost connection ends this object: discord.py's own delays grow to a quarter of an hour,
        # and it raises if the very first connection fails. It still resumes sessions.
        await self.connect(reconnect=False)

    async def _register(self) -> None:
        context = self._services.context
        register = partial(register_commands, self, context.commands, context.default_language)
        try:
            await call_with_retries("the list of slash commands", register)  # for the log
        except MessengerError as error:
            logger.warning("the slash commands are not registered: %s", error)

    async def _wait_for_sessions(self) -> int:
        """Wait while few sessions remain; Discord resets the token of a bot that exceeds the limit.

        Returns:
            ``max_concurrency``: how many sessions may begin at the same time.
        """
        while True:
            wanted, _type, limit = await self.http.get_bot_gateway()
            if wanted > self._services.shard.count:
                logger.warning("Discord recommends TAPEBOT_DISCORD_SHARDS=%d for this bot", wanted)
            left, wait = limit["remaining"], max(limit["reset_after"] / 1000, MIN_BACKOFF_SECONDS)
            if left >= MIN_REMAINING_SESSIONS:
                return limit["max_concurrency"]
            self._services.context.announce(
                _(
                    "Discord: only {left} of {limit} connections are left today; it connects again after {duration}. Does another program use the bot's token?",
                    left=left,
                    limit=limit["total"],
                    duration=format_duration(timedelta(seconds=wait)),
                )
            )
            await anyio.sleep(wait)

    # What discord.py calls.

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Dispatch an event while this serves; some tasks of discord.py outlive the client.

        Discord limits the number of sessions a day. If the session is lost, discord.py would begin
        another one at once. So this raises instead, and ``DiscordChannel`` reconnects with backoff.

        Raises:
            SessionInvalidated: The session is lost and cannot be resumed.
        """
        lost = sys.exc_info()[1] if event == "disconnect" else None
        if isinstance(lost, ReconnectWebSocket) and not lost.resume:
            raise SessionInvalidated("Discord no longer knows the session") from lost  # for the log
        if not self._ended and not self.is_closed():
            super().dispatch(event, *args, **kwargs)

    async def before_identify_hook(
        self,
        shard_id: int | None,  # noqa: ARG002 - always this client's shard
        *,
        initial: bool = False,  # noqa: ARG002 - each connection begins one session
    ) -> None:
        """Wait until IDENTIFY may be sent."""
        await self._services.identify_slot.wait()

    def _run_logged(self, event: str, parse: Callable[[Any], None], data: Any) -> None:
        """Parse an event; if discord.py cannot, log that and keep the connection."""
        try:
            parse(data)
        except Exception:  # one bad event must not end the connection
            logger.exception("an event %s of Discord could not be read", event)
            if event == "MESSAGE_CREATE" and not self._ended:
                self._submit("unreadable", self._services.intake.handle_unreadable, data)

    async def on_error(self, event_method: str, /, *_args: object, **_kwargs: object) -> None:
        """Log the exception of a handler."""
        logger.error("%s failed", event_method, exc_info=sys.exc_info())

    async def on_connect(self) -> None:
        """Catch up on direct messages, whose channels the gateway does not list."""
        self.session_started_at = anyio.current_time()
        self._catch_up(self._services.missed.start_session())

    async def on_disconnect(self) -> None:
        """Close the connection if the gateway breaks it six times within a minute.

        discord.py reconnects without a delay; ``DiscordChannel`` does so with backoff.
        """
        now, times = anyio.current_time(), self._disconnected_at
        times.append(now)
        if len(times) == _MAX_DISCONNECTS and now - times[0] < _DISCONNECT_WINDOW_SECONDS:
            logger.warning("Discord's gateway broke %d connections within a minute", len(times))
            self._submit("close", self.close)

    async def on_ready(self) -> None:
        """Catch up on channels that no server listed, and announce the bot once."""
        services = self._services
        self._catch_up(services.missed.unlisted_channels(self))
        services.status.restored()
        if services.announced or self.user is None:
            return
        services.announced = True
        label, me = services.shard.label, clean_name(self.user.name)
        services.context.announce(_("Discord{label}: connected as @{me}", label=label, me=me))
        services.context.on_connected()
        if services.shard.is_only and not self.guilds and self.application_id is not None:
            permissions = discord.Permissions(
                view_channel=True,
                send_messages=True,
                send_messages_in_threads=True,
                read_message_history=True,
            )
            scopes = ("bot", "applications.commands")
            link = discord.utils.oauth_url(
                self.application_id, permissions=permissions, scopes=scopes
            )
            services.context.announce(
                _("Discord: the bot is on no server yet; invite it with {link}", link=link)
            )

    async def on_guild_available(self, guild: discord.Guild) -> None:
        """Follow the channels and threads of a server."""
        for channel in (*guild.channels, *guild.threads):
            self._follow(channel)

    async def on_guild_join(self, guild: discord.Guild) -> None:
        """Announce a new server a few times only, since anybody can add a public bot."""
        name = clean_name(guild.name)
        self._services.servers += 1
        if self._services.servers > _MOST_SERVERS:
            logger.warning("the bot was added to one more server, %s (%d)", name, guild.id)
        else:
            self._services.context.announce(
                _(
                    "Discord: added to the server {name}. Allowed people may use it there. To allow everyone there, send /pair here, or add discord:{id} to TAPEBOT_ALLOW",
                    name=name,
                    id=guild.id,
                )
            )
        await self.on_guild_available(guild)

    async def on_guild_channel_create(self, channel: discord.abc.GuildChannel) -> None:
        """Follow a new channel."""
        self._follow(channel)

    async def on_thread_create(self, thread: discord.Thread) -> None:
        """Follow a new thread."""
        self._follow(thread)

    async def on_thread_join(self, thread: discord.Thread) -> None:
        """Follow a thread."""
        self._follow(thread)

    async def on_message(self, message: discord.Message) -> None:
        """Handle a message after those that were missed before it."""
        intake = self._services.intake
        self._submit_after_missed(message.channel.id, partial(intake.handle_message, message))

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        """Handle an edit after the missed messages of its channel: it may be of one of them."""
        intake = self._services.intake
        self._submit_after_missed(event.channel_id, partial(intake.handle_edit, event.message))

    async def on_raw_reaction_add(self, event: discord.RawReactionActionEvent) -> None:
        """Handle a reaction of a person."""
        who = event.member or self.get_user(event.user_id)
        if event.user_id != self._services.current.bot_id and not (who and who.bot):
            channel = self._services.current.find_channel(event.channel_id, event.guild_id)
            handle = self._services.intake.handle_reaction
            self._submit(str(event.channel_id), handle, event, who, channel)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Handle a slash command, an autocompletion or a button press."""
        self._services.interactions.handle(interaction)

    # Work in lanes.

    def _submit(self, lane: str, work: Callable[..., Any], *args: Any) -> None:
        self._services.executor.submit(lane, partial(work, *args))

    def _catch_up(self, channels: list[int]) -> None:
        for channel_id in channels:
            self._submit(str(channel_id), self._services.missed.catch_up, channel_id)

    def _follow(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """Follow a channel if everybody in it may use the bot, and catch up on it."""
        if isinstance(channel, discord.abc.Messageable):
            self._submit(str(channel.id), self._services.missed.follow_channel, channel)

    def _submit_after_missed(self, channel_id: int, work: Callable[[], Any]) -> None:
        async def catch_up_first() -> None:
            await self._services.missed.catch_up(channel_id)
            await work()

        self._submit(str(channel_id), catch_up_first)


def _content_allowed(flags: discord.ApplicationFlags) -> bool:
    return flags.gateway_message_content or flags.gateway_message_content_limited


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
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSING_SECONDS),
            autoclose=False,
            headers={"User-Agent": http.user_agent},
            compress=compress,
        )
