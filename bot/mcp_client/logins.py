"""Logins in a browser at MCP servers: begun by an owner, finished by the address that the browser is led to.

Rule 1: an address finishes the login whose ``state`` it has, and that once.
Rule 2: tokens are in the store and in the connection, and nowhere else.
Rule 3: a login that is not finished, for whatever reason, changes nothing.
"""

from __future__ import annotations

import hmac
import importlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from bot.core.errors import McpUnavailable
from bot.core.i18n import _
from bot.core.reasons import Reason
from bot.core.telemetry.redaction import Redactor
from bot.mcp_client.login_store import McpLoginStore
from bot.mcp_client.settings import McpServer

logger = logging.getLogger(__name__)

LOGIN_SECONDS = 600.0
"""Seconds that a person has to log in."""

CALLBACK_PATH = "/mcp/callback"
"""Where on tapebot's own site the browser is led to."""

_LINK_SECONDS = 30.0
_END_SECONDS = 60.0
_LONGEST_ADDRESS = 8_000
_MOST_SECRETS = 200
_SECRETS = ("access_token", "refresh_token", "client_secret")


class LoginSecrets:
    """Removes the tokens of logins from texts: a server may repeat what it is sent."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._redact = Redactor()

    def add(self, login: str) -> None:
        """Learn the secrets of a login, as JSON."""
        for part in json.loads(login).values():
            for name in _SECRETS:
                value = part.get(name) if isinstance(part, dict) else None
                if isinstance(value, str):
                    self._known[value] = None
        while len(self._known) > _MOST_SECRETS:
            del self._known[next(iter(self._known))]
        self._redact = Redactor(self._known)

    def __call__(self, text: str) -> str:
        """Return the text without them."""
        return self._redact(text)


@dataclass(frozen=True, slots=True)
class ServerLogin:
    """One server's login, as its connection uses it.

    Attributes:
        name: The server's name.
        server: Its settings.
        redirect: Where the browser is led to after a login.
        store: Keeps the login.
        secrets: Is told the tokens.
    """

    name: str
    server: McpServer
    redirect: str
    store: McpLoginStore
    secrets: LoginSecrets

    async def read(self) -> str | None:
        """Return the login as JSON; None if there is none."""
        login = await self.store.read(self.name)
        if login is not None:
            self.secrets.add(login)
        return login

    async def write(self, login: str) -> None:
        """Replace it. What a server renewed is lost if it is not kept, so nothing interrupts this."""
        self.secrets.add(login)
        with anyio.CancelScope(shield=True):
            await self.store.write(self.name, login)


def server_login(
    name: str, server: McpServer, site: str, store: McpLoginStore, secrets: LoginSecrets
) -> ServerLogin | None:
    """Return a server's login in a browser; None if it has none."""
    if not server.has_browser_login:
        return None
    return ServerLogin(name, server, f"{site}{CALLBACK_PATH}", store, secrets)


@dataclass(slots=True, eq=False)
class PendingLogin:
    """A login that waits for a person.

    Attributes:
        login: The server's login.
        link: Where the person logs in.
        answer: The parameters of the address that the browser was led to.
        problem: Why it failed; empty if it did not.
    """

    login: ServerLogin
    link: str = ""
    answer: Mapping[str, str] = field(default_factory=dict)
    problem: str = Reason("mcp_stopping")
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _shown: anyio.Event = field(default_factory=anyio.Event)
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _ended: anyio.Event = field(default_factory=anyio.Event)

    def show(self, link: str) -> None:
        """Let the person be told the link."""
        self.link = link
        self._shown.set()

    async def wait_for_answer(self) -> Mapping[str, str]:
        """Return the parameters of the address, once the person came back with it."""
        await self._answered.wait()
        return self.answer

    async def wait_for_link(self) -> None:
        """Wait until there is a link, or it failed."""
        await self._shown.wait()

    async def finish(self, answer: Mapping[str, str]) -> None:
        """Go on with an address's parameters, and wait for the end."""
        self.answer = answer
        self._answered.set()
        await self._ended.wait()

    def end(self, problem: str) -> None:
        """Wake whoever waits."""
        self.problem = problem
        self._shown.set()
        self._ended.set()

    def has_state(self, state: str) -> bool:
        """Say whether an address with this state is the answer to it."""
        known = dict(parse_qsl(urlsplit(self.link).query)).get("state", "")
        return bool(known) and hmac.compare_digest(known.encode(), state.encode())


