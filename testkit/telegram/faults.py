"""Faults between a bot and the Telegram test server.

Rule 1: a fault applies to the calls that match it, for a number of times.
Rule 2: without a method it applies to every call except ``getUpdates``, so that a waiting poll does
    not use it up; ``"*"`` applies to all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from testkit.telegram.records import Json
from testkit.telegram.validation import BotApiError

FaultKind = Literal["refuse", "html", "hang_up", "slow", "garbage", "odd", "endless"]
_SHOWING = ("sendMessage", "editMessageText", "editMessageReplyMarkup")


@dataclass(slots=True)
class BotApiFault:
    """A fault of Bot API calls."""

    kind: FaultKind
    method: str | None = None
    chat: int | None = None
    text: str = ""
    bot: int | None = None
    times: int = 1
    status: int = 500
    description: str = "Internal Server Error"
    retry_after: int | None = None
    packed: bool = False
    seconds: float = 0.0
    gate: anyio.Event | None = None

    def meets(self, bot: int, method: str, chat: int | None, params: Json) -> bool:
        """Return whether a call matches."""
        if self.times <= 0 or (self.method is None and method == "getUpdates"):
            return False
        return (
            self.method in (None, "*", method)
            and self.chat in (None, chat)
            and self.bot in (None, bot)
            and self.text in str(params.get("text", ""))
        )

    def refusal(self) -> BotApiError:
        """Return the error of ``refuse``."""
        extra = {} if self.retry_after is None else {"retry_after": self.retry_after}
        return BotApiError(self.status, self.description, extra)


@dataclass(slots=True)
class TelegramFaults:
    """The active faults; every method may be called while bots run."""

    _faults: list[BotApiFault] = field(default_factory=list)
    _penalties: dict[int | None, float] = field(default_factory=dict)

    def add(self, fault: BotApiFault) -> BotApiFault:
        """Activate a fault; setting its ``times`` to 0 ends it."""
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """End all faults, flood limits and penalties."""
        for fault in self._faults:
            if fault.gate is not None:
                fault.gate.set()
        self._faults.clear()
        self._penalties.clear()

    def flood_once(
        self, chat: int | None = None, retry_after: int = 1, times: int = 1
    ) -> BotApiFault:
        """Answer the next calls in a chat with 429."""
        why = f"Too Many Requests: retry after {retry_after}"
        return self.refuse(429, why, chat=chat, times=times, retry_after=retry_after)

    def refuse(self, status: int, description: str, **calls: Any) -> BotApiFault:
        """Answer the next of these calls with an API error."""
        return self.add(BotApiFault("refuse", status=status, description=description, **calls))

    def html(self, status: int = 502, **calls: Any) -> BotApiFault:
        """Answer like a broken proxy, with an HTML error page."""
        return self.add(BotApiFault("html", status=status, **calls))

    def hang_up(self, **calls: Any) -> BotApiFault:
        """Break the connection without performing the call."""
        return self.add(BotApiFault("hang_up", **calls))

    def garbage(self, **calls: Any) -> BotApiFault:
        """Perform the call, then answer with truncated JSON."""
        return self.add(BotApiFault("garbage", **calls))

    def odd(self, *, method: str | None = "sendMessage", times: int = 1) -> BotApiFault:
        """Perform the call, then answer with values unknown to clients; a message keeps its id."""
        return self.add(BotApiFault("odd", method=method, times=times))

    def endless(self, **calls: Any) -> BotApiFault:
        """Answer with an endless body, compressed if ``packed``, without performing the call."""
        return self.add(BotApiFault("endless", **calls))

    def slow(self, seconds: float = 0.0, **calls: Any) -> BotApiFault:
        """Delay the next calls by a time or until an event, their ``gate``, is set."""
        return self.add(BotApiFault("slow", seconds=seconds, **calls))

    def take(self, bot: int, method: str, chat: int | None, params: Json) -> BotApiFault | None:
        """Return the fault for this call, if any, and count it; called by the server."""
        for fault in self._faults:
            if fault.meets(bot, method, chat, params):
                fault.times -= 1
                if fault.retry_after is not None:
                    self._penalties[chat] = time.monotonic() + fault.retry_after
                return fault
        return None

    def is_before_retry_after(self, method: str, chat: int | None) -> bool:
        """Return whether a call that sends or edits comes before ``retry_after`` has passed."""
        limits = (self._penalties.get(chat, 0.0), self._penalties.get(None, 0.0))
        return method in _SHOWING and time.monotonic() < max(limits)
