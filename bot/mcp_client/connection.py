"""One server's connection: a task that opens it, keeps its list of tools, and opens it again."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from bot.core.clock import Clock
from bot.core.errors import McpUnavailable, OutcomeUnknown
from bot.core.i18n import _
from bot.core.reasons import Reason, reason_of
from bot.mcp_client.definitions import ToolDefinition
from bot.mcp_client.logins import ServerLogin
from bot.mcp_client.results import RemoteResult
from bot.mcp_client.settings import McpServer

if TYPE_CHECKING:
    from bot.mcp_client.client_session import McpSession

logger = logging.getLogger(__name__)

FIRST_DELAY = 1.0
"""Seconds until a lost connection is opened again; doubled each time."""

_LONGEST_DELAY = 300.0
_STEADY_SECONDS = 60.0
_CHECK_SECONDS = 300.0
_LIST_PAUSE = 0.2


class ServerConnection:
    """The connection to one server. ``run`` owns it; ``call`` may be used from any task.

    Args:
        name: The server's name.
        server: Its settings.
        clock: For the delays between attempts.
        redact: Removes secrets from what is logged and told.
        listed: Awaited whenever the list of tools was read.
        login: Its login in a browser; None if it has none.

    Attributes:
        name: The server's name.
        definitions: The tools that it listed last, by name; they stay while it is not there.
        left_out: Why tools of that list cannot be used, by the server's name for them.
        why: Why it is not there; empty while it is.
        login: Its login in a browser; None if it has none.
    """

    def __init__(
        self,
        name: str,
        server: McpServer,
        clock: Clock,
        redact: Callable[[str], str],
        listed: Callable[[ServerConnection], Awaitable[None]],
        *,
        login: ServerLogin | None = None,
    ) -> None:
        self.name = name
        self.definitions: dict[str, ToolDefinition] = {}
        self.left_out: dict[str, str] = {}
        self.why: str = Reason("mcp_not_reached")
        self._server = server
        self._clock = clock
        self._redact = redact
        self._listed = listed
        self.login = login
        self._retry = anyio.Event()
        self._session: McpSession | None = None
        self._changed = anyio.Event()
        self._end = ""
        self._reported = False
        self._tried = anyio.Event()
        self._calls: set[anyio.CancelScope] = set()

    @property
    def connected(self) -> bool:
        """Whether it can be called."""
        return self._session is not None

    async def wait_until_tried(self) -> None:
        """Wait until the first attempt to connect succeeded or failed; the caller bounds it."""
        await self._tried.wait()

    async def run(self) -> None:
        """Keep the connection open until cancelled."""
        delay = FIRST_DELAY
        try:
            module = await anyio.to_thread.run_sync(
                importlib.import_module, "bot.mcp_client.client_session", abandon_on_cancel=True
            )
        except ImportError:
            self._lose(Reason("mcp_package_missing"))
            return
        while True:
            began = self._clock.monotonic()
            try:
                await self._stay_connected(module.open_session)
            except Exception as error:  # noqa: BLE001 (a server's failure is its own: see below)
                # Whatever a server makes the library raise must not reach the others.
                self._lose(self._end or self._redacted(module.explained(error)))
            except BaseException:
                self._session, self.why = None, Reason("mcp_stopping")
                raise
            if self._clock.monotonic() - began >= _STEADY_SECONDS:
                delay = FIRST_DELAY
            delay = FIRST_DELAY if await self._pause(delay) else min(delay * 2, _LONGEST_DELAY)

    def reconnect(self) -> None:
        """Connect anew and at once: an owner logged in."""
        self._retry.set()
        if self._session is not None:
            self._note_end(Reason("mcp_login_changed"))

    async def _pause(self, delay: float) -> bool:
        """Wait before the next attempt; return whether it was wanted earlier."""

        async def sleep() -> None:
            await self._clock.sleep(delay)
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep)
            await self._retry.wait()
            tasks.cancel_scope.cancel()
        wanted = self._retry.is_set()
        self._retry = anyio.Event()
        return wanted

    async def _stay_connected(self, open_session: Callable[..., Any]) -> None:
        """Connect, and read the list of tools whenever it may have changed, until that fails."""
        self._changed, self._end = anyio.Event(), ""
        async with (
            open_session(
                self.name,
                self._server,
                self._redact,
                login=self.login,
                changed=self._note_change,
                ended=self._note_end,
            ) as session,
            anyio.create_task_group() as tasks,
        ):
            await self._list(session)
            self._session, self.why, self._reported = session, "", False
            logger.info("the MCP server %s: %d tools", self.name, len(self.definitions))
            await self._listed(self)
            self._tried.set()
            tasks.start_soon(session.watch)
            while True:
                with anyio.move_on_after(_CHECK_SECONDS):
                    await self._changed.wait()
                    if self._end:
                        raise McpUnavailable(self._end)
                    # A server may say it a thousand times a second.
                    await self._clock.sleep(_LIST_PAUSE)
                self._changed = anyio.Event()
                await self._list(session)
                await self._listed(self)

    async def _list(self, session: McpSession) -> None:
        try:
            self.definitions = await session.list_tools()
        except McpUnavailable as error:
            # Leaving the connection tells that it ended, which is no reason.
            self._end = self._end or reason_of(error)
            raise
        self.left_out = dict(session.left_out)

    def _note_change(self) -> None:
        self._changed.set()

    def _note_end(self, why: str) -> None:
        """Let no more calls begin; the owner of the connection then leaves it."""
        self._end = self._end or why
        self._lose(self._end)
        self._changed.set()

    def _redacted(self, why: str) -> str:
        """Return a reason without secrets; one that holds a secret is a text in English alone."""
        told = self._redact(str(why))
        return why if told == str(why) else told

    def _lose(self, why: str) -> None:
        if not self._reported:
            # Once while it is away: attempts to reach it again fail for many reasons.
            logger.warning("the MCP server %s is not there now: %s", self.name, why)
        self._session, self.why, self._reported = None, why, True
        self._tried.set()
        for scope in tuple(self._calls):
            scope.cancel()

    async def call(self, definition: ToolDefinition, arguments: dict[str, Any]) -> RemoteResult:
        """Call a tool.

        Raises:
            McpUnavailable: The server is not there.
            OutcomeUnknown: It gave no usable answer in time.
        """
        session, seconds = self._session, self._server.timeout
        if session is None:
            # Why is for people: it may be the server's words.
            raise McpUnavailable(_("the MCP server {name} is not there now", name=self.name))
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            self._calls.add(scope)
            try:
                return await session.call(definition.remote_name, arguments)
            except McpUnavailable as error:
                self._note_change()
                why = reason_of(error)
                raise OutcomeUnknown(
                    _("the MCP server {name}: {error}", name=self.name, error=why)
                ) from error
            finally:
                self._calls.discard(scope)
        # Reading the list again shows whether it hangs.
        self._note_change()
        if self._session is not session:
            raise OutcomeUnknown(
                _(
                    "the MCP server {name}: the connection ended; it is not known whether the call "
                    "was carried out",
                    name=self.name,
                )
            )
        raise OutcomeUnknown(
            _(
                "the MCP server {name}: no answer within {seconds} seconds; it is not known whether "
                "the call was carried out",
                name=self.name,
                seconds=f"{seconds:g}",
            )
        )
