"""Create the configured channels; each one's library is imported only when it is needed."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread

from bot.bus import WEB_CHANNEL, Authorizer, ChannelPort, ChannelRefused, SharedSpool, WebBackend
from channels.base import Channel, ChannelContext

if TYPE_CHECKING:
    # Imported at run time only if Discord is configured.
    from channels.discord.read_positions import ReadPositionStore
    from channels.discord.shards import ReserveIdentify

T = TypeVar("T")


def create_console_channel(
    *,
    history_file: Path | None,
    user_name: str,
    commands: Sequence[tuple[str, str]],
    banner: str,
) -> Channel:
    """Return the console channel, for the person who started the program."""
    from channels.console import ConsoleChannel

    return ConsoleChannel(
        history_file=history_file, user_name=user_name, commands=commands, banner=banner
    )


def create_telegram_channel(
    name: str,
    token: str,
    platform: ChannelContext,
    *,
    api_base: str | None,
    webhook_url: str | None,
    webhook_listen: str,
) -> Channel:
    """Return the channel of one Telegram bot."""

    def build() -> Channel:
        from channels.telegram import TelegramChannel, parse_webhook_endpoint

        webhook = (
            None if webhook_url is None else parse_webhook_endpoint(webhook_url, webhook_listen)
        )
        return TelegramChannel(name, token, platform, api_base=api_base, webhook=webhook)

    return _LazyChannel(name, "telegram", build)


async def preload_channel(name: str) -> None:
    """Import a channel's library ahead of time, so that creating the channel is fast.

    Args:
        name: The channel's name.

    Raises:
        ChannelRefused: The library is not installed.
    """
    kind = name.partition("-")[0]
    if kind != "console":
        await _build_in_thread(partial(import_module, f"channels.{kind}"), kind)


async def receive_telegram_updates(
    name: str,
    token: str,
    *,
    webhook_url: str,
    webhook_listen: str,
    spool: SharedSpool,
    access: Authorizer,
) -> None:
    """Receive one Telegram bot's webhook updates into a spool, until cancelled.

    The channel reads them from the same spool, its ``ChannelContext.spool``, in any process.

    Args:
        name: The channel's name.
        token: The bot's token.
        webhook_url: The public URL that the channel registers with Telegram.
        webhook_listen: The address to listen on, as ``host:port``; bots may share it.
        spool: Stores updates for the channel.
        access: Decides who may use the bot.

    Raises:
        ChannelRefused: aiogram is not installed, or the port is in use.
    """

    def build() -> Callable[[], Awaitable[None]]:
        from channels.telegram import parse_webhook_endpoint, receive_updates

        place = parse_webhook_endpoint(webhook_url, webhook_listen)
        return partial(receive_updates, name, token, place=place, spool=spool, access=access)

    run = await _build_in_thread(build, "telegram")
    await run()


def create_discord_channel(
    token: str,
    platform: ChannelContext,
    *,
    api_base: str | None,
    gateway_url: str | None,
    shard: int = 0,
    shards: int = 1,
    marks: ReadPositionStore | None = None,
    reserve: ReserveIdentify | None = None,
) -> Channel:
    """Return the Discord bot's channel, or that of one of its shards; see ``DiscordChannel``."""

    def build() -> Channel:
        from channels.discord import DiscordChannel

        return DiscordChannel(
            "discord",
            token,
            platform,
            api_base=api_base,
            gateway_url=gateway_url,
            shard=shard,
            shards=shards,
            marks=marks,
            reserve=reserve,
        )

    return _LazyChannel("discord", "discord", build)


def create_web_channel(
    platform: ChannelContext, site: Callable[[], WebBackend], *, most_bytes: int | None = None
) -> Channel:
    """Return the web channel, served by the program's own web server.

    Args:
        platform: What the application gives the channel.
        site: Creates the backend that serves the pages.
        most_bytes: The most bytes of an uploaded file; None for the channel's default.
    """

    def build() -> Channel:
        from channels.web import WebChannel

        if most_bytes is None:
            return WebChannel(platform, site())
        return WebChannel(platform, site(), most_bytes=most_bytes)

    return _LazyChannel(WEB_CHANNEL, "web", build)


class _LazyChannel:
    """A channel whose library is imported in a thread when it runs, since that takes seconds.

    Args:
        name: The channel's name.
        extra: The package extra that installs the library.
        build: Imports the library and creates the channel.
    """

    def __init__(self, name: str, extra: str, build: Callable[[], Channel]) -> None:
        self.name = name
        self._extra = extra
        self._build = build

    async def run(self, port: ChannelPort) -> None:
        """Import the library, create the channel and run it.

        Raises:
            ChannelRefused: The library is not installed, or the platform rejects the bot.
        """
        channel = await _build_in_thread(self._build, self._extra)
        await channel.run(port)


async def _build_in_thread(build: Callable[[], T], extra: str) -> T:
    """Call ``build`` in a thread, since importing a library would block the event loop.

    Raises:
        ChannelRefused: The library is not installed.
    """

    def load() -> T:
        built = build()
        # The library's objects live as long as the process. Traversing them at each full
        # collection would block the bot for a fifth of a second.
        gc.collect()
        gc.freeze()
        return built

    try:
        return await anyio.to_thread.run_sync(load)
    except ModuleNotFoundError as error:
        raise ChannelRefused(
            f"{error.name} is not installed; get it with: pip install 'tapebot[{extra}]'"
        ) from error
