"""What ``tapebot web`` asks of the running bot: links that log in, and tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.core.errors import HttpError, TapebotError
from bot.inspector.access.identities import LOCAL
from bot.inspector.access.logins import LoginService

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


def web_handlers(logins: LoginService, name: str) -> Mapping[str, Handler]:
    """Return what answers on the control socket, by what ``do`` says.

    Args:
        logins: Who is logged in.
        name: Of whoever runs the program on this machine, as shown.
    """

    async def link(_: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"ok": True, "text": await logins.create_login_link(LOCAL, name)}

    async def token(request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "ok": True,
            "text": await logins.login_store.make_token(LOCAL, str(request.get("name", ""))),
        }

    async def tokens(_: Mapping[str, Any]) -> Mapping[str, Any]:
        found = [
            f"{one.name}  since {one.at:%Y-%m-%d}" for one in await logins.login_store.tokens()
        ]
        return {
            "ok": True,
            "text": "\n".join(found) or "no tokens; tapebot web token NAME makes one",
        }

    async def revoke(request: Mapping[str, Any]) -> Mapping[str, Any]:
        name = str(request.get("name", ""))
        if await logins.login_store.end_token(name):
            return {"ok": True, "text": f"{name} is not good any more"}
        return {"ok": False, "text": f"there is no token {name}; tapebot web tokens lists them"}

    found = {"link": link, "token": token, "tokens": tokens, "revoke": revoke}
    return {f"web {one}": _told(handler) for one, handler in found.items()}


def _told(handler: Handler) -> Handler:
    """Return a handler whose refusals are told as the program's own errors are."""

    async def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await handler(request)
        except HttpError as refusal:
            raise TapebotError(refusal.detail) from refusal

    return answer
