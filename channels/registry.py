"""Every platform that tapebot knows: its settings, and how its channels are created.

What the rest of the program needs to know of a platform is derived from here: the settings, the
secrets that logs hide, the ids that settings accept, the checks of ``tapebot doctor``, the channels
to run. A platform's package is named after it, ``channels.NAME``, and imported only when one of its
channels is created.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    GetCoreSchemaHandler,
    SecretStr,
    field_validator,
)
from pydantic_core import CoreSchema, core_schema
from pydantic_settings import NoDecode

from bot.bus import WEB_CHANNEL, host_and_port, web_address, websocket_address
from bot.core.i18n import _
from channels.base import Channel, ChannelContext, ChannelSpec, TokenCheck

_TELEGRAM_API = "https://api.telegram.org"
_DISCORD_API = "https://discord.com/api/v10"


@dataclass(frozen=True, slots=True)
class TelegramBot:
    """A Telegram bot's token and its channel.

    Attributes:
        channel: ``telegram``, or ``telegram-NAME`` for one of several.
        token: The token.
    """

    channel: str
    token: SecretStr

    @classmethod
    def parse(cls, text: str) -> TelegramBot:
        """Parse ``TOKEN`` or ``NAME=TOKEN``.

        Raises:
            ValueError: It has another form.
        """
        name, equals, token = text.strip().rpartition("=")
        if equals and not re.fullmatch(r"[a-z][a-z0-9_]{0,15}", name):
            raise ValueError(_("bot names of at most 16 lower-case letters and digits"))
        if not re.fullmatch(r"\d+:[\w-]{8,}", token):
            raise ValueError(_("a token as @BotFather gives it, 123456789:AA..."))
        return cls(f"telegram-{name}" if name else "telegram", SecretStr(token))

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[TelegramBot], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Validate from text."""
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.parse(str(value))
        )


class TelegramSettings(BaseModel):
    """Settings of the Telegram channel."""

    telegram_token: Annotated[tuple[TelegramBot, ...], NoDecode] = Field(
        (), description="Bot token from @BotFather; several as NAME=TOKEN, separated by commas."
    )
    telegram_api_base: Annotated[str, AfterValidator(web_address)] | None = Field(
        None, description="Address of your own Bot API server; unset: Telegram's."
    )
    telegram_webhook_url: Annotated[str, AfterValidator(web_address)] | None = Field(
        None, description="Public address for Telegram's webhook; unset: polling."
    )
    telegram_webhook_listen: Annotated[str, AfterValidator(host_and_port)] = Field(
        "127.0.0.1:8081", description="Where the webhook listens on this machine."
    )

    @field_validator("telegram_token")
    @classmethod
    def _named_apart(cls, tokens: tuple[TelegramBot, ...]) -> tuple[TelegramBot, ...]:
        names = [token.channel for token in tokens]
        if len(set(names)) < len(names):
            raise ValueError(_("several bots, each with its own name: NAME=TOKEN,NAME=TOKEN"))
        return tokens


def _telegram_channels(settings: TelegramSettings) -> Iterator[ChannelSpec]:
    for bot in settings.telegram_token:
        base = (settings.telegram_api_base or _TELEGRAM_API).rstrip("/")
        webhook = settings.telegram_webhook_url is not None
        yield ChannelSpec(
            bot.channel,
            partial(_create_telegram_channel, settings, bot),
            receive=partial(_receive_telegram_updates, settings, bot) if webhook else None,
            token_check=TokenCheck(f"{base}/bot{bot.token.get_secret_value()}/getMe"),
        )


def _create_telegram_channel(
    settings: TelegramSettings, bot: TelegramBot, context: ChannelContext
) -> Channel:
    from channels.telegram import TelegramChannel, parse_webhook_endpoint

    url, listen = settings.telegram_webhook_url, settings.telegram_webhook_listen
    return TelegramChannel(
        bot.channel,
        bot.token.get_secret_value(),
        context,
        api_base=settings.telegram_api_base,
        webhook=None if url is None else parse_webhook_endpoint(url, listen),
    )


