"""Faults of the Discord test server's REST API."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass, field
from typing import Any

import anyio
from aiohttp import web


def json_answer(
    data: Any, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Return JSON with the exact content type that clients compare with, without a charset."""
    body = json.dumps(data).encode()
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


def too_many(retry_after: float) -> web.Response:
    """Return Discord's 429 response for a shared limit, with the headers of its proxies."""
    told = {"message": "You are being rate limited.", "retry_after": round(retry_after, 3)}
    headers = {"Retry-After": str(math.ceil(retry_after)), "Via": "1.1 google"}
    return json_answer(told | {"global": False}, 429, headers | {"X-RateLimit-Scope": "shared"})


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
    gate: anyio.Event | None = None
    packed: bool = False

    async def pause(self) -> None:
        """Wait for the delay or the event of a slow call."""
        await (anyio.sleep(self.seconds) if self.gate is None else self.gate.wait())

    def answer(self) -> web.Response:
        """Return the injected response."""
        if self.kind == "limit":
            return too_many(self.seconds)
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
