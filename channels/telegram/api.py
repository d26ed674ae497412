"""A Bot API client that wraps aiogram and maps its errors to ``MessengerError``.

Rule 1: no error text holds the token. aiogram and aiohttp put it into URLs, so network errors are
worded here and raised without their cause.
Rule 2: nothing here waits for a rate limit or retries; ``Backoff`` is for the callers that do.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
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
    Response,
    SendDocument,
    SendMessage,
    TelegramMethod,
)
from aiogram.utils.token import TokenValidationError

from bot.bus import BusError, ChannelRefused, FileUnavailable
from bot.core.i18n import _
from bot.core.reasons import Reason
from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
    MessageRejected,
    MessengerError,
    PlatformUnreachable,
    RateLimited,
)
from channels.intake import SentFile
from channels.response_limits import limit_response_size
from channels.telegram.moved_chats import MovedChats

TOKEN_SETTING = "TAPEBOT_TELEGRAM_TOKEN"  # noqa: S105 (its name)
"""The name of the setting that holds the token."""

MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024
"""Bytes of a file that bots may download: https://core.telegram.org/bots/api#getfile."""

MAX_UPLOAD_BYTES = 50 * 1024 * 1024
"""Bytes of a file that bots may upload: https://core.telegram.org/bots/api#senddocument."""

UPLOAD_SECONDS = 300
_MEGABYTE = 1024 * 1024
_CALL_SECONDS = 30
_FETCH_TRIES = 4
_DOWNLOAD_SECONDS = 300

ResultT = TypeVar("ResultT")


@cache
def _response_type(returning: Any) -> Any:
    """Keep aiogram's model of a response: pydantic forgets it when unused, and making it takes 2 ms."""
    return Response[returning]


class _Session(AiohttpSession):
    def check_response(
        self, bot: Bot, method: TelegramMethod[Any], status_code: int, content: str
    ) -> Response[Any]:
        _response_type(method.__returning__)
        return super().check_response(bot, method, status_code, content)

    async def create_session(self) -> aiohttp.ClientSession:
        session = await super().create_session()
        limit_response_size(session)
        return session

    async def close(self) -> None:
        # aiohttp waits for its connections itself; aiogram would sleep another quarter of a second.
        if self._session is not None:
            await self._session.close()


@dataclass(frozen=True, slots=True)
class TelegramTiming:
    """Timeouts and intervals in seconds; tests shorten them.

    Attributes:
        poll: How long the server holds a ``getUpdates`` call open while there is no update.
        message_group_wait: How long to wait for the next part of an album or of a long text.
        first_retry: Delay before the second try; doubled with every try.
        longest_retry: The longest delay between two tries.
        webhook_check_interval: Time between two checks that the webhook is registered.
        press_wait: How long a pressed button may turn while its result is awaited.
    """

    poll: int = 25
    message_group_wait: float = 0.8
    first_retry: float = 1.0
    longest_retry: float = 60.0
    webhook_check_interval: float = 60.0
    press_wait: float = 3.0


class Backoff:
    """Wait between tries with exponential backoff."""

    def __init__(self, timing: TelegramTiming) -> None:
        self._timing = timing
        self._next = timing.first_retry

    async def wait(self, least: float = 0.0) -> None:
        """Wait before the next try, for at least ``least`` seconds."""
        seconds, self._next = self._next, min(2 * self._next, self._timing.longest_retry)
        await anyio.sleep(max(seconds, least))

    def reset(self) -> None:
        """Start again with the first delay, after a success."""
        self._next = self._timing.first_retry


