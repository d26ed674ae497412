"""Builds the channels that are set up, and runs them side by side."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence

import anyio

from bot.app.build import App
from bot.errors import ChannelRefused
from bot.files import private_directory
from channels import registry
from channels.base import Channel, CommandMenu, Groups, Platform

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]

_FAREWELL = 10.0
"""Seconds that answers on their way have when the program ends by itself."""


def at_terminal() -> bool:
    """Return whether a person sits at both ends of this program."""
    return (
        sys.stdin is not None
        and sys.stdout is not None
        and sys.stdin.isatty()
        and sys.stdout.isatty()
    )


def build_channels(app: App, announce: Announce) -> list[Channel]:
    """Return the channels of the settings; the console where there is no other, or a terminal.

    Args:
        app: The program below them.
        announce: Tells whoever runs the program.
    """
    channels = [*_telegram(app, announce), *_discord(app, announce)]
    if not channels or at_terminal():
        channels.append(_console(app))
    return channels


async def run_channels(app: App, channels: Sequence[Channel], announce: Announce) -> None:
    """Run channels until the console's end, or until no platform lets the bot in.

    When the console has ended, answers on their way to platforms have some seconds more.

    Raises:
        ChannelRefused: That of the last, where all were refused; of the others was told.
    """
    refused: list[ChannelRefused] = []
    async with anyio.create_task_group() as tasks:

        async def one(channel: Channel) -> None:
            try:
                await channel.run(app.bus.channel(channel.name))
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


def _platform(app: App, name: str, announce: Announce) -> Platform:
    settings = app.settings
    return Platform(
        access=app.door,
        media=app.media,
        commands=tuple(
            CommandMenu(one.name, one.summary, one.forms) for one in app.services.commands.listed()
        ),
        groups=Groups(frozenset(settings.always_answer), settings.group_context > 0),
        folder=private_directory(settings.home / "channels" / name),
        announce=announce,
    )


def _telegram(app: App, announce: Announce) -> list[Channel]:
    settings = app.settings
    return [
        registry.telegram(
            bot.channel,
            bot.token.get_secret_value(),
            _platform(app, bot.channel, announce),
            api_base=settings.telegram_api_base,
            webhook_url=settings.telegram_webhook_url,
            webhook_listen=settings.telegram_webhook_listen,
        )
        for bot in settings.telegram_token
    ]


def _discord(app: App, announce: Announce) -> list[Channel]:
    settings = app.settings
    if settings.discord_token is None:
        return []
    return [
        registry.discord(
            settings.discord_token.get_secret_value(),
            _platform(app, "discord", announce),
            api_base=settings.discord_api_base,
            gateway_url=settings.discord_gateway_url,
        )
    ]


def _console(app: App) -> Channel:
    name = (
        "offline responder (no language model)" if app.model.name == "offline" else app.model.name
    )
    banner = (
        f"tapebot, {name}. Everything said is kept in {app.settings.home}.\n"
        "Type a message, or /help. Ctrl-D leaves."
    )
    return registry.console(
        history_file=app.settings.home / "console" / "history",
        user_name=app.settings.console_name,
        commands=[(f"/{one.name}", one.summary) for one in app.services.commands.listed()],
        banner=banner,
    )
