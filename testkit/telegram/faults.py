"""Faults between a bot and the Telegram test server.

Rule 1: a fault applies to the calls that match it, for a number of times.
Rule 2: without a method it applies to every call except ``getUpdates``, so that a waiting poll does
    not use it up.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import anyio

from testkit.telegram.validation import BotApiError

_SHOWING = ("sendMessage", "editMessageText", "editMessageReplyMarkup")


@dataclass(slots=True)
class BotApiFault:
    """A fault of Bot API calls; the kinds are the methods of ``TelegramFaults``."""

    kind: str
    method: str | None = None
    chat: int | None = None
    times: int = 1
    status: int = 500
    description: str = "Internal Server Error"
    retry_after: int | None = None
    packed: bool = False
    seconds: float = 0.0
    gate: anyio.Event | None = None

    def meets(self, method: str, chat: int | None) -> bool:
        if self.times <= 0 or (self.method is None and method == "getUpdates"):
            return False
        return self.method in (None, method) and self.chat in (None, chat)

    def refusal(self) -> BotApiError:
        extra = {} if self.retry_after is None else {"retry_after": self.retry_after}
        return BotApiError(self.status, self.description, extra)

    async def pause(self) -> None:
        await (self.gate.wait() if self.gate is not None else anyio.sleep(self.seconds))


@dataclass(slots=True)
class TelegramFaults:
    """The active faults; every method may be called while bots run."""

    _faults: list[BotApiFault] = field(default_factory=list)
    _penalties: dict[int | None, float] = field(default_factory=dict)

    def _add(self, kind: str, **calls: Any) -> BotApiFault:
        self._faults.append(BotApiFault(kind, **calls))
        return self._faults[-1]

    def clear(self) -> None:
        """End all faults, flood limits and penalties."""
        for fault in self._faults:
            if fault.gate is not None:
                fault.gate.set()
        self._faults.clear()
        self._penalties.clear()

    def flood_once(self, chat: int, retry_after: int) -> BotApiFault:
        """Answer the next call in a chat with 429."""
        why = f"Too Many Requests: retry after {retry_after}"
        return self.refuse(429, why, chat=chat, retry_after=retry_after)

    def refuse(self, status: int, description: str, **calls: Any) -> BotApiFault:
        """Answer the next of these calls with an API error."""
        return self._add("refuse", status=status, description=description, **calls)

    def html(self, status: int = 502, **calls: Any) -> BotApiFault:
        """Answer like a broken proxy, with an HTML error page."""
        return self._add("html", status=status, **calls)

    def hang_up(self, **calls: Any) -> BotApiFault:
        """Break the connection without performing the call."""
        return self._add("hang_up", **calls)

    def garbage(self, **calls: Any) -> BotApiFault:
        """Perform the call, then answer with truncated JSON."""
        return self._add("garbage", **calls)

    def odd(self, *, times: int) -> BotApiFault:
        """Send messages, then answer with values unknown to clients; a message keeps its id."""
        return self._add("odd", method="sendMessage", times=times)

    def endless(self, **calls: Any) -> BotApiFault:
        """Answer with an endless body, compressed if ``packed``, without performing the call."""
        return self._add("endless", **calls)

    def slow(self, seconds: float = 0.0, **calls: Any) -> BotApiFault:
        """Delay the next calls by a time or until an event, their ``gate``, is set."""
        return self._add("slow", seconds=seconds, **calls)

    def take(self, method: str, chat: int | None) -> BotApiFault | None:
        """Return the fault for this call, if any, and count it; called by the server."""
        for fault in self._faults:
            if fault.meets(method, chat):
                fault.times -= 1
                if fault.retry_after is not None:
                    self._penalties[chat] = time.monotonic() + fault.retry_after
                return fault
        return None

    def is_before_retry_after(self, method: str, chat: int | None) -> bool:
        """Return whether a call that sends or edits comes before ``retry_after`` has passed."""
        return method in _SHOWING and time.monotonic() < self._penalties.get(chat, 0.0)