class BotApiClient:
    """Call the Bot API for one bot.

    Attributes:
        token_rejected: Set once Telegram answers that it does not know the token.

    Raises:
        ChannelRefused: The token is malformed.
    """

    def __init__(
        self, token: str, base: str | None, moved: MovedChats, timing: TelegramTiming
    ) -> None:
        self.moved = moved
        self._timing = timing
        server = PRODUCTION if base is None else TelegramAPIServer.from_base(base)
        self._session = _Session(api=server)
        try:
            self._bot = Bot(token, session=self._session)
        except TokenValidationError:
            raise ChannelRefused(
                _(
                    "{setting} is not a bot token; @BotFather shows tokens such as 123456:ABC-DEF",
                    setting=TOKEN_SETTING,
                )
            ) from None
        self._secret = token.partition(":")[2]
        self.token_rejected = anyio.Event()

    @property
    def bot_id(self) -> int:
        """The bot's id, which is the first part of the token."""
        return self._bot.id

    async def __call__(
        self, method: TelegramMethod[ResultT], *, seconds: float = _CALL_SECONDS
    ) -> ResultT:
        """Call a method and return its result.

        Raises:
            MessengerError: The call failed; see also the subclasses in this module.
        """
        chat = getattr(method, "chat_id", None)
        if isinstance(chat, int):
            method = method.model_copy(update={"chat_id": self.moved.current(chat)})
        try:
            result: ResultT | None = await self._bot(method, request_timeout=int(seconds))
        except TelegramAPIError as exc:
            error = map_telegram_error(exc, self._safe(exc.message or ""), method)
            if isinstance(error, TokenRejected):
                self.token_rejected.set()
            if isinstance(error, ChatMigrated) and isinstance(chat, int):
                return await self._call_moved(method, chat, error, seconds)
            raise error from None
        except ClientDecodeError as exc:
            if isinstance(exc.data, dict) and exc.data.get("ok") is True:
                raise UnreadableResult from None
            raise PlatformUnreachable(
                "Telegram's answer could not be read"
            ) from None  # for the log
        except (UnicodeDecodeError, TypeError):
            # TypeError: aiogram searches the description of an error, which may be missing.
            raise PlatformUnreachable(
                "Telegram's answer could not be read"
            ) from None  # for the log
        except (OSError, ValueError) as exc:
            raise PlatformUnreachable(self._safe(f"{type(exc).__name__}: {exc}")) from None
        if result is None:
            raise UnreadableResult
        return result

    async def _call_moved(
        self, method: TelegramMethod[ResultT], chat: int, moved: ChatMigrated, seconds: float
    ) -> ResultT:
        """Call a method in the chat that a group has become; its messages have other ids there."""
        try:
            await self.moved.learn({chat: moved.chat_id})
        except BusError as error:
            raise PlatformUnreachable(str(error)) from error  # it is tried again
        if isinstance(method, EditMessageText | DeleteMessage):
            raise MessageGone(str(moved))
        left = {"reply_parameters": None} if hasattr(method, "reply_parameters") else {}
        return await self(method.model_copy(update={"chat_id": chat, **left}), seconds=seconds)

    def clear_token_rejected(self) -> None:
        """Reset ``token_rejected``: Telegram accepts the token again."""
        self.token_rejected = anyio.Event()

    async def fetch(self, file: SentFile, most: int) -> bytes:
        """Return a file's bytes, with a few retries.

        Raises:
            FileUnavailable: It is larger than ``most`` or than bots may download, or it is gone, or
                Telegram could not be reached.
        """
        allowed = min(most, MAX_DOWNLOAD_BYTES)
        if file.size is not None and file.size > allowed:
            raise file_too_large(allowed)
        pause = Backoff(self._timing)
        for _try in range(_FETCH_TRIES):
            try:
                return await self._fetch_once(file.ref, allowed)
            except RateLimited as flood:
                await pause.wait(flood.seconds)
            except PlatformUnreachable:
                await pause.wait()
        raise FileUnavailable(Reason("file_unreachable", platform="Telegram"))

    async def _fetch_once(self, file_id: str, most: int) -> bytes:
        try:
            file = await self(GetFile(file_id=file_id))
        except MessageRejected as exc:
            if "too big" in str(exc):
                raise file_too_large(MAX_DOWNLOAD_BYTES) from None
            raise FileUnavailable(Reason("file_gone", platform="Telegram")) from exc
        if file.file_path is None:
            raise FileUnavailable(Reason("file_not_given", platform="Telegram"))
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
                answered = f"HTTP {exc.status}"  # for programs
                raise FileUnavailable(
                    Reason("file_not_delivered", platform="Telegram", error=answered)
                ) from None
            what = f"Telegram's file server answered {exc.status}"  # for the log
            raise PlatformUnreachable(what) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            raise PlatformUnreachable(self._safe(f"{type(exc).__name__}: {exc}")) from None
        return bytes(data)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _safe(self, text: str) -> str:
        return text.replace(self._secret, "…")


