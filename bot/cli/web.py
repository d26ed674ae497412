"""``tapebot web``: get a login link from the running bot, and manage API tokens."""

from __future__ import annotations

import sys
from typing import Any

import anyio

from bot.cli.tape import printable
from bot.core.errors import TapebotError
from bot.core.i18n import _
from bot.runtime.control_socket import call_control
from bot.runtime.settings import Settings


def web(settings: Settings, what: str, **given: Any) -> int:
    """Send a request to the running bot, and print its reply; return 1 if it refuses."""
    if settings.web_base is None:
        raise TapebotError(_("the site is switched off: TAPEBOT_WEB_LISTEN is off"))
    if settings.database_url is not None:
        raise TapebotError(
            _(
                "this does not work with a shared database: send /login to the bot in a private "
                "chat, and create tokens on the site's page /account"
            )
        )
    told = {key: one for key, one in given.items() if one is not None}
    reply = anyio.run(call_control, settings.home, {"do": f"web {what}"} | told)  # for programs
    if reply is None:
        raise TapebotError(
            _("no bot runs in {home}; start it first: tapebot run", home=settings.home)
        )
    done = reply.get("ok") is True
    print(printable(str(reply.get("text", ""))), file=sys.stdout if done else sys.stderr)
    return 0 if done else 1
