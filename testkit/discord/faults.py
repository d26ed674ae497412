"""Named faults of the Discord test server."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import anyio

from testkit.discord.backend import DiscordBackend
from testkit.discord.rate_limits import DISCORD_RATE_LIMITS, RateLimit, RestFault

POSTING = ("message.create", "message.edit")
"""Routes by which a bot sends or edits messages."""


class DiscordFaults:
    r"""Faults; each lasts for the given calls or seconds, or until ``heal``."""

    def __init__(self, hub: DiscordBackend) -> None:
        self._hub = hub

    def drop(self, code: int | None = None) -> None:
        """Close every gateway connection with a code; None breaks it without a close frame."""
        self._hub.gateway.drop(code)

    def drop_shard(self, number: int) -> None:
        """Break a shard's connections without a close frame."""
        for session in self._hub.gateway.sessions.values():
            if session.shard[0] == number and session.link is not None:
                session.link.close(None)

    def reconnect(self) -> None:
        """Ask every client to reconnect (op 7)."""
        self._hub.gateway.ask_to_reconnect()

    def invalidate(self, *, resumable: bool = False) -> None:
        """Invalidate every session (op 9)."""
        self._hub.gateway.invalidate(resumable=resumable)

    def mute_heartbeats(self, *, muted: bool = True) -> None:
        """Stop acknowledging heartbeats."""
        self._hub.gateway.faults.heartbeats_acked = not muted

    def refuse_gateway(self, seconds: float = 0.0, *, times: int = 0) -> None:
        """Refuse new gateway connections, for some seconds or a number of times."""
        self._hub.gateway.faults.refused_until = time.monotonic() + seconds
        self._hub.gateway.faults.refusals = times

    def sessions(self, left: int, reset_after: float = 0.0) -> None:
        """Set the session starts that are left today, and the seconds until they are reset."""
        self._hub.sessions_left, self._hub.sessions_after = left, int(reset_after * 1000)

    def pace_sessions(self, apart: float = 5.0, concurrency: int = 1) -> None:
        """Refuse sessions that start within this many seconds of another one in their bucket."""
        rule = self._hub.gateway.session_starts
        rule.interval, rule.concurrency = apart, concurrency

    def down(self, seconds: float) -> None:
        """Take the server down for some seconds: connections break, new ones and calls fail."""
        self._hub.faults.add("break", until=time.monotonic() + seconds, times=math.inf)
        self.refuse_gateway(seconds)
        self.drop()

    def flood(
        self,
        channel: int,
        *,
        requests: int = 1,
        per: float = 1.0,
        routes: Iterable[str] = POSTING,
    ) -> None:
        """Limit the bot's requests in a channel to a number per seconds."""
        for route in routes:
            self._hub.limiter.channels[(route, str(channel))] = RateLimit(requests, per)

    def limit_all(self, requests: int = 50, per: float = 1.0) -> None:
        """Limit all routes together."""
        self._hub.limiter.everywhere = RateLimit(requests, per)

    def real_limits(self) -> None:
        """Apply Discord's rate limits to every route."""
        self._hub.limiter.routes = dict(DISCORD_RATE_LIMITS)
        self.limit_all()

    def limit_once(
        self,
        retry_after: float = 0.2,
        where: str = "",
        *,
        times: float = 1,
        everywhere: bool = False,
    ) -> None:
        """Answer calls with 429 although the rate limit headers allowed them."""
        options = {"where": where, "times": times, "seconds": retry_after}
        self._hub.faults.add("limit", everywhere=everywhere, **options)

    def fail(
        self, status: int = 500, where: str = "", *, times: float = 1, html: bool = False
    ) -> None:
        """Answer calls with an error status, as JSON or as a proxy's HTML page."""
        self._hub.faults.add("status", status=status, where=where, times=times, html=html)

    def lose(self, where: str = "", *, times: float = 1) -> None:
        """Perform calls, but break the connection instead of answering."""
        self._hub.faults.add("lose", where=where, times=times)

    def hang_up(self, where: str = "", *, times: float = 1) -> None:
        """Break the connection without performing the call."""
        self._hub.faults.add("break", where=where, times=times)

    def endless(self, where: str = "", *, packed: bool = False, times: float = 1) -> None:
        """Answer with an endless body without performing the call."""
        self._hub.faults.add("endless", where=where, packed=packed, times=times)

    def shout(self, size: int) -> None:
        """Send every gateway connection a message of about this many bytes."""
        for session in self._hub.gateway.sessions.values():
            if session.link is not None:
                session.link.send({"op": 0, "t": "NOISE", "d": "a" * size})

    def slow(
        self,
        seconds: float = 0.0,
        where: str = "",
        *,
        times: float = math.inf,
        gate: anyio.Event | None = None,
    ) -> RestFault:
        """Delay answers by seconds or until an event is set; return the fault, to count calls."""
        options: dict[str, Any] = {"seconds": seconds, "where": where, "times": times}
        return self._hub.faults.add("slow", gate=gate, **options)

    def heal(self) -> None:
        """End all faults and limits."""
        self._hub.faults.waiting.clear()
        self._hub.limiter.channels.clear()
        self._hub.limiter.routes.clear()
        self.limit_all(1000)
        self.mute_heartbeats(muted=False)
        self.refuse_gateway()
        self.sessions(999)
        self.pace_sessions(0.0)

    @property
    def planned(self) -> list[RestFault]:
        """Faults that have not been used up."""
        return self._hub.faults.waiting
