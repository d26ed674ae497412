"""Faults of the Discord test server: of REST calls, by method and path, and of the gateway."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass, field
from typing import Any

import anyio
from aiohttp import web

from testkit.discord.gateway import Gateway


def json_answer(
    data: Any, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Return JSON with the exact content type that clients compare with, without a charset."""
    body = json.dumps(data).encode()
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


@dataclass(slots=True)
class RestFault:
    """A fault of the REST calls whose method and path match a pattern."""

    kind: str
    where: str = ""
    times: float = 1
    status: int = 500
    seconds: float = 0.0
    gate: anyio.Event | None = None
    packed: bool = False

    def answer(self) -> web.Response:
        """Return an error, or Discord's 429 for a shared limit with the headers of its proxies."""
        if self.kind == "status":
            body = {"message": f"{self.status}: Internal Server Error", "code": 0}
            return json_answer(body, self.status)
        told = {"message": "You are being rate limited.", "retry_after": round(self.seconds, 3)}
        headers = {"Retry-After": str(math.ceil(self.seconds)), "Via": "1.1 google"}
        headers["X-RateLimit-Scope"] = "shared"
        return json_answer(told | {"global": False}, 429, headers)


@dataclass(slots=True)
class DiscordFaults:
    """Faults; each lasts for the given calls or seconds, or until ``heal``."""

    gateway: Gateway
    planned: list[RestFault] = field(default_factory=list)

    def take(self, method: str, path: str) -> RestFault | None:
        """Return the fault for this call, and count it; called by the server."""
        self.planned = [each for each in self.planned if each.times > 0]
        for fault in self.planned:
            if re.search(fault.where, f"{method} {path}"):
                fault.times -= 1
                return fault
        return None

    def _add(self, kind: str, where: str, **options: Any) -> None:
        self.planned.append(RestFault(kind, where, **options))

    def drop(self, code: int | None = None) -> None:
        """Close every gateway connection with a code; None breaks it without a close frame."""
        self.gateway.drop(code)

    def drop_shard(self, number: int) -> None:
        """Break a shard's connections without a close frame."""
        for session in self.gateway.sessions.values():
            if session.shard[0] == number and session.link is not None:
                session.link.close(None)

    def reconnect(self) -> None:
        """Ask every client to reconnect (op 7)."""
        self.gateway.ask_to_reconnect()

    def refuse_gateway(self, seconds: float = 0.0, *, times: int = 0) -> None:
        """Refuse new gateway connections, for some seconds or a number of times."""
        self.gateway.refused_until = time.monotonic() + seconds
        self.gateway.refusals = times

    def limit_once(self, retry_after: float, where: str) -> None:
        """Answer a call with 429, unannounced."""
        self._add("limit", where, seconds=retry_after)

    def fail(self, status: int = 500, where: str = "", *, times: float = 1) -> None:
        """Answer calls with an error status."""
        self._add("status", where, status=status, times=times)

    def lose(self, where: str, *, times: float = 1) -> None:
        """Perform calls, but break the connection instead of answering."""
        self._add("lose", where, times=times)

    def hang_up(self, where: str, *, times: float = 1) -> None:
        """Break the connection without performing the call."""
        self._add("break", where, times=times)

    def endless(self, where: str, *, packed: bool) -> None:
        """Answer with an endless body without performing the call."""
        self._add("endless", where, packed=packed)

    def slow(self, where: str, *, gate: anyio.Event, times: float = math.inf) -> None:
        """Delay answers until an event."""
        self._add("slow", where, gate=gate, times=times)

    def shout(self, size: int) -> None:
        """Send every gateway connection a message of about this many bytes."""
        for session in self.gateway.sessions.values():
            if session.link is not None:
                session.link.send({"op": 0, "t": "NOISE", "d": "a" * size})

    def heal(self) -> None:
        """End all faults."""
        self.planned.clear()
        self.refuse_gateway()
