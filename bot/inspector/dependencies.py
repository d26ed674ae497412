"""What the site's routes are given of the program."""

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
from bot.memory.scope_registry import ScopeRegistry
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    from bot.inspector.access.logins import LoginService


@dataclass(frozen=True, slots=True)
class WebContext:
    """Shared by all routes; made once.

    Attributes:
        store: Holds tapes; nothing here writes to those of conversations.
        scopes: Whose facts there are.
        agent: What turns are run by: its clock, time zone, model and context builder.
        commands: All slash commands.
        transcript: What was said, as chats show it.
        logins: Who is logged in.
        remote_commands: Gives commands in conversations.
        exports: The folder that files of answers lie in.
        blob: Returns a kept file's content by its SHA-256; None where it is not there.
        view_messages: Bound on messages in a turn's view.
        view_tokens: Bound on their tokens.
        url: The address that people use, without a slash at its end.
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
    view_messages: int
    view_tokens: int
    url: str


def _web(request: Request) -> WebContext:
    web = request.app.state.web
    assert isinstance(web, WebContext)
    return web


WebContextDep = Annotated[WebContext, Depends(_web)]
"""A route's parameter: the program behind the site."""


async def require_member(request: Request, web: WebContextDep) -> WebUser:
    """Return who calls; refuse whoever is not logged in.

    Raises:
        Refusal: 401 where nobody is logged in, 403 where the request may be forged.
    """
    return await web.logins.authenticator.authenticate(request)


async def require_owner(visitor: Annotated[WebUser, Depends(require_member)]) -> WebUser:
    """Return who calls, where they own the bot.

    Raises:
        Refusal: 403 where they do not.
    """
    if visitor.role != "owner":
        raise HttpError(403, "owners_only", "only an owner of the bot may see this")
    return visitor


Member = Annotated[WebUser, Depends(require_member)]
"""A route's parameter: somebody who is logged in and may use the bot."""

Owner = Annotated[WebUser, Depends(require_owner)]
"""A route's parameter: an owner who is logged in."""
