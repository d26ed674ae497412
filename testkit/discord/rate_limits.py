"""Rate limits and faults of the Discord test server's REST API.

Discord counts requests in windows, by route and major parameter (channel, guild, webhook). See
https://discord.com/developers/docs/topics/rate-limits.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from dataclasses import dataclass, field
from typing import Any

import anyio
from aiohttp import web


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A number of requests per number of seconds."""

    requests: int
    per: float


@dataclass(slots=True)
class _Window:
    start: float
    used: int = 0


@dataclass(frozen=True, slots=True)
class RateLimitDecision:
    """The result of counting a request against a limit."""

    limit: RateLimit
    bucket: str
    remaining: int
    reset_after: float
    refused: bool
    everywhere: bool = False

    def headers(self) -> dict[str, str]:
        """Return the rate limit headers."""
        if self.everywhere:
            return {"X-RateLimit-Global": "true", "X-RateLimit-Scope": "global"}
        told = {
            "X-RateLimit-Limit": str(self.limit.requests),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": f"{time.time() + self.reset_after:.3f}",
            "X-RateLimit-Reset-After": f"{self.reset_after:.3f}",
            "X-RateLimit-Bucket": self.bucket,
        }
        return told | ({"X-RateLimit-Scope": "user"} if self.refused else {})


UNLIMITED = RateLimit(1000, 1.0)
"""A limit too wide for tests to reach."""
DISCORD_RATE_LIMITS = {
    "message.create": RateLimit(5, 5.0),
    "message.edit": RateLimit(5, 5.0),
    "message.delete": RateLimit(5, 1.0),
    "typing": RateLimit(5, 5.0),
    "reaction": RateLimit(1, 0.25),
    "webhook": RateLimit(5, 2.0),
}
"""Limits as observed in the headers of Discord's servers."""


@dataclass(slots=True)
class RestRateLimiter:
    """Counts requests against rate limits."""

    routes: dict[str, RateLimit] = field(default_factory=dict)
    channels: dict[tuple[str, str], RateLimit] = field(default_factory=dict)
    everywhere: RateLimit = UNLIMITED
    _windows: dict[tuple[str, str], _Window] = field(default_factory=dict)

    def take(self, route: str, major: str) -> RateLimitDecision:
        """Count a request and return whether it may pass."""
        if route not in {"interaction", "webhook"}:
            whole = self._count("*", "", self.everywhere)
            if whole.refused:
                return whole
        limit = self.channels.get((route, major)) or self.routes.get(route, UNLIMITED)
        return self._count(route, major, limit)

    def _count(self, route: str, major: str, limit: RateLimit) -> RateLimitDecision:
        now = time.monotonic()
        window = self._windows.get((route, major))
        if window is None or now >= window.start + limit.per:
            window = self._windows[(route, major)] = _Window(now)
        refused = window.used >= limit.requests
        if not refused:
            window.used += 1
        left = max(0, limit.requests - window.used)
        rest = window.start + limit.per - now
        bucket = hashlib.sha256(route.encode()).hexdigest()[:32]
        return RateLimitDecision(limit, bucket, left, rest, refused, everywhere=route == "*")


def json_answer(
    data: Any, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Return JSON with the exact content type that clients compare with, without a charset."""
    body = json.dumps(data).encode()
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def too_many(retry_after: float, headers: dict[str, str], *, everywhere: bool) -> web.Response:
    """Return Discord's 429 response, with the headers of its proxies."""
    body = {"message": "You are being rate limited.", "retry_after": round(retry_after, 3)}
    told = {"Retry-After": str(math.ceil(retry_after)), "Via": "1.1 google"}
    return json_answer(body | {"global": everywhere}, 429, headers | told)


_HTML = "<html><head><title>{0} error</title></head><body><h1>{0}</h1>cloudflare</body></html>"


@dataclass(slots=True)
class RestFault:
    """A fault of REST calls."""

    kind: str
    where: str = ""
    times: float = 1
    until: float = math.inf
    status: int = 500
    html: bool = False
    seconds: float = 0.05
    everywhere: bool = False
    gate: anyio.Event | None = None
    packed: bool = False

    async def pause(self) -> None:
        """Wait for the delay or the event of a slow call."""
        await (anyio.sleep(self.seconds) if self.gate is None else self.gate.wait())

    def answer(self) -> web.Response:
        """Return the injected response."""
        if self.kind == "limit":
            return too_many(
                self.seconds,
                {"X-RateLimit-Scope": "global" if self.everywhere else "shared"},
                everywhere=self.everywhere,
            )
        if self.html:
            page = _HTML.format(self.status)
            return web.Response(status=self.status, text=page, content_type="text/html")
        body = {"message": f"{self.status}: Internal Server Error", "code": 0}
        return json_answer(body, self.status)


@dataclass(slots=True)
class RestFaults:
    """Current faults, in the order in which they were added."""

    waiting: list[RestFault] = field(default_factory=list)

    def add(self, kind: str, **options: Any) -> RestFault:
        """Add a fault (see ``RestFault``)."""
        fault = RestFault(kind, **options)
        self.waiting.append(fault)
        return fault

    def take(self, method: str, path: str) -> RestFault | None:
        """Return the fault for this call, and count it."""
        now = time.monotonic()
        self.waiting = [each for each in self.waiting if each.times > 0 and each.until > now]
        for fault in self.waiting:
            if re.search(fault.where, f"{method} {path}"):
                fault.times -= 1
                return fault
        return None
