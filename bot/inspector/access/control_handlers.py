"""Handle the control requests of ``tapebot web``: login links and API tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.core.errors import HttpError, TapebotError
from bot.core.i18n import _, format_date
from bot.inspector.access.identities import LOCAL
from bot.inspector.access.logins import LoginService

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


def web_handlers(logins: LoginService, name: str) -> Mapping[str, Handler]:
    """Return the handlers for the control socket, by the request's ``do`` field.

    Args:
        logins: Creates login links, and holds the tokens.
        name: Display name of the user who runs the program on this machine.
    """

    async def link(_: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"ok": True, "text": await logins.create_login_link(LOCAL, name)}

    async def token(request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "ok": True,
            "text": await logins.login_store.make_token(LOCAL, str(request.get("name", ""))),
        }

    async def tokens(_request: Mapping[str, Any]) -> Mapping[str, Any]:
        found = [
            _("{name}  since {day}", name=api_token.name, day=format_date(api_token.at.date()))
            for api_token in await logins.login_store.tokens()
        ]
        return {
            "ok": True,
            "text": "\n".join(found) or _("no tokens; tapebot web token NAME creates one"),
        }

    async def revoke(request: Mapping[str, Any]) -> Mapping[str, Any]:
        name = str(request.get("name", ""))
        if await logins.login_store.end_token(name):
            return {"ok": True, "text": _("{name} is no longer valid", name=name)}
        return {
            "ok": False,
            "text": _("there is no token {name}; tapebot web tokens lists the tokens", name=name),
        }

    found = {"link": link, "token": token, "tokens": tokens, "revoke": revoke}
    return {f"web {one}": _told(handler) for one, handler in found.items()}  # for programs


def _told(handler: Handler) -> Handler:
    """Wrap a handler so that an ``HttpError`` is raised as a ``TapebotError``."""

    async def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await handler(request)
        except HttpError as refusal:
            raise TapebotError(refusal.detail) from refusal

    return answer
