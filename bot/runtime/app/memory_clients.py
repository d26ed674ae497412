"""Run requests of programs that use memory: in the running bot, or in its absence for one request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from bot.bus import Authorizer
from bot.bus.access.control import open_access_control
from bot.core.clock import Clock, SystemClock
from bot.core.errors import MemoryRefused, SettingsError
from bot.core.files import private_directory
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.runtime.app.database_services import open_database_services
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    from bot.mcp_server.client import MemoryClient
    from bot.mcp_server.tools import MemoryTools

_WRONG_TOKEN = "this token is not valid; tapebot web tokens lists the valid ones"  # noqa: S105 (text)


def make_memory_requests(
    store: TapeStore,
    scopes: ScopeRegistry,
    access: Authorizer | None,
    clock: Clock,
    settings: Settings,
) -> MemoryRequests:
    """Return what runs the requests of programs that use memory."""
    tools = partial(_make_tools, store, scopes, clock, ZoneInfo(settings.timezone))
    return MemoryRequests(cache(tools), store, access, clock)


def _make_tools(
    store: TapeStore, scopes: ScopeRegistry, clock: Clock, timezone: ZoneInfo
) -> MemoryTools:
    # Loaded with the first request: most bots never have one.
    from bot.mcp_server.memory import ClientMemory
    from bot.mcp_server.proposals import Proposals
    from bot.mcp_server.tools import MemoryTools

    memory = ClientMemory(store, scopes, clock, timezone)
    return MemoryTools(memory, Proposals(store, memory.sessions, clock))


@dataclass(frozen=True, slots=True)
class MemoryRequests:
    """Runs the requests of ``tapebot mcp``.

    Attributes:
        tools: Returns what runs the tools.
        store: Holds the tapes.
        access: Decides who may use the bot.
        clock: Dates the use of tokens.
    """

    tools: Callable[[], MemoryTools]
    store: TapeStore
    access: Authorizer | None
    clock: Clock

    async def run(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a request; see ``bot.mcp_server.stdio.RunRequest``.

        Raises:
            MemoryRefused: Its token is not valid, or the tool refuses.
            TapebotError: The storage failed.
        """
        client = await self._client(request)
        if "tool" not in request:
            return {"ok": True, "rights": sorted(client.rights)}
        arguments = request.get("arguments")
        if not isinstance(arguments, dict):
            raise MemoryRefused("the arguments are no JSON object")
        return {"ok": True, **await self.tools().call(client, str(request["tool"]), arguments)}

    async def _client(self, request: Mapping[str, Any]) -> MemoryClient:
        from bot.inspector.clients.memory import client_of_secret, local_client

        client: MemoryClient | None = local_client()
        if (token := request.get("token")) is not None:
            assert self.access is not None
            client = await client_of_secret(self.store, self.access, self.clock, str(token))
        if client is None:
            raise MemoryRefused(_WRONG_TOKEN)
        return client.called(request.get("program"))


@asynccontextmanager
async def open_memory_requests(
    settings: Settings, request: Mapping[str, Any]
) -> AsyncIterator[MemoryRequests]:
    """Open the tapes while no bot runs here, for one request.

    What only reads takes no lock, so a bot can start meanwhile.

    Raises:
        TapeLocked: A bot starts, or another process writes.
        SettingsError: Tapes are kept in memory.
        TapebotError: The storage failed.
    """
    if settings.tape_store == "memory" and settings.database_url is None:
        raise SettingsError("TAPEBOT_TAPE_STORE: memory is there only while tapebot runs")
    from bot.mcp_server.tools import TOOLS

    clock, home = SystemClock(), private_directory(settings.home)
    tool = TOOLS.get(str(request.get("tool")))
    reads = "token" not in request and (tool is None or tool.right == "read")
    async with (
        open_database_services(settings) as database,
        open_tape_store(settings, clock=clock, read_only=reads, shared=database) as store,
    ):
        scopes = ScopeRegistry(store, clock)
        if "token" not in request:
            yield make_memory_requests(store, scopes, None, clock, settings)
            return
        place: Any = home
        if database is not None:
            from bot.bus.access.postgres_store import PostgresAccessStore

            place = PostgresAccessStore(database.database)
        async with open_access_control(
            place, owners=settings.owners, allow=settings.allow, clock=clock
        ) as access:
            yield make_memory_requests(store, scopes, access, clock, settings)
