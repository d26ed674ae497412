"""What the site's routes are given of the program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from bot.agent.agent import Agent
from bot.agent.commands.registry import CommandRegistry
from bot.bus import Desk, Transcript
from bot.memory.scopes import Scopes
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    from bot.inspector.access.logins import Logins


@dataclass(frozen=True, slots=True)
class Web:
    """Shared by all routes; made once.

    Attributes:
        store: Holds tapes; nothing here writes to those of conversations.
        scopes: Whose facts there are.
        agent: What turns are run by: its clock, time zone, model and context builder.
        commands: All slash commands.
        transcript: What was said, as chats show it.
        logins: Who is logged in.
        desk: Gives commands in conversations.
        exports: The folder that files of answers lie in.
        blob: Returns a kept file's content by its SHA-256; None where it is not there.
        view_messages: Bound on messages in a turn's view.
        view_tokens: Bound on their tokens.
        url: The address that people use, without a slash at its end.
    """

    store: TapeStore
    scopes: Scopes
    agent: Agent
    commands: CommandRegistry
    transcript: Transcript
    logins: Logins
    desk: Desk
    exports: Path
    blob: Callable[[str], Awaitable[bytes | None]]
    view_messages: int
    view_tokens: int
    url: str


def _web(request: Request) -> Web:
    web = request.app.state.web
    assert isinstance(web, Web)
    return web


WebDep = Annotated[Web, Depends(_web)]
"""A route's parameter: the program behind the site."""
