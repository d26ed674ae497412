"""The border to aiogram: calls in, our errors out.

Rule 1: no text that leaves here holds the token. aiogram and aiohttp put it into addresses, so
network errors are told in our words and without their cause.
Rule 2: nothing here waits out an error or tries again.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

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
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.methods import (
    DeleteMessage,
    EditMessageText,
    GetFile,
    SendDocument,
    SendMessage,
    TelegramMethod,
)
from aiogram.utils.token import TokenValidationError

from bot.bus import ChannelRefused, FileUnavailable
from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
    MessageRejected,
    MessengerError,
    PlatformUnreachable,
    RateLimited,
)
from channels.response_limits import limit_response_size

TOKEN_SETTING = "TAPEBOT_TELEGRAM_TOKEN"  # noqa: S105 (its name)
"""The setting that holds the token."""

MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024
"""Bytes that Telegram gives to bots: https://core.telegram.org/bots/api#getfile."""

MAX_UPLOAD_BYTES = 50 * 1024 * 1024
"""Bytes that it takes from bots: https://core.telegram.org/bots/api#senddocument."""

UPLOAD_SECONDS = 300
_MEGABYTE = 1024 * 1024
_CALL_SECONDS = 30
_DOWNLOAD_SECONDS = 300

ResultT = TypeVar("ResultT")


class _Session(AiohttpSession):
    async def create_session(self) -> aiohttp.ClientSession:
        session = await super().create_session()
        limit_response_size(session)
        return session

    async def close(self) -> None:
        # aiohttp waits for its connections itself; aiogram would wait a quarter of a second more.
        if self._session is not None:
            await self._session.close()


class BotApiClient:
    """One bot's calls of the Bot API.

    Args:
        token: The bot's token.
        base: Address of a Bot API server; None for Telegram's own.

    Attributes:
        token_rejected: Set once Telegram said that it does not know the token.

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
        self.token_rejected = anyio.Event()

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
            ScreenError: It failed, also in the ways of ``channels.telegram.api``.
        """
        try:
            result: ResultT | None = await self._bot(method, request_timeout=int(seconds))
        except TelegramAPIError as exc:
            error = map_telegram_error(exc, self._safe(exc.message or ""), method)
            if isinstance(error, TokenRejected):
                self.token_rejected.set()
            raise error from None
        except ClientDecodeError as exc:
            if isinstance(exc.data, dict) and exc.data.get("ok") is True:
                raise UnreadableResult from None
            raise PlatformUnreachable("Telegram's answer could not be read") from None
        except (UnicodeDecodeError, TypeError):
            # TypeError: aiogram looks for a word in a description that an error may lack.
            raise PlatformUnreachable("Telegram's answer could not be read") from None
        except (OSError, ValueError) as exc:
            raise PlatformUnreachable(self._safe(f"{type(exc).__name__}: {exc}")) from None
        if result is None:
            raise UnreadableResult
        return result

    def clear_token_rejected(self) -> None:
        """Forget that the token was not known."""
        self.token_rejected = anyio.Event()

    async def download(self, file_id: str, most: int) -> bytes:
        """Return a file's bytes.

        Raises:
            FileUnavailable: It is larger than ``most`` or than bots may fetch, or it is gone.
            Flooded: Too many calls.
            Unreachable: Another try may succeed.
        """
        try:
            file = await self(GetFile(file_id=file_id))
        except MessageRejected as exc:
            if "too big" in str(exc):
                raise file_too_large(MAX_DOWNLOAD_BYTES) from None
            raise FileUnavailable("Telegram does not have this file any more") from exc
        if file.file_path is None:
            raise FileUnavailable("Telegram does not give this file to bots")
        if file.file_size is not None and file.file_size > most:
            raise file_too_large(most)
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
                        raise file_too_large(most)
        except aiohttp.ClientResponseError as exc:
            if exc.status < 500:
                raise FileUnavailable(
                    f"Telegram did not give the file (HTTP status {exc.status})"
                ) from None
            raise PlatformUnreachable(f"Telegram's file server answered {exc.status}") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise PlatformUnreachable(self._safe(f"{type(exc).__name__}: {exc}")) from None
        return bytes(data)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _safe(self, text: str) -> str:
        return text.replace(self._secret, "…")


def file_too_large(most: int) -> FileUnavailable:
    """Return the word on a file of more than ``most`` bytes."""
    if most >= MAX_DOWNLOAD_BYTES:
        return FileUnavailable("it is larger than 20 MB, which is the most Telegram gives to bots")
    return FileUnavailable(f"it is larger than {most / _MEGABYTE:.3g} MB")


_FLOOD_SECONDS = 5.0

