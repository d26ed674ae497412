"""Where a right of the owner holds: in a chat, for a person, or for everybody. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from bot.agent.foreign_text import code
from bot.agent.tools.registry import Audience
from bot.core.i18n import _

EVERYBODY = "everybody"
_LONGEST_SCOPE = 600

RightT = TypeVar("RightT")


def chat_scope(session: str) -> str:
    """Return the scope of a chat."""
    return f"chat:{session}"


def person_scope(identity: str) -> str:
    """Return the scope of a person, such as ``telegram:42``."""
    return f"person:{identity}"


def named_scope(text: str) -> str | None:
    """Return a scope that is written out, such as ``chat:telegram:42``; None if it is none."""
    kind, _sep, name = text.partition(":")
    known = kind in ("chat", "person") and name.count(":") >= 1 and len(text) <= _LONGEST_SCOPE
    return text if text == EVERYBODY or known else None


def scope_text(scope: str) -> str:
    """Return a scope for people, such as "in the chat `telegram:42`"."""
    kind, _sep, name = scope.partition(":")
    if kind == "chat":
        return _("in the chat {chat}", chat=code(name))
    return _("for {whom}", whom=code(name)) if kind == "person" else _("for everybody")


def narrowest_right(
    find: Callable[[str], RightT | None],
    audience: Audience,
    linked: Callable[[str], Iterable[str]],
    strictest: Callable[[Collection[RightT]], RightT],
    refuses: Callable[[RightT], bool],
) -> RightT | None:
    """Return the right that counts for people: the chat's, then theirs, then everybody's."""
    if (chat := find(chat_scope(audience.session))) is not None:
        return chat
    personal = []
    for one in audience.people:
        scopes = map(person_scope, {one, *linked(one)})
        if theirs := [right for scope in scopes if (right := find(scope)) is not None]:
            personal.append(strictest(theirs))
    # Several people are answered as one: what one of them lacks is not used.
    if personal and (len(personal) == len(audience.people) or refuses(strictest(personal))):
        return strictest(personal)
    return find(EVERYBODY)
