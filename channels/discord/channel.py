"""The Discord channel: keeps a connection to Discord, whatever happens to it."""

from __future__ import annotations

import logging
import random

import aiohttp
import anyio
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from bot.bus import BusError, ChannelPort, ChannelRefused
from channels.base import Platform
from channels.delivery.courier import Courier
from channels.discord.client import SessionOver
from channels.discord.deferred import Deferred
from channels.discord.gate import Gate
from channels.discord.intake import Intake
from channels.discord.interactions import Interactions
from channels.discord.life import Announced, ContentNotAllowed, Life
from channels.discord.mark_files import MarkFiles
from channels.discord.marks import Marks, MarkStore
from channels.discord.missed import Missed
from channels.discord.patience import FIRST_PAUSE
from channels.discord.pauses import Pauses
from channels.discord.screen import DiscordScreen
from channels.discord.shards import Shard
from channels.discord.turns import APART, OURS, Reserve, Turn
from channels.discord.uplink import Uplink
from channels.discord.written import Written
from channels.lanes import Lanes

logger = logging.getLogger(__name__)

_LOGIN_REFUSED = (
    "Discord refuses the bot's token. Set TAPEBOT_DISCORD_TOKEN to the one that the page Bot of "
    "your application shows after Reset Token: https://discord.com/developers/applications"
)
_NO_CONTENT = (
    'Discord does not let the bot read messages. Switch on "Message Content Intent" under '
    "Bot > Privileged Gateway Intents of your application, then start again: "
    "https://discord.com/developers/applications"
)
_WRONG_SHARD = (
    "Discord does not take the bot divided as it is: it is on too many servers for so few shards. "
    "Raise TAPEBOT_DISCORD_SHARDS, for all gateways the same, and start them again"
)


class DiscordChannel:
    """Direct conversations, servers' channels and threads of one bot on Discord.

    What was said while the bot was away is read from the history of the channels that it knows.
    Direct conversations that somebody opened meanwhile are not among them: Discord does not list
    them to bots.

    Args:
        name: The first part of its sessions' keys, ``discord`` or ``discord-SOMETHING``.
        token: The bot's token.
        platform: What the program gives.
        api_base: Another base of REST calls, for the whole process; None leaves Discord's.
        gateway_url: Another gateway, for the whole process; None leaves Discord's.
        shard: Which of the bot's shards it is. The first has direct conversations, too; whatever is
            to be shown, each shows in all chats.
        shards: How many shards the bot is divided into.
        marks: Where it keeps how far it read; None keeps that in the platform's folder, where
            another machine that takes the shard over does not find it.
        reserve: Reserves a turn to begin a session among all that use the token; None among the
            shards of this process.
    """

    def __init__(
        self,
        name: str,
        token: str,
        platform: Platform,
        *,
        api_base: str | None = None,
        gateway_url: str | None = None,
        shard: int = 0,
        shards: int = 1,
        marks: MarkStore | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        self._name = name
        self._token = token.strip()
        self._platform = platform
        self._shard = Shard(shard, shards)
        self._store = marks or MarkFiles(platform.folder, self._shard)
        self._reserve = reserve or OURS.reserve
        if api_base is not None:
            Route.BASE = api_base
        if gateway_url is not None:
            DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)

    @property
    def name(self) -> str:
        """The first part of its sessions' keys."""
        return self._name

    async def run(self, port: ChannelPort) -> None:
        """Serve until cancelled; a lost connection is made anew.

        Raises:
            ChannelRefused: The token or the application's settings are wrong.
        """
        if not self._token.isascii() or not self._token.isprintable() or " " in self._token:
            raise ChannelRefused(_LOGIN_REFUSED)
        uplink = Uplink(Written(self._token, shared=not self._shard.alone))
        deferred = Deferred(uplink)
        marks = Marks(self._store, self._shard)
        await marks.load()
        gate = Gate(self._platform.access, self._platform.media, port)
        refusal: ChannelRefused | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(marks.keep)
            tasks.start_soon(Courier(port, DiscordScreen(uplink, deferred)).run)
            try:
                await self._live(Lanes(tasks), gate, uplink, deferred, marks)
            except ChannelRefused as refused:
                refusal = refused
            tasks.cancel_scope.cancel()
        if refusal is not None:
            raise refusal

    async def _live(
        self, lanes: Lanes, gate: Gate, uplink: Uplink, deferred: Deferred, marks: Marks
    ) -> None:
        """Live one life after the other; what was taken in one is dealt with beyond it."""
        intake = Intake(self._name, self._platform, gate, uplink, marks)

        async def deal(message: discord.Message, answered: bool) -> None:
            await intake.message(message, uplink.bot_id, answered=answered)

        missed = Missed(self._name, uplink, gate, marks, deal)
        interactions = Interactions(
            self._name,
            self._platform.commands,
            gate=gate,
            lanes=lanes,
            uplink=uplink,
            deferred=deferred,
        )
        pauses, announced = Pauses(FIRST_PAUSE), Announced()
        turn = Turn(self._shard, self._reserve)
        while True:
            life = Life(
                self._platform,
                lanes=lanes,
                intake=intake,
                missed=missed,
                interactions=interactions,
                uplink=uplink,
                announced=announced,
                shard=self._shard,
                turn=turn,
            )
            ended = await life.run(self._token)
            _refuse_if_hopeless(ended)
            lasted = None if life.began is None else anyio.current_time() - life.began
            wait = pauses.after(lasted) * random.uniform(0.8, 1.2)  # noqa: S311 - not a secret
            if life.began is None and isinstance(ended, SessionOver):
                # Another session began a moment ago: https://discord.com/developers/docs/events/gateway#rate-limiting
                wait = max(wait, APART * random.uniform(1.0, 1.5))  # noqa: S311 - not a secret
            elif life.began is None and not announced.away:
                announced.away = True
                self._platform.announce(
                    f"Discord{self._shard.label}: no connection, I try again until there is one"
                )
            _log_end(ended, wait)
            await anyio.sleep(wait)


def _refuse_if_hopeless(ended: Exception | None) -> None:
    """Raise what only a person can mend.

    Raises:
        ChannelRefused: It is such.
    """
    if isinstance(ended, discord.LoginFailure):
        raise ChannelRefused(_LOGIN_REFUSED) from ended
    if isinstance(ended, discord.PrivilegedIntentsRequired | ContentNotAllowed):
        raise ChannelRefused(_NO_CONTENT) from ended
    if not isinstance(ended, discord.ConnectionClosed):
        return
    # https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway
    match ended.code:
        case 4004:
            raise ChannelRefused(_LOGIN_REFUSED) from ended
        case 4014:
            raise ChannelRefused(_NO_CONTENT) from ended
        case 4010 | 4011:
            raise ChannelRefused(_WRONG_SHARD) from ended


def _log_end(ended: Exception | None, wait: float) -> None:
    expected = (
        *(discord.DiscordException, aiohttp.ClientError, aiohttp.WebSocketError),
        *(OSError, TimeoutError, BusError),
    )
    if ended is None or isinstance(ended, expected):
        reason = "the gateway closed it" if ended is None else f"{type(ended).__name__}: {ended}"
        logger.warning("the connection to Discord is lost (%s); next try in %.1f s", reason, wait)
    else:
        logger.error("discord.py broke down; next try in %.1f s", wait, exc_info=ended)