_GONE = (
    "message to edit not found",
    "message can't be edited",
    "message to delete not found",
    "message can't be deleted",
    "message_id_invalid",
    "there is no text in the message to edit",
)
_TARGET_GONE = (
    "message to be replied not found",
    "message to reply not found",
    "replied message not found",
    "reply message not found",
    "reply_message_id_invalid",
)
_TOPIC_GONE = ("message thread not found", "topic_deleted")
_FORMAT = (
    "can't parse entities",
    "entity",
    "entities",
    "message is too long",
    "message_too_long",
    "text must be non-empty",
    "message text is empty",
)


class MessageNotModified(MessengerError):
    """An edit that changes nothing."""


class UpdatesConflict(PlatformUnreachable):
    """Somebody else gets this bot's updates; the text is Telegram's."""


class TokenRejected(PlatformUnreachable):
    """Telegram does not know the token, or says so.

    Not refused: what was to be sent is to be sent once the token is right again.
    """

    def __init__(self) -> None:
        super().__init__("Telegram does not know this bot's token")


class MethodNotFound(MessageRejected):
    """The server does not have this method."""


class UnreadableResult(MessageRejected):
    """Telegram did it, and what it answered could not be read: another try would do it twice."""

    def __init__(self) -> None:
        super().__init__("Telegram took it, but what it answered could not be read")


class ChatMigrated(MessengerError):
    """The group became a supergroup.

    Attributes:
        chat_id: Its id from now on.
    """

    def __init__(self, chat_id: int) -> None:
        super().__init__(f"the group is chat {chat_id} now")
        self.chat_id = chat_id


_SIMPLE: tuple[tuple[type[TelegramAPIError], type[MessengerError]], ...] = (
    (TelegramConflictError, UpdatesConflict),
    (TelegramNotFound, MethodNotFound),
    (TelegramEntityTooLarge, MessageRejected),  # a kind of network error to aiogram
    (TelegramNetworkError, PlatformUnreachable),
    (TelegramServerError, PlatformUnreachable),
)


def map_telegram_error(
    exc: TelegramAPIError, text: str, method: TelegramMethod[Any]
) -> MessengerError:
    """Return what an error of aiogram's means.

    Args:
        exc: The error.
        text: Its words, without the token; empty where it has none.
        method: What was asked.
    """
    if isinstance(exc, TelegramUnauthorizedError):
        return TokenRejected()
    if not text:
        return PlatformUnreachable("Telegram gave an error without a word on it")
    match exc:
        case TelegramRetryAfter(retry_after=seconds):
            return RateLimited(float(seconds))
        case TelegramMigrateToChat(migrate_to_chat_id=chat_id):
            return ChatMigrated(chat_id)
        case TelegramBadRequest():
            return _bad_request(text, method)
    for theirs, ours in _SIMPLE:
        if isinstance(exc, theirs):
            return ours(text)
    # A flood without parameters has no class of its own in aiogram.
    if "too many requests" in text.lower():
        return RateLimited(_FLOOD_SECONDS)
    return MessageRejected(text)


def _bad_request(text: str, method: TelegramMethod[Any]) -> MessengerError:
    said = text.lower()

    def says(words: tuple[str, ...]) -> bool:
        return any(one in said for one in words)

    if "message is not modified" in said:
        return MessageNotModified(text)
    if isinstance(method, EditMessageText | DeleteMessage) and says(_GONE):
        return MessageGone(text)
    if isinstance(method, SendMessage | SendDocument):
        if method.reply_parameters is not None and says(_TARGET_GONE):
            return MessageGone(text)
        if method.message_thread_id is not None and says(_TOPIC_GONE):
            return MessageRejected(
                f"the topic is not there any more, or the bot cannot see it ({text})"
            )
    if says(_FORMAT):
        return FormattingRejected(text)
    if "method not found" in said or "method is not available" in said:
        return MethodNotFound(text)
    return MessageRejected(text)


@dataclass(frozen=True, slots=True)
class TelegramTiming:
    """Waits, which tests make shorter.

    Attributes:
        poll: A call for updates is held open by the server until there is one.
        message_group_wait: After a part of an album or of a long text, for the next part.
        first_retry: Before the second try of what failed; doubled with every try.
        longest_retry: The most between two tries.
        poll: Between two looks whether the webhook is in place.
    """

    poll: int = 25
    message_group_wait: float = 0.8
    first_retry: float = 1.0
    longest_retry: float = 60.0
    webhook_check_interval: float = 60.0


class Backoff:
    """Waits between tries, each time longer.

    Args:
        timing: The first and the longest.
    """

    def __init__(self, timing: TelegramTiming) -> None:
        self._timing = timing
        self._next = timing.first_retry

    async def wait(self, least: float = 0.0) -> None:
        """Wait before the next try, at least as long as the platform asked for."""
        seconds, self._next = self._next, min(2 * self._next, self._timing.longest_retry)
        await anyio.sleep(max(seconds, least))

    def reset(self) -> None:
        """Begin anew: the last try was good."""
        self._next = self._timing.first_retry
