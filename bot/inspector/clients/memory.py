"""Programs that use memory, as their tokens say who they are."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request

from bot.bus import Authorizer, Right
from bot.core.clock import Clock
from bot.core.errors import TapebotError
from bot.inspector.access.authentication import Authenticator
from bot.inspector.access.identities import LOCAL, channel_address
from bot.inspector.access.login_fold import ApiToken
from bot.inspector.access.login_store import LoginStore
from bot.inspector.access.origin import SiteOrigin
from bot.mcp_server.client import LOCAL_PROGRAM, MemoryClient
from bot.mcp_server.tools import MemoryTools
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    # Loads the library ``mcp``, which may be missing.
    from bot.mcp_server.endpoint import McpEndpoint, ProgramCaller

logger = logging.getLogger(__name__)

_RIGHTS: frozenset[Right] = frozenset({"read", "propose"})


def token_client(token: ApiToken) -> MemoryClient:
    """Return the program that a valid token is for."""
    address = channel_address(token.visitor)
    # A token is valid only for somebody who has an address.
    assert address is not None
    return MemoryClient(
        person=address.session,
        visitor=token.visitor,
        name=token.name,
        rights=token.rights & _RIGHTS,
        own_sessions=token.own_sessions,
        program=token.program,
    )


def local_client() -> MemoryClient:
    """Return a program that whoever runs the bot started on this machine, without a token."""
    address = channel_address(LOCAL)
    assert address is not None
    return MemoryClient(address.session, LOCAL, LOCAL_PROGRAM, _RIGHTS)


async def client_of_secret(
    store: TapeStore, access: Authorizer, clock: Clock, secret: str
) -> MemoryClient | None:
    """Return the program that sends a token; None if the token is not valid.

    Raises:
        TapebotError: The storage failed.
    """
    # It reads no cookies here, so the site's address does not matter.
    origin = SiteOrigin("http://127.0.0.1")
    found = await Authenticator(LoginStore(store, clock), origin, access, clock).token_of(secret)
    return None if found is None else token_client(found[1])


def make_endpoint(
    tools: MemoryTools, authenticator: Authenticator, login_store: LoginStore
) -> McpEndpoint | None:
    """Return the MCP server on the site's server; None if the library is not installed."""
    try:
        from bot.mcp_server.endpoint import McpEndpoint, ProgramCaller
    except ModuleNotFoundError:
        return None

    async def met(token: ApiToken, program: str) -> None:
        try:
            await login_store.touch_token(token, program)
        except TapebotError as error:
            logger.warning("the program of the token %s is not recorded: %s", token.name, error)

    async def authenticate(request: Request) -> ProgramCaller:
        _, token = await authenticator.token(request)
        return ProgramCaller(token_client(token), partial(met, token))

    return McpEndpoint(tools, authenticate)
