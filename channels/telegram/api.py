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
from aiogram.exceptions import ClientDecodeError, TelegramAPIError
from aiogram.methods import GetFile, TelegramMethod
from aiogram.utils.token import TokenValidationError

from bot.bus import ChannelRefused, FileUnavailable
from channels.bounds import bound_answers
from channels.delivery.screen import Refused, Unreachable
from channels.telegram.refusals import LockedOut, Unread, meaning

TOKEN_SETTING = "TAPEBOT_TELEGRAM_TOKEN"  # noqa: S105 (its name)
"""The setting that holds the token."""

MOST_DOWNLOAD = 20 * 1024 * 1024
"""Bytes that Telegram gives to bots: https://core.telegram.org/bots/api#getfile."""

MOST_UPLOAD = 50 * 1024 * 1024
"""Bytes that it takes from bots: https://core.telegram.org/bots/api#senddocument."""

UPLOAD_SECONDS = 300
_MEGABYTE = 1024 * 1024
_CALL_SECONDS = 30
_DOWNLOAD_SECONDS = 300

ResultT = TypeVar("ResultT")


class _Session(AiohttpSession):
    async def create_session(self) -> aiohttp.ClientSession:
        session = await super().create_session()
        bound_answers(session)
        return session

    async def close(self) -> None:
        # aiohttp waits for its connections itself; aiogram would wait a quarter of a second more.
        if self._session is not None:
            await self._session.close()


class Api:
    """One bot's calls of the Bot API.

    Args:
        token: The bot's token.
        base: Address of a Bot API server; None for Telegram's own.

    Attributes:
        locked_out: Set once Telegram said that it does not know the token.

    Raises:
        ChannelRefused: The token does not look like one.
    """

    def __init__(self, token: str, base: str | None) -> None:
        server = PRODUCTION if base is None else TelegramAPIServer.from_base(base)
        self._session = _Session(api=server)
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
            ScreenError: It failed, also in the ways of ``channels.telegram.refusals``.
        """
        try:
            result: ResultT | None = await self._bot(method, request_timeout=int(seconds))
        except TelegramAPIError as exc:
            error = meaning(exc, self._safe(exc.message or ""), method)
            if isinstance(error, LockedOut):
                self.locked_out.set()
            raise error from None
        except ClientDecodeError as exc:
            if isinstance(exc.data, dict) and exc.data.get("ok") is True:
                raise Unread from None
            raise Unreachable("Telegram's answer could not be read") from None
        except (UnicodeDecodeError, TypeError):
            # TypeError: aiogram looks for a word in a description that an error may lack.
            raise Unreachable("Telegram's answer could not be read") from None
        except (OSError, ValueError) as exc:
            raise Unreachable(self._safe(f"{type(exc).__name__}: {exc}")) from None
        if result is None:
            raise Unread
        return result

    def known_again(self) -> None:
        """Forget that the token was not known."""
        self.locked_out = anyio.Event()

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

    def _safe(self, text: str) -> str:
        return text.replace(self._secret, "…")


def too_large(most: int) -> FileUnavailable:
    """Return the word on a file of more than ``most`` bytes."""
    if most >= MOST_DOWNLOAD:
        return FileUnavailable("it is larger than 20 MB, which is the most Telegram gives to bots")
    return FileUnavailable(f"it is larger than {most / _MEGABYTE:.3g} MB")