class Logins:
    """Logins under way. ``run`` owns their tasks.

    Args:
        logged_in: Called with the name of a server whose login succeeded.
    """

    def __init__(self, logged_in: Callable[[str], None]) -> None:
        self._logged_in = logged_in
        self._pending: dict[str, PendingLogin] = {}
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Carry logins out until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    async def begin(self, login: ServerLogin) -> str:
        """Return the link at which a person logs in; an earlier one for the server is worth nothing.

        Raises:
            McpUnavailable: There is none; the text says why.
        """
        if self._tasks is None:
            raise McpUnavailable(_("tapebot is starting or stopping"))
        if (earlier := self._pending.pop(login.name, None)) is not None:
            earlier.scope.cancel()
        pending = self._pending[login.name] = PendingLogin(login)
        self._tasks.start_soon(self._carry_out, pending)
        with anyio.move_on_after(_LINK_SECONDS):
            await pending.wait_for_link()
        if not pending.link:
            pending.scope.cancel()
            raise McpUnavailable(pending.problem)
        return pending.link

    async def finish(self, address: str, server: str | None = None) -> str:
        """Finish the login that an address belongs to; return the server's name.

        Raises:
            McpUnavailable: The address belongs to no login, or the login failed.
        """
        answer = _parameters(address)
        pending = self._of_state(answer.get("state", ""))
        if pending is None or server not in (None, pending.login.name):
            raise McpUnavailable(_("no login with this address is under way"))
        del self._pending[pending.login.name]
        with anyio.move_on_after(_END_SECONDS) as scope:
            await pending.finish(answer)
        if scope.cancelled_caught:
            pending.scope.cancel()
            raise McpUnavailable(_("the authorization server does not answer in time"))
        if pending.problem:
            raise McpUnavailable(pending.problem)
        return pending.login.name

    def _of_state(self, state: str) -> PendingLogin | None:
        return next((one for one in self._pending.values() if one.has_state(state)), None)

    async def _carry_out(self, pending: PendingLogin) -> None:
        name, problem = pending.login.name, _("nobody finished it in time")
        try:
            with pending.scope:
                pending.scope.deadline = anyio.current_time() + LOGIN_SECONDS
                problem = await _log_in(pending)
        finally:
            if self._pending.get(name) is pending:
                del self._pending[name]
            pending.end(problem)
        if not problem:
            logger.info("the MCP server %s: an owner logged in", name)
            self._logged_in(name)


def _load() -> Any:
    # As connections do, which load it at the same time: two orders of imports would meet half-way.
    importlib.import_module("bot.mcp_client.client_session")
    return importlib.import_module("bot.mcp_client.oauth")


async def _log_in(pending: PendingLogin) -> str:
    """Carry a login out; return why it failed."""
    try:
        module: Any = await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)
    except ImportError:
        return Reason("mcp_package_missing")
    try:
        await module.log_in(pending)
    except Exception as error:  # noqa: BLE001 (a server's failure is its own)
        # Whatever a server makes the library raise must not end other logins.
        return str(pending.login.secrets(module.explained_login(error)))
    return ""


def _parameters(address: str) -> dict[str, str]:
    try:
        found = parse_qsl(
            urlsplit(address[:_LONGEST_ADDRESS]).query, keep_blank_values=True, max_num_fields=20
        )
    except ValueError:
        return {}
    return dict(found)
