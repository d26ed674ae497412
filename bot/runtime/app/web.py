"""The site: whether it is served, and what it is made of."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from bot.agent.commands.login import LoginCode
from bot.agent.commands.registry import Command
from bot.bus import AccessDecision, AccessRequest
from bot.core.clock import Clock
from bot.core.errors import TapebotError
from bot.memory.scope_registry import ScopeRegistry
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    # Loaded only where somebody logs in, or the site is served: it takes half a second.
    from bot.bus.access.control import AccessControl
    from bot.inspector.access.logins import LoginService
    from bot.inspector.site import WebSite
    from bot.runtime.app.build import App
    from bot.runtime.app.channels import Announce
    from bot.runtime.control_socket import Handler

logger = logging.getLogger(__name__)

_NOT_SERVED = (
    "the site is not served by this program; it is at a terminal, beside a platform, or where "
    "TAPEBOT_WEB_LISTEN is set, if nothing else listens there. Whoever runs me switches it on with "
    "TAPEBOT_WEB_LISTEN=127.0.0.1:8020 (or another free port) and a restart"
)
_SWITCHED_OFF = (
    "the site is switched off (TAPEBOT_WEB_LISTEN=off). Whoever runs me switches it on with "
    "TAPEBOT_WEB_LISTEN=127.0.0.1:8020 and a restart"
)


@dataclass
class WebSetup:
    """What a program keeps for its site.

    Args:
        settings: Say where it is.
        store: Holds tapes.
        access_control: Says who may use the bot.
        scopes: Whose memory there is.
        clock: Dates logins.
        shared: Other processes work on the same database.

    Attributes:
        served: It is served by this process now.
    """

    settings: Settings
    store: TapeStore
    access_control: AccessControl
    scopes: ScopeRegistry
    clock: Clock
    shared: bool
    served: bool = False

    @property
    def is_configured(self) -> bool:
        """Whether somebody set where it is, or said that it is nowhere."""
        return bool({"web_listen", "web_url"} & self.settings.model_fields_set)

    def should_serve(self, *, beside: bool) -> bool:
        """Say whether this process is to serve it.

        Unasked it is served beside other channels of a program that is the only one: a pipe that is
        answered line by line needs none, and of many processes some are told to.

        Args:
            beside: There is a terminal or a platform.
        """
        if self.settings.web_listen is None:
            return False
        return self.is_configured or (beside and not self.shared)

    @cached_property
    def logins(self) -> LoginService:
        """Who is logged in."""
        from bot.inspector.access.logins import LoginService

        assert self.settings.web_base is not None
        return LoginService(
            self.store, self.access_control, self.clock, self.settings.web_base, self.scopes
        )

    def commands(self) -> list[Command]:
        """Return ``/login``, which says how to switch the site on where there is none."""
        from bot.agent.commands.login import login_command

        return [login_command(self._offer)]

    def handlers(self) -> Mapping[str, Handler]:
        """Return what answers ``tapebot web`` on the control socket."""
        asked = ("web link", "web token", "web tokens", "web revoke")
        return {what: partial(self._answer, what) for what in asked}

    async def authorize(self, knock: AccessRequest) -> AccessDecision:
        """Return what a visitor may do, as the door says of who they are elsewhere (``bot.bus.Access``).

        Raises:
            BusError: It is not known at the moment.
        """
        return AccessDecision(
            await self.logins.authenticator.role(knock.sender.id, knock.sender.name)
        )

    async def _offer(self, channel: str, sender: str, name: str, chat: str) -> LoginCode | None:
        logins = await self._served(elsewhere=self.shared and self.is_configured)
        return await logins.create_login_code(channel, sender, name, chat)

    async def _answer(self, what: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        logins = await self._served()
        from bot.inspector.access.control_handlers import web_handlers

        return await web_handlers(logins, self.settings.console_name)[what](request)

    async def _served(self, *, elsewhere: bool = False) -> LoginService:
        """Return who is logged in, where the site is served: here, or maybe elsewhere.

        Raises:
            TapebotError: It is not, since its port is taken for one, or a part that it needs is missing.
        """
        if self.settings.web_base is None:
            raise TapebotError(_SWITCHED_OFF)
        if not (self.served or elsewhere):
            raise TapebotError(_NOT_SERVED)
        try:
            # Where another process serves it, its libraries are loaded by the first login.
            return await anyio.to_thread.run_sync(lambda: self.logins)
        except ModuleNotFoundError as error:
            raise TapebotError(
                f"the site needs {error.name}: pip install 'tapebot[web]'"
            ) from error


def build_site(app: App, announce: Announce, *, terminal: bool) -> WebSite:
    """Return the site of a program.

    Args:
        app: The program.
        announce: Tells whoever runs the program.
        terminal: They sit at it, and alone see what they are told.
    """
    from bot.inspector.dependencies import WebContext as Context
    from bot.inspector.site import UnavailableCommands, WebSite
    from bot.inspector.transcript import TapeTranscript

    web, services = app.web, app.services
    base, listen = app.settings.web_base, app.settings.web_listen
    assert base is not None
    assert listen is not None
    assert services.agent.images is not None
    context = Context(
        store=app.store,
        scopes=services.scopes,
        agent=services.agent,
        commands=services.commands,
        transcript=TapeTranscript(app.store, services.exports),
        logins=web.logins,
        remote_commands=UnavailableCommands(),
        exports=services.exports,
        blob=services.agent.images,
        view_messages=services.view_messages,
        view_tokens=services.view_tokens,
        url=base,
    )

    async def ready() -> None:
        web.served = True
        announce(f"Web: {base} {await _entrance(app, terminal=terminal)}")

    return WebSite(context, listen, ready)


async def _entrance(app: App, *, terminal: bool) -> str:
    """Return how one gets in. A link that logs in is for whoever sits at the terminal, and in no log."""
    if not terminal:
        here = "" if app.database_services is not None else "; `tapebot web link` here, a link"
        return f"(`/login` in a private chat with the bot gives a code{here})"
    try:
        link = await app.web.logins.create_login_link("local", app.settings.console_name)
    except TapebotError as error:
        logger.warning("no link to log in by: %s", error)
        return "(send /login here for a code)"
    return f"is where you can talk to me, and look into my memory. Log in, once, by `{link}`"