async def _receive_telegram_updates(
    settings: TelegramSettings, bot: TelegramBot, context: ChannelContext
) -> None:
    from channels.telegram import parse_webhook_endpoint, receive_updates

    assert settings.telegram_webhook_url is not None
    assert context.spool is not None
    await receive_updates(
        bot.channel,
        bot.token.get_secret_value(),
        endpoint=parse_webhook_endpoint(
            settings.telegram_webhook_url, settings.telegram_webhook_listen
        ),
        spool=context.spool,
        access=context.access,
    )


class DiscordSettings(BaseModel):
    """Settings of the Discord channel."""

    discord_token: SecretStr | None = Field(
        None, description="Bot token from Discord's developer portal."
    )
    discord_api_base: Annotated[str, AfterValidator(web_address)] | None = Field(
        None, description="Address of another Discord REST API; unset: Discord's."
    )
    discord_gateway_url: Annotated[str, AfterValidator(websocket_address)] | None = Field(
        None,
        description="Address of another gateway; unset: Discord's, whatever the API's address is.",
    )
    discord_shards: int = Field(1, ge=1, le=16_384, description="Number of Discord shards.")


def _discord_channels(settings: DiscordSettings) -> Iterator[ChannelSpec]:
    if settings.discord_token is None:
        return
    base = (settings.discord_api_base or _DISCORD_API).rstrip("/")
    token = settings.discord_token.get_secret_value()
    # Discord asks for a User-Agent of this form.
    headers = {
        "Authorization": f"Bot {token}",
        "User-Agent": "DiscordBot (tapebot, 0)",
    }  # for programs
    for shard in range(settings.discord_shards):
        yield ChannelSpec(
            "discord",
            partial(_create_discord_channel, settings, token, shard),
            shard=shard,
            shards=settings.discord_shards,
            token_check=TokenCheck(f"{base}/users/@me", headers),
        )


def _create_discord_channel(
    settings: DiscordSettings, token: str, shard: int, context: ChannelContext
) -> Channel:
    from channels.discord import DiscordChannel

    return DiscordChannel(
        "discord",
        token,
        context,
        api_base=settings.discord_api_base,
        gateway_url=settings.discord_gateway_url,
        shard=shard,
        shards=settings.discord_shards,
    )


class ChannelSettings(TelegramSettings, DiscordSettings):
    """The settings of all platforms."""


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform that tapebot can be reached on.

    Attributes:
        name: Its name, in session keys and in settings: ``telegram``.
        title: Its name for people.
        setting: Names the setting that turns it on.
        channels: Returns the configured channels.
        library: The module that its channels need; None if they need none.
        example_id: Id of a person, for explanations.
        person_id: The form of people's ids, as ``TAPEBOT_OWNERS`` takes them: another form would
            match nobody.
        chat_id: The form of the ids of people, chats and servers.
    """

    name: str
    title: str
    setting: str
    channels: Callable[[ChannelSettings], Iterator[ChannelSpec]]
    library: str | None
    example_id: str
    person_id: str = r"[1-9][0-9]{0,19}"
    chat_id: str = r"[1-9][0-9]{0,19}"


PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform(
            name="telegram",
            title="Telegram",
            setting="telegram_token",
            channels=_telegram_channels,
            library="aiogram",
            example_id="42",
            # Groups have negative ids.
            chat_id=r"-?[1-9][0-9]{0,19}",
        ),
        Platform(
            name="discord",
            title="Discord",
            setting="discord_token",
            channels=_discord_channels,
            library="discord",
            example_id="81384788765712384",
        ),
    )
}
"""All platforms by their names."""


def import_platform(channel: str) -> None:
    """Import a channel's package, and so the platform's library, which may take seconds.

    Args:
        channel: The channel's name; nothing is imported for a plug-in's.
    """
    name = channel.partition("-")[0]
    if name in PLATFORMS or name == WEB_CHANNEL:
        import_module(f"channels.{name}")
