"""What discord.py raises, as delivery's errors.

The codes are those of
https://discord.com/developers/docs/topics/opcodes-and-status-codes#json-json-error-codes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import aiohttp
import anyio
import discord

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
"""A reply wants the permission to read the history, and a message that can be replied to."""
_EMPTY_MESSAGE = 50006
# Not the bot's own message; no more edits of a message that is older than an hour.
_NOT_EDITABLE = {UNKNOWN_MESSAGE, 50005, 30046}
_BANNED_SECONDS = 60.0


@contextmanager
def map_discord_errors() -> Iterator[None]:
    """Raise what goes wrong inside as a ``ScreenError``."""
    try:
        yield
    except MessengerError:
        raise
    except discord.RateLimited as flood:
        raise RateLimited(flood.retry_after) from flood
    except discord.HTTPException as error:
        raise _answered(error) from error
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise PlatformUnreachable(f"Discord cannot be reached: {type(error).__name__}") from error
    except RuntimeError as error:
        # aiohttp's word for a session that was closed while the call was on its way.
        if "closed" not in str(error).lower():
            raise
        raise PlatformUnreachable("the connection to Discord was given up") from error


def _answered(error: discord.HTTPException) -> MessengerError:
    text = str(error)
    if error.status == 429:
        # Without the headers of a rate limit: Discord's proxy has shut the address out for a while.
        return RateLimited(_retry_after(error))
    if error.status >= 500 or error.status == 401:
        # A token that is refused ends the gateway's connection too, and that says so.
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
    """Make a call until Discord can be reached, with longer and longer pauses.

    Args:
        what: Names it in the log.
        call: Makes it; may be made many times.

    Raises:
        ScreenError: Discord was reached, and refused.
    """
    pause = MIN_BACKOFF_SECONDS
    while True:
        try:
            with map_discord_errors():
                return await call()
        except RateLimited as flood:
            wait = flood.seconds
        except PlatformUnreachable as error:
            wait, pause = pause, min(pause * 2, MAX_BACKOFF_SECONDS)
            logger.info("%s waits %g s: %s", what, wait, error)
        await anyio.sleep(wait)
