"""Visitors and who they are elsewhere. Pure.

Rule 1: ``local`` is whoever runs the program on this machine: the person of ``console:local``.
Rule 2: any other visitor is an identity of another channel: ``telegram.42`` is ``telegram:42``. No channel's name
    has a dot, so two identities are never one visitor.
"""

from __future__ import annotations

from bot.bus import WEB_CHANNEL, Address
from bot.core.errors import InvalidInbound

LOCAL = "local"
CONSOLE = "console"


def visitor_id(channel: str, sender: str) -> str | None:
    """Return the visitor that an identity is; None where it can be none."""
    if channel == WEB_CHANNEL:
        return sender if channel_address(sender) is not None else None
    if channel == CONSOLE:
        return LOCAL if sender == LOCAL else None
    visitor = f"{channel}.{sender}"
    return visitor if channel_address(visitor) is not None else None


def channel_address(visitor: str) -> Address | None:
    """Return who a visitor is elsewhere, as channel and id there; None where it is none."""
    if visitor == LOCAL:
        return Address(CONSOLE, LOCAL)
    channel, dot, sender = visitor.partition(".")
    if not dot or channel in (WEB_CHANNEL, CONSOLE):
        return None
    try:
        # It is their chat's id on the web as well, so it must be fit for that.
        Address(WEB_CHANNEL, visitor)
        return Address(channel, sender)
    except InvalidInbound:
        return None
