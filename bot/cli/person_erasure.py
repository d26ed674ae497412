"""``tapebot memory erase``: erase everything of a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from bot.bus.access.access_list import parse_principal
from bot.cli.tape import printable
from bot.cli.terminal import confirm
from bot.core.errors import SettingsError, TapebotError
from bot.core.i18n import _
from bot.runtime.app.build import open_app
from bot.runtime.app.person_erasure import answer
from bot.runtime.control_socket import call_control
from bot.runtime.settings import Settings


def erase_person(settings: Settings, person: str, *, yes: bool) -> int:
    """Show what is there of a person, ask, and erase it; if the bot runs, it does so. No returns 1."""
    if person != "console:local" and parse_principal(person) is None:
        raise SettingsError(_("{person!r} is no person such as telegram:42", person=person))
    print(printable(anyio.run(_asked, settings, person, False)))
    without = _("cannot ask for confirmation: add --yes to erase it")
    if not confirm(_("Erase all this for good? [y/N] "), yes=yes, without=without):
        print(_("Nothing was erased."))
        return 1
    anyio.run(_asked, settings, person, True)
    print(_("Erased. Backups and files that were exported elsewhere still hold it."))
    return 0


async def _asked(settings: Settings, person: str, yes: bool) -> str:
    asked = {"do": "erase", "person": person, "yes": yes}
    reply: Mapping[str, Any] | None
    reply = None if settings.database_url else await call_control(settings.home, asked)
    if reply is None:
        async with open_app(settings.model_copy(update={"model": "offline"})) as app:
            reply = await answer(app, asked)
    if not reply.get("ok"):
        raise TapebotError(str(reply.get("text")))
    return str(reply.get("text"))
