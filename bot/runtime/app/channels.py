"""Build the configured channels, and run them side by side."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import SecretStr

from bot.bus import WEB_CHANNEL, SharedSpool
from bot.core.errors import ChannelRefused, SettingsError
from bot.core.files import private_directory
from bot.runtime.app.build import App
from bot.runtime.app.web import build_site
from bot.runtime.settings.validators import BotToken
from channels import registry
from channels.base import Channel, ChannelContext, GroupPolicy, MenuCommand

if TYPE_CHECKING:
    # Loaded only if a database or a token is set.
    from bot.core.database.leases import Leases
    from channels.discord.read_positions import ReadPositionStore
    from channels.discord.shards import ReserveIdentify

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]

CONSOLE_LEASE = "channel/console"
"""The lease of the console: among processes that share a database, its holder shows it."""

_FAREWELL = 10.0
"""Seconds to deliver pending answers when the program ends by itself."""

_TELL_AFTER = 2.0
"""Seconds of waiting for a channel's lease before the operator is told so."""


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A channel to run in this process.

    Attributes:
        name: The channel's name.
        build: Creates the channel, anew for each run.
        shard: The shard's number, from 0.
        shards: How many shards the channel has.
        receive: Receives webhook updates, whichever process holds the channel's lease; None if the
            channel receives them itself.
    """

    name: str
    build: Callable[[], Channel]
    shard: int = 0
    shards: int = 1
    receive: Callable[[], Coroutine[Any, Any, None]] | None = None

    @property
    def lease(self) -> str:
        """The lease that a process must hold to run it, where processes share a database."""
        return f"channel/{self.name}" + (f"/{self.shard}" if self.shards > 1 else "")


def at_terminal() -> bool:
    """Return whether both standard input and output are terminals."""
    return (
        sys.stdin is not None
        and sys.stdout is not None
        and sys.stdin.isatty()
        and sys.stdout.isatty()
    )


def build_channels(app: App, announce: Announce, *, console: bool = True) -> list[ChannelSpec]:
    """Return the configured channels; the console at a terminal, or if there is no other.

    The website needs no platform beside it, nor does the console.

    Args:
        app: The program.
        announce: Tells the operator one line of text.
        console: Whether the console is allowed.

    Raises:
        SettingsError: There would be no channel.
    """
    channels = [*_telegram(app, announce), *_discord(app, announce)]
    terminal = console and at_terminal()
    if app.web.should_serve(beside=bool(channels) or terminal):
        channels.append(ChannelSpec(WEB_CHANNEL, partial(_web, app, announce, terminal=terminal)))
    if terminal or (console and not channels):
        channels.append(ChannelSpec("console", lambda: _console(app)))
    if not channels:
        raise SettingsError(
            "TAPEBOT_TELEGRAM_TOKEN: not set, nor is TAPEBOT_DISCORD_TOKEN or TAPEBOT_WEB_LISTEN; "
            "a gateway has a channel."
        )
    return channels


async def run_channels(app: App, channels: Sequence[ChannelSpec], announce: Announce) -> None:
    """Run channels until the console ends, or until every channel was refused.

    Processes that share a database run a channel only while they hold its lease. When the console
    has ended, pending answers get a few more seconds.

    Raises:
        ChannelRefused: The last refusal, if all channels were refused; the others were announced.
    """
    refused: list[ChannelRefused] = []
    async with anyio.create_task_group() as tasks:

        async def one(channel: ChannelSpec) -> None:
            try:
                await _run_one(app, channel, announce)
            except ChannelRefused as error:
                logger.info("channel %s has ended: %s", channel.name, error)
                refused.append(error)
                if len(refused) < len(channels):
                    announce(str(error))
                    return
            else:
                with anyio.move_on_after(_FAREWELL):
                    await app.bus.drain()
            tasks.cancel_scope.cancel()

        for channel in channels:
            tasks.start_soon(one, channel)
    if len(refused) == len(channels):
        raise refused[-1]


async def _run_one(app: App, running: ChannelSpec, announce: Announce) -> None:
    """Run a channel to its end; with a database, whenever this process holds its lease.

    Raises:
        ChannelRefused: The platform does not let the bot in.
    """
    if app.database_services is None:
        await running.build().run(app.bus.channel(running.name))
        return
    # Before the lease is held: loading takes seconds, and people wait once it is.
    await registry.preload_channel(running.name)
    mine = anyio.Event()

    async def job(epoch: int) -> None:
        mine.set()
        port = app.bus.channel(
            running.name, shard=running.shard, shards=running.shards, epoch=epoch
        )
        await running.build().run(port)

    async def tell() -> None:
        with anyio.move_on_after(_TELL_AFTER):
            await mine.wait()
            return
        announce(f"{running.lease}: another process has it, this one waits for its turn")

    async def turns(leases: Leases) -> None:
        while not await leases.hold(running.lease, job):
            pass

    refused: list[ChannelRefused] = []
    async with anyio.create_task_group() as tasks:

        async def until_refused(part: Callable[[], Coroutine[Any, Any, None]]) -> None:
            try:
                await part()
            except ChannelRefused as error:
                refused.append(error)
            tasks.cancel_scope.cancel()

        tasks.start_soon(tell)
        tasks.start_soon(until_refused, partial(turns, app.database_services.leases))
        if running.receive is not None:
            tasks.start_soon(until_refused, running.receive)
    if refused:
        raise refused[0]


def _platform(app: App, name: str, announce: Announce) -> ChannelContext:
    settings = app.settings
    return ChannelContext(
        access=app.access_control,
        media=app.attachments,
        commands=tuple(
            MenuCommand(one.name, one.summary, one.forms)
            for one in app.services.commands.visible_commands()
        ),
        group_policy=GroupPolicy(frozenset(settings.always_answer), settings.group_context > 0),
        data_dir=private_directory(settings.home / "channels" / name),
        announce=announce,
        on_connected=partial(_tell_of_claim, app, name.partition("-")[0], announce),
    )


def _tell_of_claim(app: App, platform: str, announce: Announce) -> None:
    """Announce how to claim a bot without an owner; only after its token was accepted."""
    if (code := app.access_control.claim_code_for(platform)) is not None:
        announce(
            f"{platform.capitalize()}: nobody there owns this bot yet. To own it, send it in a "
            f"private chat: /claim {code}"
        )


def _telegram(app: App, announce: Announce) -> list[ChannelSpec]:
    return [_telegram_bot(app, bot, announce) for bot in app.settings.telegram_token]


def _telegram_bot(app: App, bot: BotToken, announce: Announce) -> ChannelSpec:
    settings, shared = app.settings, app.database_services
    spool: SharedSpool | None = None
    if shared is not None:
        from bot.bus.postgres_spool import PostgresSpool

        spool = PostgresSpool(shared.database, shared.wakeups, bot.channel)
    receive: Callable[[], Coroutine[Any, Any, None]] | None = None
    if spool is not None and settings.telegram_webhook_url is not None:
        receive = partial(
            registry.receive_telegram_updates,
            bot.channel,
            bot.token.get_secret_value(),
            webhook_url=settings.telegram_webhook_url,
            webhook_listen=settings.telegram_webhook_listen,
            spool=spool,
            access=app.access_control,
        )
    build = partial(_telegram_channel, app, bot, announce, spool)
    return ChannelSpec(bot.channel, build, receive=receive)


def _telegram_channel(
    app: App, bot: BotToken, announce: Announce, spool: SharedSpool | None
) -> Channel:
    settings = app.settings
    return registry.create_telegram_channel(
        bot.channel,
        bot.token.get_secret_value(),
        replace(_platform(app, bot.channel, announce), spool=spool),
        api_base=settings.telegram_api_base,
        webhook_url=settings.telegram_webhook_url,
        webhook_listen=settings.telegram_webhook_listen,
    )


def _discord(app: App, announce: Announce) -> list[ChannelSpec]:
    token, shards = app.settings.discord_token, app.settings.discord_shards
    if token is None:
        return []
    return [
        ChannelSpec("discord", partial(_discord_shard, app, token, announce, shard), shard, shards)
        for shard in range(shards)
    ]


def _discord_shard(app: App, token: SecretStr, announce: Announce, shard: int) -> Channel:
    settings, shared = app.settings, app.database_services
    marks: ReadPositionStore | None = None
    reserve: ReserveIdentify | None = None
    if shared is not None:
        from bot.bus.postgres_read_positions import PostgresReadPositions, reserve_slot

        marks = PostgresReadPositions(shared.database, "discord")
        reserve = partial(reserve_slot, shared.database)
    return registry.create_discord_channel(
        token.get_secret_value(),
        _platform(app, "discord", announce),
        api_base=settings.discord_api_base,
        gateway_url=settings.discord_gateway_url,
        shard=shard,
        shards=settings.discord_shards,
        marks=marks,
        reserve=reserve,
    )


def _web(app: App, announce: Announce, *, terminal: bool) -> Channel:
    platform = replace(_platform(app, WEB_CHANNEL, announce), access=app.web)
    return registry.create_web_channel(
        platform,
        partial(build_site, app, announce, terminal=terminal),
        most_bytes=app.settings.max_file_mb * 1_000_000,
    )


def _console(app: App) -> Channel:
    name = (
        "offline responder (no language model)" if app.model.name == "offline" else app.model.name
    )
    banner = (
        f"tapebot, {name}.\nEverything said is kept in {app.settings.home}.\n"
        "Type a message, or /help. Ctrl-D leaves."
    )
    return registry.create_console_channel(
        history_file=app.settings.home / "console" / "history",
        user_name=app.settings.console_name,
        commands=[
            (f"/{one.name}", one.summary) for one in app.services.commands.visible_commands()
        ],
        banner=banner,
    )
