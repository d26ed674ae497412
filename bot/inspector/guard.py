"""What a route asks of whoever calls it.

Rule 1: every route but those of logging in and static files has ``Member`` or ``Owner``; the chat's ask ``Site.visitor``.
Rule 2: the role is asked of the door for every request: who was taken off is out at once.
Rule 3: a request that changes something brings the session's CSRF token, or a bearer token and no cookie.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from bot.bus import Visitor
from bot.core.errors import Refusal
from bot.inspector.context import WebDep


async def member(request: Request, web: WebDep) -> Visitor:
    """Return who calls; refuse whoever is not logged in.

    Raises:
        Refusal: 401 where nobody is logged in, 403 where the request may be forged.
    """
    return await web.logins.callers.admit(request)


async def owner(visitor: Annotated[Visitor, Depends(member)]) -> Visitor:
    """Return who calls, where they own the bot.

    Raises:
        Refusal: 403 where they do not.
    """
    if visitor.role != "owner":
        raise Refusal(403, "owners_only", "only an owner of the bot may see this")
    return visitor


Member = Annotated[Visitor, Depends(member)]
"""A route's parameter: somebody who is logged in and may use the bot."""

Owner = Annotated[Visitor, Depends(owner)]
"""A route's parameter: an owner who is logged in."""
