"""Build the website of a running program."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from bot.core.errors import TapebotError
from bot.core.i18n import _
from bot.runtime.app.build import App

if TYPE_CHECKING:
    # Loaded only to serve the site: it takes half a second.
    from bot.inspector.site import WebSite

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]


def build_site(app: App, announce: Announce, *, terminal: bool) -> WebSite:
    """Return the website of a program."""
    from bot.inspector.clients.memory import make_endpoint
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
        url=base,
        mcp=app.extensions.mcp,
        language=services.languages.default,
        languages=services.languages,
        memory=make_endpoint(
            app.memory_requests.tools(), web.logins.authenticator, web.logins.login_store
        ),
    )

    async def ready() -> None:
        web.served = True
        announce(await _greeting(app, base, terminal=terminal))

    return WebSite(context, listen, ready)


async def _greeting(app: App, base: str, *, terminal: bool) -> str:
    """Return how to log in; a login link is shown only at the terminal, never in a log."""
    if not terminal and app.database_services is not None:
        return _("Web: {base} (`/login` in a private chat with the bot gives a code)", base=base)
    if not terminal:
        return _(
            "Web: {base} (`/login` in a private chat with the bot gives a code; `tapebot web link` "
            "here prints a link)",
            base=base,
        )
    try:
        link = await app.web.logins.create_login_link("local", app.settings.console_name)
    except TapebotError as error:
        logger.warning("no login link: %s", error)
        return _("Web: {base} (send /login here for a code)", base=base)
    return _(
        "Web: {base} has the chat and the inspector. This link logs you in once: `{link}`",
        base=base,
        link=link,
    )
