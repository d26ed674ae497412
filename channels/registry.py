"""Builds the channels that are set up; each is imported only when it is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from bot.bus import ChannelPort, ChannelRefused
from channels.base import Channel, Platform


def console(
    *,
    history_file: Path | None,
    user_name: str,
    commands: Sequence[tuple[str, str]],
    banner: str,
) -> Channel:
    """Return the console: the person who started the program."""
    from channels.console import ConsoleChannel

    return ConsoleChannel(
        history_file=history_file, user_name=user_name, commands=commands, banner=banner
    )


def telegram(
    name: str,
    token: str,
    platform: Platform,
    *,
    api_base: str | None,
    webhook_url: str | None,
    webhook_listen: str,
) -> Channel:
    """Return one Telegram bot."""

    def build() -> Channel:
        from channels.telegram import TelegramChannel, WebhookPlace

        webhook = None
        if webhook_url is not None:
            host, _, port = webhook_listen.rpartition(":")
            webhook = WebhookPlace(webhook_url, host, int(port))
        return TelegramChannel(name, token, platform, api_base=api_base, webhook=webhook)

    return _Deferred(name, "telegram", build)


def discord(
    token: str, platform: Platform, *, api_base: str | None, gateway_url: str | None
) -> Channel:
    """Return the Discord bot."""

    def build() -> Channel:
        from channels.discord import DiscordChannel

        return DiscordChannel(
            "discord", token, platform, api_base=api_base, gateway_url=gateway_url
        )

    return _Deferred("discord", "discord", build)


class _Deferred:
    """A channel whose library is loaded when it runs, beside the event loop: it takes seconds.

    Args:
        name: The channel's.
        extra: What brings the library.
        build: Loads it.
    """

    def __init__(self, name: str, extra: str, build: Callable[[], Channel]) -> None:
        self.name = name
        self._extra = extra
        self._build = build

    async def run(self, port: ChannelPort) -> None:
        """Load it, and serve.

        Raises:
            ChannelRefused: Its library is not installed, or the platform does not let the bot in.
        """
        try:
            channel = await anyio.to_thread.run_sync(self._load)
        except ModuleNotFoundError as error:
            raise ChannelRefused(
                f"{error.name} is not installed; get it with: pip install 'tapebot[{self._extra}]'"
            ) from error
        await channel.run(port)

    def _load(self) -> Channel:
        channel = self._build()
        # The library's objects stay for good: looking through them all at each full collection
        # would stop the bot for a fifth of a second.
        gc.collect()
        gc.freeze()
        return channel
