"""The Discord channel: keep a gateway connection open, with backoff, until the bot is refused."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
import anyio
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bot.bus import BusError, ChannelPort, ChannelRefused
from bot.core.i18n import N_, _
from channels.base import ChannelContext, ConnectionStatus
from channels.delivery.dispatcher import OutboundDispatcher
from channels.discord.client import (
    DiscordClient,
    MessageContentIntentMissing,
    Services,
    SessionInvalidated,
)
from channels.discord.current_client import CurrentClient
from channels.discord.deferred_responses import DeferredResponses
from channels.discord.errors import MAX_BACKOFF_SECONDS, MIN_BACKOFF_SECONDS
from channels.discord.intake import DiscordIntake
from channels.discord.interactions import InteractionHandler
from channels.discord.message_content import fetch_file
from channels.discord.messenger import DiscordMessenger
from channels.discord.missed_messages import MissedMessageReader
from channels.discord.read_positions import FileReadPositions, ReadPositions
from channels.discord.shards import (
    IDENTIFY_INTERVAL_SECONDS,
    PROCESS_SCHEDULE,
    IdentifySlot,
    Shard,
)
from channels.folder_spool import FolderSpool
from channels.intake import Intake
from channels.keyed_executor import KeyedExecutor

logger = logging.getLogger(__name__)

_LOGIN_REFUSED = N_(
    "Discord refuses the bot's token. Set TAPEBOT_DISCORD_TOKEN to the token that Reset Token "
    "shows on the Bot page of your application: https://discord.com/developers/applications"
)
_NO_CONTENT = N_(
    'Discord does not let the bot read messages. Switch on "Message Content Intent" under '
    "Bot > Privileged Gateway Intents of your application, then start again: "
    "https://discord.com/developers/applications"
)
_WRONG_SHARD = N_(
    "Discord requires more shards: the bot is on too many servers. Raise TAPEBOT_DISCORD_SHARDS, "
    "to the same value for all gateways, and restart them"
)


class DiscordChannel:
    """One Discord bot's direct messages, server channels and threads.

    Messages sent while the bot was offline are read from the history of the channels that it knows.
    Direct messages opened meanwhile are not among them, since Discord does not list those to bots.
    """

    def __init__(
        self,
        name: str,
        token: str,
        context: ChannelContext,
        *,
        api_base: str | None = None,
        gateway_url: str | None = None,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        self._name = name
        self._token = token.strip()
        self._context = context
        self._shard = Shard(shard, shards)
        # Without a database, a shard that moves to another machine loses its read positions.
        self._store = context.read_positions or FileReadPositions(context.data_dir, self._shard)
        where = urlsplit(api_base or Route.BASE).hostname or ""
        self._status = ConnectionStatus(f"{name.capitalize()}{self._shard.label}", where, context)
        self._reserve = context.reserve_login or PROCESS_SCHEDULE.reserve
        if api_base is not None:
            Route.BASE = api_base
        if gateway_url is not None:
            DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)

    @property
    def name(self) -> str:
        """The first part of the channel's session keys."""
        return self._name

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled; reconnect when the connection is lost.

        Raises:
            ChannelRefused: The token or the application's settings are wrong.
        """
        if not self._token.isascii() or not self._token.isprintable() or " " in self._token:
            raise ChannelRefused(_(_LOGIN_REFUSED))
        client = CurrentClient(self._token)
        spool = self._context.spool or FolderSpool(self._context.data_dir / "spool")
        deferred = DeferredResponses(client, spool)
        positions = ReadPositions(self._store, self._shard)
        await positions.load()
        dispatcher = OutboundDispatcher(port, DiscordMessenger(client, deferred))
        intake = Intake(
            self._name,
            self._context,
            port,
            fetch_file,
            dispatcher,
            first_retry=MIN_BACKOFF_SECONDS,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(positions.save_periodically)
            await tasks.start(dispatcher.run)
            executor = KeyedExecutor(tasks)
            interactions = InteractionHandler(
                self._name,
                self._context.commands,
                intake=intake,
                dispatcher=dispatcher,
                executor=executor,
                deferred=deferred,
            )
            await interactions.resume()
            messages = DiscordIntake(self._name, self._context, intake, client, positions)
            missed = MissedMessageReader(
                self._name,
                client,
                self._context,
                positions,
                intake=intake,
                handle=messages.handle_message,
                tell=dispatcher.tell,
            )
            await self._reconnect_until_refused(
                Services(
                    self._context,
                    executor,
                    messages,
                    missed,
                    interactions,
                    client,
                    self._status,
                    self._shard,
                    IdentifySlot(self._shard, self._reserve),
                )
            )

    async def _reconnect_until_refused(self, services: Services) -> None:
        """Open one connection after the other; work begun in one continues beyond it.

        Raises:
            ChannelRefused: Reconnecting cannot help.
        """
        backoff = ReconnectBackoff(MIN_BACKOFF_SECONDS)
        while True:
            connection = DiscordClient(services)
            error = await connection.serve(self._token)
            _refuse_if_hopeless(error)
            started = connection.session_started_at
            lasted = None if started is None else anyio.current_time() - started
            wait = backoff.next_delay(lasted) * random.uniform(0.8, 1.2)  # noqa: S311 - not a secret
            if started is None and isinstance(error, SessionInvalidated):
                # Another session has just begun, and Discord spaces them:
                # https://discord.com/developers/docs/events/gateway#rate-limiting
                wait = max(wait, IDENTIFY_INTERVAL_SECONDS * random.uniform(1.0, 1.5))  # noqa: S311 - not a secret
            elif started is None:
                self._status.lost(_reason(error))
            _log_end(error, wait)
            await anyio.sleep(wait)


def _refuse_if_hopeless(ended: Exception | None) -> None:
    """Raise if only a person can fix the cause.

    Raises:
        ChannelRefused: The token, the intents or the number of shards is wrong.
    """
    if isinstance(ended, discord.LoginFailure):
        raise ChannelRefused(_(_LOGIN_REFUSED)) from ended
    if isinstance(ended, discord.PrivilegedIntentsRequired | MessageContentIntentMissing):
        raise ChannelRefused(_(_NO_CONTENT)) from ended
    if not isinstance(ended, discord.ConnectionClosed):
        return
    # https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway
    match ended.code:
        case 4004:
            raise ChannelRefused(_(_LOGIN_REFUSED)) from ended
        case 4014:
            raise ChannelRefused(_(_NO_CONTENT)) from ended
        case 4010 | 4011:
            raise ChannelRefused(_(_WRONG_SHARD)) from ended


def _reason(ended: Exception | None) -> str:
    return (
        "the gateway closed it" if ended is None else f"{type(ended).__name__}: {ended}"
    )  # for the log


def _log_end(ended: Exception | None, wait: float) -> None:
    expected = (
        *(discord.DiscordException, aiohttp.ClientError, aiohttp.WebSocketError),
        *(OSError, TimeoutError, BusError),
    )
    if ended is None or isinstance(ended, expected):
        logger.warning(
            "the connection to Discord was lost (%s); next attempt in %.1f s", _reason(ended), wait
        )
    else:
        logger.error("discord.py failed; next attempt in %.1f s", wait, exc_info=ended)


MAX_SESSION_BACKOFF_SECONDS = 900.0
"""The longest delay in seconds after a session."""

STABLE_SESSION_SECONDS = 600.0
"""Seconds after which a session counts as stable and resets the delay."""


@dataclass(slots=True)
class ReconnectBackoff:
    """Exponential delays between connections.

    Attributes:
        first: The first delay in seconds.
    """

    first: float
    _next: float = 0.0

    def next_delay(self, lasted: float | None) -> float:
        """Return the seconds to wait before the next connection."""
        if lasted is not None and lasted > STABLE_SESSION_SECONDS:
            self._next = self.first
        pause = max(self._next, self.first)
        if lasted is not None:
            self._next = min(pause * 2, MAX_SESSION_BACKOFF_SECONDS)
            return pause
        self._next = max(pause, min(pause * 2, MAX_BACKOFF_SECONDS))
        return min(pause, MAX_BACKOFF_SECONDS)
