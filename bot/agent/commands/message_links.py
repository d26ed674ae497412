"""Addresses by which platforms show a message. Pure.

Rule 1: an address is given only where it leads to the message; what only may is None.
"""

from __future__ import annotations

import re

from bot.bus import Address
from bot.core.errors import InvalidInbound

# An edit has its message's id before the dot; presses, reactions and typed commands name no message.
_MESSAGE = re.compile(r"(\d+)(?:\.e\d+)?", re.ASCII)
_SUPERGROUP = re.compile(r"-100(\d+)", re.ASCII)


def message_url(tape: str, inbound: str, *, private: bool) -> str | None:
    """Return the address of a message; None where there is none, or none that is known.

    Args:
        tape: The session that it was written in.
        inbound: The platform's id of it, as the bus knows it.
        private: Nobody but the person and the bot was present.
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
    # A session's key does not name a Discord server, and without it there is no address.
    return None


def _telegram(address: Address, message: str) -> str | None:
    group = _SUPERGROUP.fullmatch(address.chat_id)
    return None if group is None else f"https://t.me/c/{group[1]}/{message}"
