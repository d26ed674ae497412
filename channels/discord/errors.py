"""Map discord.py errors to ``MessengerError``, and retry calls while Discord is unreachable.

The codes are those of
https://discord.com/developers/docs/topics/opcodes-and-status-codes#json-json-error-codes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import aiohttp
import discord
import stamina

from channels.delivery.messenger import (
    FormattingRejected,
    MessageGone,
    MessageRejected,
    MessengerError,
    PlatformUnreachable,
    RateLimited,
)

UNKNOWN_MESSAGE = 10008
UNKNOWN_WEBHOOK = 10015
INVALID_WEBHOOK_TOKEN = 50027
INVALID_FORM_BODY = 50035
CANNOT_REPLY_CODES = {160002, 160009, 160010}
"""The bot may not read the history, or the message cannot be replied to."""
_EMPTY_MESSAGE = 50006
# The message is not the bot's, or Discord allows no more edits of one that is older than an hour.
_NOT_EDITABLE = {UNKNOWN_MESSAGE, 50005, 30046}
_BANNED_SECONDS = 60.0


@contextmanager
def map_discord_errors() -> Iterator[None]:
    """Map errors of discord.py and aiohttp inside the block to ``MessengerError``."""
    try:
        yield
    except MessengerError:
        raise
    except discord.RateLimited as flood:
        raise RateLimited(flood.retry_after) from flood
    except discord.HTTPException as error:
        raise _answered(error) from error
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        what = f"Discord cannot be reached: {type(error).__name__}"  # for the log
        raise PlatformUnreachable(what) from error
    except RuntimeError as error:
        # aiohttp raises this if the session was closed during the call.
        if "closed" not in str(error).lower():
            raise
        raise PlatformUnreachable("the connection to Discord was closed") from error  # for the log


def _answered(error: discord.HTTPException) -> MessengerError:
    text = str(error)
    if error.status == 429:
        # Without rate-limit headers, Discord's proxy has blocked the IP address for a while.
        return RateLimited(_retry_after(error))
    if error.status >= 500 or error.status == 401:
        # An invalid token also ends the gateway connection, which reports it.
        return PlatformUnreachable(text)
    if error.code in _NOT_EDITABLE:
        return MessageGone(text)
    if error.code in {INVALID_FORM_BODY, _EMPTY_MESSAGE}:
        return FormattingRejected(text)
    return MessageRejected(text)


def _retry_after(error: discord.HTTPException) -> float:
    headers = getattr(error.response, "headers", {})
    try:
        return max(1.0, float(headers.get("Retry-After", _BANNED_SECONDS)))
    except ValueError:
        return _BANNED_SECONDS


logger = logging.getLogger(__name__)

T = TypeVar("T")

MIN_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0


async def call_with_retries(what: str, call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call with backoff until Discord answers.

    Args:
        what: Names the call in the log.
        call: The call, which may be repeated many times.

    Raises:
        MessengerError: Discord rejected the call.
    """

    def is_temporary(error: Exception) -> bool | float:
        if isinstance(error, RateLimited):
            return error.seconds
        if isinstance(error, PlatformUnreachable):
            logger.info("%s waits: %s", what, error)
            return True
        return False

    async def mapped() -> T:
        with map_discord_errors():
            return await call()

    return await endless_retries(MIN_BACKOFF_SECONDS)(is_temporary, mapped)


def endless_retries(first: float) -> stamina.AsyncRetryingCaller:
    """Return a caller that tries again for ever, with exponential backoff.

    Args:
        first: Seconds between the first two tries.
    """
    return stamina.AsyncRetryingCaller(
        attempts=None,
        timeout=None,
        wait_initial=first,
        wait_max=MAX_BACKOFF_SECONDS,
        wait_jitter=0,
    )
