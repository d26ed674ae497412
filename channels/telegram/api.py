"""The border to aiogram: calls in, our errors out.

Rule 1: no text that leaves here holds the token. aiogram and aiohttp put it into addresses, so
network errors are told in our words and without their cause.
Rule 2: nothing here waits out an error or tries again.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TypeVar

import aiohttp
import anyio
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.methods import GetFile, TelegramMethod
from aiogram.utils.token import TokenValidationError

from bot.bus import ChannelRefused, FileUnavailable
from channels.delivery.screen import (
    Flooded,
    FormatRefused,
    MessageGone,
    Refused,
    ScreenError,
    Unreachable,
)

TOKEN_SETTING = "TAPEBOT_TELEGRAM_TOKEN"  # noqa: S105 (its name)
"""The setting that holds the token."""

MOST_DOWNLOAD = 20 * 1024 * 1024
"""Bytes that Telegram gives to bots: https://core.telegram.org/bots/api#getfile."""

_MEGABYTE = 1024 * 1024
_CALL_SECONDS = 30
_DOWNLOAD_SECONDS = 300
_FLOOD_SECONDS = 5.0

_GONE = (
    "message to edit not found",
    "message can't be edited",
    "message to delete not found",
    "message can't be deleted",
    "message_id_invalid",
    "there is no text in the message to edit",
)
_FORMAT = (
    "can't parse entities",
    "entity",
    "entities",
    "message is too long",
    "message_too_long",
    "text must be non-empty",
    "message text is empty",
)

ResultT = TypeVar("ResultT")


class Unchanged(ScreenError):
    """An edit that changes nothing."""


class Conflict(Unreachable):
    """Somebody else gets this bot's updates; the text is Telegram's."""


class MethodUnknown(Refused):
    """The server does not have this method."""


class Moved(ScreenError):
    """The group became a supergroup.

    Attributes:
        chat_id: Its id from now on.
    """

    def __init__(self, chat_id: int) -> None:
        super().__init__(f"the group is chat {chat_id} now")
        self.chat_id = chat_id


class Api:
    """One bot's calls of the Bot API.

    Args:
        token: The bot's token.
        base: Address of a Bot API server; None for Telegram's own.

    Attributes:
        locked_out: Set once Telegram does not know the token any more.

    Raises:
        ChannelRefused: The token does not look like one.
    """

    def __init__(self, token: str, base: str | None) -> None:
        server = PRODUCTION if base is None else TelegramAPIServer.from_base(base)
        self._session = AiohttpSession(api=server)
        try:
            self._bot = Bot(token, session=self._session)
        except TokenValidationError:
            raise ChannelRefused(
                f"{TOKEN_SETTING} is not a bot token; it looks like 123456:ABC-DEF, "
                "as @BotFather shows it"
            ) from None
        self._secret = token.partition(":")[2]
        self.locked_out = anyio.Event()

    @property
    def bot_id(self) -> int:
        """The bot's id, which is the token's first part."""
        return self._bot.id

    async def __call__(
        self, method: TelegramMethod[ResultT], *, seconds: float = _CALL_SECONDS
    ) -> ResultT:
        """Call a method.

        Args:
            method: What to call.
            seconds: How long an answer may take.

        Raises:
            ScreenError: It failed; also ``Unchanged``, ``Conflict``, ``MethodUnknown``, ``Moved``.
        """
        try:
            result: ResultT = await self._bot(method, request_timeout=int(seconds))
        except TelegramUnauthorizedError:
            # Not refused: what was to be sent is to be sent once the token is right again.
            self.locked_out.set()
            raise Unreachable("Telegram does not know this bot's token") from None
        except TelegramAPIError as exc:
            raise self._ours(exc) from None
        except (ClientDecodeError, UnicodeDecodeError, TypeError):
            # TypeError: aiogram looks for a word in a description that an error may lack.
            raise Unreachable("Telegram's answer could not be read") from None
        except (OSError, ValueError) as exc:
            raise Unreachable(self._safe(f"{type(exc).__name__}: {exc}")) from None
        if result is None:
            raise Unreachable("Telegram's answer was empty")
        return result

    async def fetch(self, file_id: str, most: int) -> bytes:
        """Return a file's bytes.

        Raises:
            FileUnavailable: It is larger than ``most`` or than bots may fetch, or it is gone.
            Flooded: Too many calls.
            Unreachable: Another try may succeed.
        """
        try:
            file = await self(GetFile(file_id=file_id))
        except Refused as exc:
            if "too big" in str(exc):
                raise too_large(MOST_DOWNLOAD) from None
            raise FileUnavailable("Telegram does not have this file any more") from exc
        if file.file_path is None:
            raise FileUnavailable("Telegram does not give this file to bots")
        if file.file_size is not None and file.file_size > most:
            raise too_large(most)
        return await self._download(file.file_path, most)

    async def _download(self, path: str, most: int) -> bytes:
        url = self._session.api.file_url(self._bot.token, path)
        data = bytearray()
        try:
            async with aclosing(
                self._session.stream_content(url, timeout=_DOWNLOAD_SECONDS)
            ) as chunks:
                async for chunk in chunks:
                    data += chunk
                    if len(data) > most:
                        raise too_large(most)
        except aiohttp.ClientResponseError as exc:
            if exc.status < 500:
                raise FileUnavailable(
                    f"Telegram did not give the file (HTTP status {exc.status})"
                ) from None
            raise Unreachable(f"Telegram's file server answered {exc.status}") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise Unreachable(self._safe(f"{type(exc).__name__}: {exc}")) from None
        return bytes(data)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _ours(self, exc: TelegramAPIError) -> ScreenError:
        if not exc.message:
            return Unreachable("Telegram gave an error without a word on it")
        text = self._safe(exc.message)
        match exc:
            case TelegramRetryAfter(retry_after=seconds):
                return Flooded(float(seconds))
            case TelegramMigrateToChat(migrate_to_chat_id=chat_id):
                return Moved(chat_id)
            case TelegramEntityTooLarge() | TelegramForbiddenError():
                return Refused(text)
            case TelegramConflictError():
                return Conflict(text)
            case TelegramNotFound():
                return MethodUnknown(text)
            case TelegramNetworkError() | TelegramServerError():
                return Unreachable(text)
            case TelegramBadRequest():
                return _bad_request(text)
        # A flood without parameters has no class of its own in aiogram.
        if "too many requests" in text.lower():
            return Flooded(_FLOOD_SECONDS)
        return Refused(text)

    def _safe(self, text: str) -> str:
        return text.replace(self._secret, "…")


def too_large(most: int) -> FileUnavailable:
    """Return the word on a file of more than ``most`` bytes."""
    if most >= MOST_DOWNLOAD:
        return FileUnavailable("it is larger than 20 MB, which is the most Telegram gives to bots")
    return FileUnavailable(f"it is larger than {most / _MEGABYTE:.3g} MB")


def _bad_request(text: str) -> ScreenError:
    said = text.lower()
    if "message is not modified" in said:
        return Unchanged(text)
    if any(words in said for words in _GONE):
        return MessageGone(text)
    if any(words in said for words in _FORMAT):
        return FormatRefused(text)
    if "method not found" in said or "method is not available" in said:
        return MethodUnknown(text)
    return Refused(text)
