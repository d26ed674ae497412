"""Convert between users of the site and their identities on other channels. Pure.

Rule 1: ``local`` is the user who runs the program on this machine: ``console:local``.
Rule 2: any other user is an identity of another channel: ``telegram.42`` is ``telegram:42``. No
    channel's name has a dot, so two identities never share a user id.
"""

from __future__ import annotations

from bot.bus import WEB_CHANNEL, Address
from bot.core.errors import InvalidInbound

LOCAL = "local"
CONSOLE = "console"


def visitor_id(channel: str, sender: str) -> str | None:
    """Return the site's user id of an identity; None if it cannot have one."""
    if channel == WEB_CHANNEL:
        return sender if channel_address(sender) is not None else None
    if channel == CONSOLE:
        return LOCAL if sender == LOCAL else None
    visitor = f"{channel}.{sender}"
    return visitor if channel_address(visitor) is not None else None


def channel_address(visitor: str) -> Address | None:
    """Return a user's address on their own channel; None if the id has none."""
    if visitor == LOCAL:
        return Address(CONSOLE, LOCAL)
    channel, dot, sender = visitor.partition(".")
    if not dot or channel in (WEB_CHANNEL, CONSOLE):
        return None
    try:
        # The user id is also their chat id on the web channel, so it must be valid there.
        Address(WEB_CHANNEL, visitor)
        return Address(channel, sender)
    except InvalidInbound:
        return None
