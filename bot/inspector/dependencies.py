"""The context of the site's routes, and FastAPI dependencies that require a member or owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from bot.agent.agent import Agent
from bot.agent.commands.registry import CommandRegistry
from bot.bus import RemoteCommands, Transcript, WebUser
from bot.core.errors import HttpError
from bot.core.i18n import _
from bot.inspector.language import LanguageChoices
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    from bot.inspector.access.logins import LoginService
    from bot.mcp_client.client import McpClient
    from bot.mcp_server.endpoint import McpEndpoint


@dataclass(frozen=True, slots=True)
class WebContext:
    """The parts of the program that the site's routes use; one per application.

    Attributes:
        store: Holds the tapes; the site never writes to those of conversations.
        scopes: Maps conversations and identities to the scopes of their facts.
        agent: Supplies clock, time zone, model and context builder.
        commands: All slash commands.
        transcript: Reads conversations as chats show them.
        logins: Manages logins and API tokens.
        remote_commands: Runs commands in conversations.
        exports: Directory of the files attached to answers.
        blob: Returns a stored file's content by its SHA-256; None if it is not there.
        url: The site's public URL, without a trailing slash.
        mcp: The MCP servers; None if none is configured.
        language: The language of those who state none.
        languages: The languages that people chose; None where they cannot choose.
        memory: The MCP server for other programs; None if its library is not installed.
    """

    store: TapeStore
    scopes: ScopeRegistry
    agent: Agent
    commands: CommandRegistry
    transcript: Transcript
    logins: LoginService
    remote_commands: RemoteCommands
    exports: Path
    blob: Callable[[str], Awaitable[bytes | None]]
    url: str
    mcp: McpClient | None = None
    language: str = "en"
    languages: LanguageChoices | None = None
    memory: McpEndpoint | None = None


def _web(request: Request) -> WebContext:
    web = request.app.state.web
    assert isinstance(web, WebContext)
    return web


WebContextDep = Annotated[WebContext, Depends(_web)]
"""Route parameter: the site's context."""


async def require_member(request: Request, web: WebContextDep) -> WebUser:
    """Return the logged-in user.

    Raises:
        HttpError: 401 if nobody is logged in, 403 if the request may be forged, 429 if there are
            too many requests.
    """
    return await web.logins.authenticator.authenticate(request)


async def require_owner(visitor: Annotated[WebUser, Depends(require_member)]) -> WebUser:
    """Return the logged-in user, who must own the bot.

    Raises:
        HttpError: 403 if they do not.
    """
    if visitor.role != "owner":
        raise HttpError(403, "owners_only", _("only an owner of the bot may see this"))
    return visitor


async def require_person(visitor: Annotated[WebUser, Depends(require_member)]) -> WebUser:
    """Return the user, who is logged in: a token makes and changes no credentials.

    Raises:
        HttpError: 403 if a token was sent.
    """
    if visitor.grant is not None:
        raise HttpError(
            403, "login_needed", _("Settings are changed in a browser, not by a token.")
        )
    return visitor


Person = Annotated[WebUser, Depends(require_person)]
"""Route parameter: a user who is logged in, and no program of theirs."""

Member = Annotated[WebUser, Depends(require_member)]
"""Route parameter: a logged-in user who may use the bot."""

Owner = Annotated[WebUser, Depends(require_owner)]
"""Route parameter: a logged-in owner."""