def file_too_large(most: int) -> FileUnavailable:
    """Return the error for a file of more than ``most`` bytes."""
    if most >= MAX_DOWNLOAD_BYTES:
        return FileUnavailable(Reason("file_over_for_bots", limit=20, platform="Telegram"))
    return FileUnavailable(Reason("file_over", limit=f"{most / _MEGABYTE:.3g}"))


_FLOOD_SECONDS = 5.0

_GONE = (  # for the parser
    "message to edit not found",
    "message can't be edited",
    "message to delete not found",
    "message can't be deleted",
    "message_id_invalid",
    "there is no text in the message to edit",
)
_TARGET_GONE = (  # for the parser
    "message to be replied not found",
    "message to reply not found",
    "replied message not found",
    "reply message not found",
    "reply_message_id_invalid",
)
_TOPIC_GONE = ("message thread not found", "topic_deleted")  # for the parser
_FORMAT = (  # for the parser
    "can't parse entities",
    "entity",
    "entities",
    "message is too long",
    "message_too_long",
    "text must be non-empty",
    "message text is empty",
)


class MessageNotModified(MessengerError):
    """An edit changed nothing."""


class UpdatesConflict(PlatformUnreachable):
    """Another program receives this bot's updates; the text is Telegram's."""


class TokenRejected(PlatformUnreachable):
    """Telegram answers that it does not know the token, which may be temporary.

    Not a ``MessageRejected``: waiting messages are sent once the token is accepted again.
    """

    def __init__(self) -> None:
        super().__init__("Telegram does not accept this bot's token")  # for the log


class MethodNotFound(MessageRejected):
    """The Bot API server does not have this method."""


class UnreadableResult(MessageRejected):
    """Telegram executed the call, but its answer is unreadable; a retry would execute it twice."""

    def __init__(self) -> None:
        super().__init__(Reason("delivery_unconfirmed", platform="Telegram"))


class ChatMigrated(MessengerError):
    """The group became a supergroup.

    Attributes:
        chat_id: The supergroup's id.
    """

    def __init__(self, chat_id: int) -> None:
        super().__init__(f"the group is now chat {chat_id}")  # for the log
        self.chat_id = chat_id


_SIMPLE: tuple[tuple[type[TelegramAPIError], type[MessengerError]], ...] = (
    (TelegramConflictError, UpdatesConflict),
    (TelegramNotFound, MethodNotFound),
    (TelegramEntityTooLarge, MessageRejected),  # a subclass of TelegramNetworkError
    (TelegramNetworkError, PlatformUnreachable),
    (TelegramServerError, PlatformUnreachable),
)


def map_telegram_error(
    exc: TelegramAPIError, text: str, method: TelegramMethod[Any]
) -> MessengerError:
    """Map an aiogram error to a ``MessengerError``."""
    if isinstance(exc, TelegramUnauthorizedError):
        return TokenRejected()
    if not text:
        return PlatformUnreachable("Telegram sent an error without a description")  # for the log
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
    # aiogram has no class for a rate limit without parameters.
    if "too many requests" in text.lower():
        return RateLimited(_FLOOD_SECONDS)
    return MessageRejected(text)


def _bad_request(text: str, method: TelegramMethod[Any]) -> MessengerError:
    said = text.lower()

    def says(words: tuple[str, ...]) -> bool:
        return any(word in said for word in words)

    if "message is not modified" in said:
        return MessageNotModified(text)
    if isinstance(method, EditMessageText | DeleteMessage) and says(_GONE):
        return MessageGone(text)
    if isinstance(method, SendMessage | SendDocument):
        if method.reply_parameters is not None and says(_TARGET_GONE):
            return MessageGone(text)
        if method.message_thread_id is not None and says(_TOPIC_GONE):
            return MessageRejected(Reason("delivery_topic_gone", error=text))
    if says(_FORMAT):
        return FormattingRejected(text)
    return MessageRejected(text)
