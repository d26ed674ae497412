"""Build links to messages on their platform. Pure.

Rule 1: a link is returned only if it surely leads to the message; otherwise None.
"""

from __future__ import annotations

import re

from bot.bus import Address
from bot.core.errors import InvalidInbound
from bot.core.patterns import LazyPattern

# An edit's id starts with the message's id and a dot; presses, reactions and typed commands have no
# message.
_MESSAGE = LazyPattern(r"(\d+)(?:\.e\d+)?", re.ASCII)
_SUPERGROUP = LazyPattern(r"-100(\d+)", re.ASCII)


def message_url(tape: str, inbound: str, *, private: bool) -> str | None:
    """Return the URL of a message; None if there is none, or none is known.

    Args:
        tape: Name of the session's tape.
        inbound: The platform's id of the message, as on the bus.
        private: Whether the chat is private, with only the person and the bot.
    """
    found = _MESSAGE.fullmatch(inbound)
    try:
        address = Address.parse(tape)
    except InvalidInbound:
        return None
    if found is None:
        return None
    platform = address.channel.partition("-")[0]
    if platform == "telegram":
        return _telegram(address, found[1])
    if platform == "discord" and private and address.topic is None:
        return f"https://discord.com/channels/@me/{address.chat_id}/{found[1]}"
    # A session's key does not contain the Discord server's id, which the URL needs.
    return None


def _telegram(address: Address, message: str) -> str | None:
    group = _SUPERGROUP.fullmatch(address.chat_id)
    return None if group is None else f"https://t.me/c/{group[1]}/{message}"
