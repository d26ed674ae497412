"""What discord.py raises, as delivery's errors.

The codes are those of
https://discord.com/developers/docs/topics/opcodes-and-status-codes#json-json-error-codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import discord

from channels.delivery.screen import (
    Flooded,
    FormatRefused,
    MessageGone,
    Refused,
    ScreenError,
    Unreachable,
)

UNKNOWN_MESSAGE = 10008
UNKNOWN_WEBHOOK = 10015
INVALID_WEBHOOK_TOKEN = 50027
INVALID_FORM = 50035
NOT_TO_BE_REPLIED_TO = {160002, 160009, 160010}
"""A reply wants the permission to read the history, and a message that can be replied to."""
_EMPTY_MESSAGE = 50006
# Not the bot's own message; no more edits of a message that is older than an hour.
_NOT_EDITABLE = {UNKNOWN_MESSAGE, 50005, 30046}
_BANNED_SECONDS = 60.0


@contextmanager
def mapped() -> Iterator[None]:
    """Raise what goes wrong inside as a ``ScreenError``."""
    try:
        yield
    except ScreenError:
        raise
    except discord.RateLimited as flood:
        raise Flooded(flood.retry_after) from flood
    except discord.HTTPException as error:
        raise _answered(error) from error
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise Unreachable(f"Discord cannot be reached: {type(error).__name__}") from error
    except RuntimeError as error:
        # aiohttp's word for a session that was closed while the call was on its way.
        if "closed" not in str(error).lower():
            raise
        raise Unreachable("the connection to Discord was given up") from error


def _answered(error: discord.HTTPException) -> ScreenError:
    text = str(error)
    if error.status == 429:
        # Without the headers of a rate limit: Discord's proxy has shut the address out for a while.
        return Flooded(_retry_after(error))
    if error.status >= 500 or error.status == 401:
        # A token that is refused ends the gateway's connection too, and that says so.
        return Unreachable(text)
    if error.code in _NOT_EDITABLE:
        return MessageGone(text)
    if error.code in {INVALID_FORM, _EMPTY_MESSAGE}:
        return FormatRefused(text)
    return Refused(text)


def _retry_after(error: discord.HTTPException) -> float:
    headers = getattr(error.response, "headers", {})
    try:
        return max(1.0, float(headers.get("Retry-After", _BANNED_SECONDS)))
    except ValueError:
        return _BANNED_SECONDS
