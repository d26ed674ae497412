"""The site with its own logins and a door, for tests of who is let in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import httpx
from fastapi import APIRouter, FastAPI
from web_rig import open_web

from bot.bus.access.control import AccessControl, open_access_control
from bot.core.errors import HttpError
from bot.inspector.access.logins import LoginService, NewLogin
from bot.inspector.app import build_app
from bot.inspector.dependencies import Member, Owner, WebContext
from bot.testing.host import Host
from bot.testing.manual_clock import ManualClock

URL = "http://127.0.0.1:8020"
HTTPS = "https://bot.example.org"
HTML = {"Accept": "text/html"}


@dataclass(slots=True)
class Site:
    """A site that somebody may log in to, with ``/probe`` for anybody and ``/probe/owner`` for owners."""

    app: FastAPI
    logins: LoginService
    access_control: AccessControl
    clock: ManualClock
    host: Host
    web: WebContext
    url: str
    stack: AsyncExitStack

    async def browser(self, opened: NewLogin | None = None, url: str = "") -> httpx.AsyncClient:
        """Return a browser, logged in or not."""
        transport = httpx.ASGITransport(self.app)
        client = httpx.AsyncClient(transport=transport, base_url=url or self.url)
        if opened is not None:
            client.headers["Cookie"] = f"{self.logins.cookie}={opened.secret}"
        return await self.stack.enter_async_context(client)

    async def owner(self) -> httpx.AsyncClient:
        """Return a browser of whoever runs the program, which sends the CSRF token as our pages do."""
        opened = await self.logins.log_in("local", "Ada")
        client = await self.browser(opened)
        client.headers["X-CSRF-Token"] = opened.csrf
        return client

    async def slowly(self, call: Any) -> Any:
        """Return what a call answers that waits a second by the clock, or raise its refusal."""
        found: list[Any] = []
        refused: list[HttpError] = []

        async def run() -> None:
            try:
                found.append(await call)
            except HttpError as refusal:
                refused.append(refusal)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                before = len(self.clock.remaining_sleeps)
                await self.clock.wait_for_sleepers(before + 1)
                self.clock.advance(1)
        if refused:
            raise refused[0]
        return found[0]


def probes() -> APIRouter:
    """Return routes that say who calls."""
    router = APIRouter()

    @router.api_route("/probe", methods=["GET", "POST", "DELETE"])
    async def probe(visitor: Member) -> dict[str, str]:
        return {"id": visitor.id, "role": visitor.role}

    @router.get("/probe/owner")
    async def owners(visitor: Owner) -> dict[str, str]:
        return {"id": visitor.id}

    return router


@asynccontextmanager
async def open_site(
    folder: Path,
    *,
    url: str = URL,
    owners: Sequence[str] = ("telegram:42",),
    allow: Sequence[str] = (),
) -> AsyncIterator[Site]:
    """Build a site over a program in this folder."""
    async with AsyncExitStack() as stack:
        rig = await stack.enter_async_context(open_web(folder=folder / "bot"))
        clock = rig.host.clock
        assert isinstance(clock, ManualClock)
        access_control = await stack.enter_async_context(
            open_access_control(folder / "door", owners=owners, allow=allow, clock=clock)
        )
        logins = LoginService(rig.store, access_control, clock, url, rig.web.scopes)
        web = replace(rig.web, logins=logins, url=url)
        app = build_app(web, probes())
        yield Site(app, logins, access_control, clock, rig.host, web, url, stack)
