"""Named faults of the Discord test server."""

from __future__ import annotations

import math
import time
from typing import Any

from testkit.discord.backend import DiscordBackend
from testkit.discord.rate_limits import RestFault


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

    def refuse_gateway(self, seconds: float = 0.0, *, times: int = 0) -> None:
        """Refuse new gateway connections, for some seconds or a number of times."""
        self._hub.gateway.refused_until = time.monotonic() + seconds
        self._hub.gateway.refusals = times

    def limit_once(self, retry_after: float = 0.2, where: str = "", *, times: float = 1) -> None:
        """Answer calls with 429, unannounced."""
        self._hub.faults.add("limit", where=where, times=times, seconds=retry_after)

    def fail(self, status: int = 500, where: str = "", **calls: Any) -> None:
        """Answer calls with an error status, as JSON or as a proxy's HTML page (``html``)."""
        self._hub.faults.add("status", status=status, where=where, **calls)

    def lose(self, where: str = "", *, times: float = 1) -> None:
        """Perform calls, but break the connection instead of answering."""
        self._hub.faults.add("lose", where=where, times=times)

    def hang_up(self, where: str = "", *, times: float = 1) -> None:
        """Break the connection without performing the call."""
        self._hub.faults.add("break", where=where, times=times)

    def endless(self, where: str = "", *, packed: bool = False) -> None:
        """Answer with an endless body without performing the call."""
        self._hub.faults.add("endless", where=where, packed=packed)

    def shout(self, size: int) -> None:
        """Send every gateway connection a message of about this many bytes."""
        for session in self._hub.gateway.sessions.values():
            if session.link is not None:
                session.link.send({"op": 0, "t": "NOISE", "d": "a" * size})

    def slow(self, seconds: float = 0.0, where: str = "", **calls: Any) -> RestFault:
        """Delay answers by seconds or until an event, their ``gate``; return the fault."""
        calls = {"times": math.inf} | calls
        return self._hub.faults.add("slow", seconds=seconds, where=where, **calls)

    def heal(self) -> None:
        """End all faults."""
        self._hub.faults.waiting.clear()
        self.refuse_gateway()

    @property
    def planned(self) -> list[RestFault]:
        """Faults that have not been used up."""
        return self._hub.faults.waiting
