"""Handle the control requests of ``tapebot web``: login links and API tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bot.core.errors import HttpError, TapebotError
from bot.core.i18n import _, format_date
from bot.inspector.access.identities import LOCAL, channel_address, visitor_id
from bot.inspector.access.login_fold import RIGHTS, ApiToken
from bot.inspector.access.logins import LoginService

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


def web_handlers(logins: LoginService, name: str) -> Mapping[str, Handler]:
    """Return the handlers for the control socket, by the request's ``do`` field."""

    async def link(_request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"ok": True, "text": await logins.create_login_link(LOCAL, name)}

    async def token(request: Mapping[str, Any]) -> Mapping[str, Any]:
        visitor, given = _visitor(request), request.get("rights")
        role = await logins.authenticator.role(visitor, "")
        if role is None:
            raise TapebotError(
                _(
                    "{person} may not use the bot; tapebot pair gives access",
                    person=request.get("for") or visitor,
                )
            )
        rights = list(map(str, given)) if isinstance(given, list) else None
        if unknown := set(rights or ()).difference(RIGHTS):
            raise TapebotError(
                _(
                    "there is no right {unknown}; the rights are {rights}",
                    unknown=", ".join(sorted(unknown)),
                    rights=", ".join(RIGHTS),
                )
            )
        if role != "owner" and "site" in (rights or ()):
            raise TapebotError(_("only an owner's token may have the right site"))
        allowed = [right for right in RIGHTS if role == "owner" or right != "site"]
        made = await logins.login_store.make_token(
            visitor,
            str(request.get("name", "")),
            [right for right in allowed if rights is None or right in rights],
            own_sessions=request.get("own_sessions") is True,
        )
        return {"ok": True, "text": made}

    async def tokens(_request: Mapping[str, Any]) -> Mapping[str, Any]:
        found = [token_line(one) for one in await logins.login_store.tokens()]
        return {
            "ok": True,
            "text": "\n".join(found) or _("no tokens; tapebot web token NAME creates one"),
        }

    async def revoke(request: Mapping[str, Any]) -> Mapping[str, Any]:
        name = str(request.get("name", ""))
        if await logins.login_store.end_token(_visitor(request), name):
            return {"ok": True, "text": _("{name} is no longer valid", name=name)}
        return {
            "ok": False,
            "text": _("there is no token {name}; tapebot web tokens lists the tokens", name=name),
        }

    found = {"link": link, "token": token, "tokens": tokens, "revoke": revoke}
    return {f"web {one}": _told(handler) for one, handler in found.items()}  # for programs


def token_line(token: ApiToken) -> str:
    """Return a token as a line of ``tapebot web tokens``."""
    rights = ", ".join(right for right in RIGHTS if right in token.rights)
    sessions = _("its own sessions") if token.own_sessions else _("all private sessions")
    address = channel_address(token.visitor)
    person = address.session if address is not None else token.visitor
    since = _("since {date}", date=format_date(token.at))
    whose = _("for {person}", person=person)
    return "  ".join((token.name, since, _use(token), rights, sessions, whose))


def _use(token: ApiToken) -> str:
    if token.used is None:
        return _("never used")
    day = format_date(token.used)
    if token.program:
        return _("last used {date} by {program}", date=day, program=token.program)
    return _("last used {date}", date=day)


def _visitor(request: Mapping[str, Any]) -> str:
    """Return the person whom a request is about.

    Raises:
        TapebotError: It names nobody who can have a token.
    """
    given = str(request.get("for") or "")
    channel, _colon, sender = given.partition(":")
    visitor = LOCAL if not given else visitor_id(channel, sender)
    if visitor is None:
        raise TapebotError(_("{given!r} is not a person such as telegram:42", given=given))
    return visitor


def _told(handler: Handler) -> Handler:
    """Wrap a handler so that an ``HttpError`` is raised as a ``TapebotError``."""

    async def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await handler(request)
        except HttpError as refusal:
            raise TapebotError(refusal.detail) from refusal

    return answer
