"""Display the typing indicator of one chat while the bot is busy."""

from __future__ import annotations

import logging
from typing import Generic

import anyio

from bot.bus import Activity
from channels.delivery.messenger import (
    MessengerApi,
    MessengerError,
    PieceT,
    RateLimited,
    RateLimitState,
)

logger = logging.getLogger(__name__)

_LONGEST = 600.0
"""Seconds without an ``Activity`` after which the bot no longer counts as busy."""


class TypingIndicator(Generic[PieceT]):
    """Repeat the platform's typing indicator while the bot is busy."""

    def __init__(self, messenger: MessengerApi[PieceT], rate_limit: RateLimitState) -> None:
        self._messenger = messenger
        self._rate_limit = rate_limit
        self._state: Activity | None = None
        self._until = 0.0
        self._flooded_until = 0.0
        self._woken = anyio.Event()

    @property
    def is_active(self) -> bool:
        """Whether the bot is busy in this chat."""
        return self._state is not None and anyio.current_time() <= self._until

    def put(self, activity: Activity) -> None:
        """Update the bot's activity."""
        self._state = None if activity.state == "idle" else activity
        self._until = anyio.current_time() + _LONGEST
        self._woken.set()

    def stop(self) -> None:
        """Stop displaying the indicator."""
        self._state = None

    async def run(self) -> None:
        """Display the indicator as needed, until cancelled."""
        while True:
            pause = await self._show() if self.is_active else None
            self._woken = anyio.Event()
            with anyio.move_on_after(pause):
                await self._woken.wait()

    async def _show(self) -> float:
        """Display the indicator once, unless rate limited; return the seconds until the next."""
        if (left := self._flooded_until - anyio.current_time()) > 0:
            return left
        await self._rate_limit.wait()
        state = self._state
        if state is None:
            return 0
        pause = self._messenger.pace(state.address).typing
        try:
            await self._messenger.typing(state.address)
        except RateLimited as flood:
            self._flooded_until = anyio.current_time() + flood.seconds
            return max(pause, flood.seconds)
        except MessengerError as error:
            logger.debug("no typing indicator: %s", error)
        except Exception:  # a failed indicator must not stop the chat's queue
            logger.exception("the typing indicator of %s failed", state.address.session)
            self.stop()
        return pause
