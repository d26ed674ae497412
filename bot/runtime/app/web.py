"""Decide whether this process serves the website, and build it."""

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
from bot.core.i18n import N_, _
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    # Loaded only for a login or to serve the site: it takes half a second.
    from bot.bus.access.control import AccessControl
    from bot.inspector.access.logins import LoginService
    from bot.runtime.control_socket import Handler

logger = logging.getLogger(__name__)

_NOT_SERVED = N_(
    "this program does not serve the site. It does so at a terminal, with a platform, or if "
    "TAPEBOT_WEB_LISTEN is set to a free port. To switch it on, the operator sets "
    "TAPEBOT_WEB_LISTEN=127.0.0.1:8020 (or another free port) and restarts the bot"
)
_SWITCHED_OFF = N_(
    "the site is switched off (TAPEBOT_WEB_LISTEN=off). To switch it on, the operator sets "
    "TAPEBOT_WEB_LISTEN=127.0.0.1:8020 and restarts the bot"
)


@dataclass
class WebSetup:
    """Configuration, logins and commands of the website.

    Attributes:
        served: Whether this process serves the site now; set when it starts to.
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
        """Whether the site's address was set, or was switched off."""
        return bool({"web_listen", "web_url"} & self.settings.model_fields_set)

    def should_serve(self, *, beside: bool) -> bool:
        """Return whether this process should serve the site.

        Without configuration, only a program that shares no database serves it, and only beside
        another channel: a piped console needs none, and of several processes the configured ones
        serve it.
        """
        if self.settings.web_listen is None:
            return False
        return self.is_configured or (beside and not self.shared)

    @cached_property
    def logins(self) -> LoginService:
        """The service that manages logins."""
        from bot.inspector.access.logins import LoginService

        assert self.settings.web_base is not None
        return LoginService(
            self.store, self.access_control, self.clock, self.settings.web_base, self.scopes
        )

    def commands(self) -> list[Command]:
        """Return ``/login``; where the site is not served, it explains how to switch it on."""
        from bot.agent.commands.login import login_command

        return [login_command(self._offer)]

    def handlers(self) -> Mapping[str, Handler]:
        """Return the control socket's handlers for ``tapebot web``."""
        asked = ("web link", "web token", "web tokens", "web revoke")  # for programs
        return {what: partial(self._answer, what) for what in asked}

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        """Return a visitor's role by their login's platform identity (``bot.bus.Authorizer``).

        Raises:
            BusError: The role cannot be read at the moment.
        """
        return AccessDecision(
            await self.logins.authenticator.role(
                access_request.sender.id, access_request.sender.name
            )
        )

    async def _offer(self, channel: str, sender: str, name: str, chat: str) -> LoginCode | None:
        logins = await self._served(elsewhere=self.shared and self.is_configured)
        return await logins.create_login_code(channel, sender, name, chat)

    async def _answer(self, what: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        logins = await self._served()
        from bot.inspector.access.control_handlers import web_handlers

        return await web_handlers(logins, self.settings.console_name)[what](request)

    async def _served(self, *, elsewhere: bool = False) -> LoginService:
        """Return the login service, if the site is served here or may be elsewhere.

        Raises:
            TapebotError: The site is not served, or a package is missing.
        """
        if self.settings.web_base is None:
            raise TapebotError(_(_SWITCHED_OFF))
        if not (self.served or elsewhere):
            raise TapebotError(_(_NOT_SERVED))
        try:
            # If another process serves the site, the first login loads the libraries here.
            return await anyio.to_thread.run_sync(lambda: self.logins)
        except ModuleNotFoundError as error:
            raise TapebotError(
                _("the site needs {name}: pip install 'tapebot[web]'", name=error.name)
            ) from error
