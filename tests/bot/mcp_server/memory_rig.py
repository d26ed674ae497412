"""A site that serves memory to programs, with two people, and the SDK's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from web_rig import Rig, open_web

from bot.bus import Right, Sender

ADA, BEN = Sender("local", "Ada"), Sender("8", "Ben")
HOME, BENS, GROUP = "console:local", "telegram:8", "telegram:-100"
WHO = types.Implementation(name="Cursor", version="2.1")


@dataclass(slots=True)
class Memory:
    """The program, and programs that use its memory."""

    rig: Rig
    _stack: AsyncExitStack

    async def token(
        self,
        name: str = "editor",
        visitor: str = "local",
        rights: tuple[Right, ...] = ("read", "propose"),
        *,
        own: bool = False,
    ) -> str:
        """Return a new token."""
        logins = self.rig.web.logins.login_store
        return await logins.make_token(visitor, name, rights, own_sessions=own)

    async def connect(self, token: str, mode: Any = "auto") -> Client:
        """Return the SDK's client with a token, connected until the end."""
        http = await self._stack.enter_async_context(
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        )
        transport = streamable_http_client(f"{self.rig.url}/mcp", http_client=http)
        client = Client(transport, client_info=WHO, mode=mode)
        return await self._stack.enter_async_context(client)

    async def client(self, name: str = "editor", visitor: str = "local", **more: Any) -> Client:
        """Return the SDK's client with a new token."""
        return await self.connect(await self.token(name, visitor, **more))

    async def talk(
        self, session: str = HOME, *said: Any, sender: Sender = ADA, **more: Any
    ) -> list[str]:
        """Say something in a session; return the answers."""
        role = "owner" if sender == ADA else "member"
        return await self.rig.talk(session, *said, sender=sender, role=role, **more)


async def told(client: Client, tool: str, **arguments: Any) -> str:
    """Return a tool's result as text; it is no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.content[0].text


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Return the error of a call, which is one."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    return result.content[0].text


@asynccontextmanager
async def open_memory(folder: Path) -> AsyncIterator[Memory]:
    """Run the program and serve it."""
    async with open_web(folder=folder, memory=True) as rig, rig.served(), AsyncExitStack() as stack:
        yield Memory(rig, stack)
