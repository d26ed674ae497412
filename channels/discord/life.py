"""One life of the connection: from the login until it is lost."""

from __future__ import annotations

import logging
from collections import deque
from functools import partial

import anyio
import discord
from anyio.abc import TaskGroup

from channels.base import Platform
from channels.delivery.screen import ScreenError
from channels.discord.client import Client
from channels.discord.deferred import Deferred
from channels.discord.gate import Gate
from channels.discord.intake import Intake
from channels.discord.interactions import Interactions
from channels.discord.marks import Marks
from channels.discord.menu import register
from channels.discord.missed import Missed
from channels.discord.patience import patiently
from channels.discord.uplink import Uplink
from channels.lanes import Lanes

logger = logging.getLogger(__name__)

_CLOSE_SECONDS = 3.0
_SETTLE_SECONDS = 3.0
_STORM = 6
_STORM_SECONDS = 60.0


class ContentNotAllowed(Exception):
    """The application may not read what people write."""


class Life:
    """What happens on one connection, in lanes that end with it.

    What was not dealt with then is read from history in the next life.

    Args:
        name: The name of our channel.
        platform: What the program gives.
        gate: Admits and publishes.
        intake: Takes messages.
        uplink: Told when there is a connection.
        deferred: Commands that wait for their answers.
        marks: How far each channel was dealt with.
    """

    def __init__(
        self,
        name: str,
        platform: Platform,
        *,
        gate: Gate,
        intake: Intake,
        uplink: Uplink,
        deferred: Deferred,
        marks: Marks,
    ) -> None:
        self._name = name
        self._platform = platform
        self._gate = gate
        self._intake = intake
        self._uplink = uplink
        self._deferred = deferred
        self._marks = marks
        self._lanes: Lanes
        self._missed: Missed
        self._interactions: Interactions
        self._client = Client(self)
        self._breaks: deque[float] = deque(maxlen=_STORM)
        self.was_ready = False

    async def run(self, token: str) -> Exception | None:
        """Live until the connection is lost; return what ended it, None for a clean end."""
        async with anyio.create_task_group() as tasks:
            self._furnish(tasks)
            try:
                ended = await self._connected(token, tasks)
                await self._settle()
            finally:
                self._down()
                tasks.cancel_scope.cancel()
                await self._close()
        return ended

    def connected(self) -> None:
        """Read what was missed in direct conversations, since these are not announced."""
        for channel_id in self._missed.begin():
            self._lanes.put(str(channel_id), partial(self._missed.read, channel_id))

    def disconnected(self) -> None:
        """End this life where the gateway breaks one connection after the other.

        discord.py connects anew without a pause; whoever supervises makes longer and longer ones.
        """
        now = anyio.current_time()
        self._breaks.append(now)
        if len(self._breaks) == _STORM and now - self._breaks[0] < _STORM_SECONDS:
            logger.warning("Discord's gateway broke %d connections within a minute", _STORM)
            self._lanes.put("close", self._client.close)

    def ready(self) -> None:
        """Say who the bot is, once."""
        client = self._client
        if self.was_ready or client.user is None:
            return
        self.was_ready = True
        self._platform.announce(f"Discord: @{client.user.name} is here")
        if not client.guilds and client.application_id is not None:
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

    def joined(self, guild: discord.Guild, *, new: bool) -> None:
        """Look at what a server has."""
        if new:
            self._platform.announce(
                f"Discord: added to the server {guild.name}; whoever is allowed may use it there, "
                f"and everybody there after /pair here or with discord:{guild.id} in TAPEBOT_ALLOW"
            )
        for channel in (*guild.channels, *guild.threads):
            self.opened(channel)

    def opened(self, channel: discord.abc.GuildChannel | discord.Thread) -> None:
        """Follow a channel that is open to the bot."""
        if isinstance(channel, discord.abc.Messageable):
            self._lanes.put(str(channel.id), partial(self._missed.sight, channel))

    def said(self, message: discord.Message) -> None:
        """Take a message, after what was missed before it."""
        self._lanes.put(str(message.channel.id), partial(self._said, message))

    def changed(self, event: discord.RawMessageUpdateEvent) -> None:
        """Take an edit."""
        before = event.cached_message.content if event.cached_message else None
        work = partial(self._intake.edit, event.message, before, self._bot_id)
        self._lanes.put(str(event.channel_id), work)

    def reacted(self, event: discord.RawReactionActionEvent) -> None:
        """Take a reaction."""
        client, channel_id = self._client, event.channel_id
        who = event.member or client.get_user(event.user_id)
        if event.user_id == self._bot_id or (who and who.bot):
            return
        unlisted = client.get_partial_messageable(channel_id, guild_id=event.guild_id)
        channel = client.get_channel(channel_id) or unlisted
        self._lanes.put(str(channel_id), partial(self._intake.reaction, event, who, channel))

    def interacted(self, interaction: discord.Interaction) -> None:
        """Take a command or a button."""
        self._interactions.take(interaction)

    @property
    def _bot_id(self) -> int:
        return self._client.user.id if self._client.user else 0

    def _furnish(self, tasks: TaskGroup) -> None:
        self._lanes = Lanes(tasks)
        self._missed = Missed(self._client, self._name, self._gate, self._marks, self._deal)
        self._interactions = Interactions(
            self._name,
            self._platform.commands,
            gate=self._gate,
            lanes=self._lanes,
            uplink=self._uplink,
            deferred=self._deferred,
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
            raise ContentNotAllowed
        self._uplink.up(client)
        tasks.start_soon(self._register)
        # A lost connection ends this life: discord.py's own waits grow to a quarter of an hour, and
        # it breaks down if the first connection of all fails. It still resumes what can be resumed.
        await client.connect(reconnect=False)

    async def _said(self, message: discord.Message) -> None:
        await self._missed.read(message.channel.id)
        await self._deal(message)

    async def _deal(self, message: discord.Message) -> None:
        await self._intake.message(message, self._bot_id)

    async def _register(self) -> None:
        commands = partial(register, self._client, self._platform.commands)
        try:
            await patiently("the list of slash commands", commands)
        except ScreenError as error:
            logger.warning("the slash commands are not registered: %s", error)

    def _down(self) -> None:
        self._uplink.down()
        self._client.events = None

    async def _settle(self) -> None:
        """Let what was taken reach the bus, as far as that needs no connection."""
        self._down()
        with anyio.move_on_after(_SETTLE_SECONDS):
            await self._lanes.settled()

    async def _close(self) -> None:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._client.close()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            # Where the gateway did not say goodbye, the sockets are closed all the same.
            await self._client.http.close()


def _content_allowed(flags: discord.ApplicationFlags) -> bool:
    return flags.gateway_message_content or flags.gateway_message_content_limited
