"""Joins a visitor with who they are elsewhere, so that the chat in the browser shares their memory.

It is done as ``/link`` does it, with the login in the place of the code that is carried over and confirmed.
"""

from __future__ import annotations

import secrets
from hashlib import sha256

from bot.bus import WEB
from bot.bus.access.roster import shown_name
from bot.core.clock import Clock
from bot.inspector.access.identities import address_of
from bot.memory.people import Claim, Party
from bot.memory.scopes import Scopes


async def join(
    scopes: Scopes, clock: Clock, visitor: str, name: str, *, chat: str, key: str
) -> bool:
    """Join a visitor with their identity, the first time that they are seen; say whether that was done.

    Whoever parted the two again stays apart; a link that is under way is left alone, and the next login
    joins.

    Args:
        scopes: Whose linking knows who is who.
        clock: Says what is under way.
        visitor: Their id (``Visitor.id``).
        name: As shown.
        chat: Key of their private chat on the other channel; empty where it is not known.
        key: Of the login: done again, it joins once.

    Raises:
        TapeError: The storage refused; what was decided is carried out later.
    """
    address = address_of(visitor)
    if address is None:
        return False
    linking, identity, own = scopes.linking, address.session, f"{WEB}:{visitor}"
    await linking.open()
    people = linking.people
    offered = people.offers.get(identity)
    under_way = linking.waiting(identity) is not None or (
        offered is not None and offered.good(clock.now())
    )
    if people.concerns(own) or people.why_not(identity, own) is not None or under_way:
        return False
    shown, digest = shown_name(name), sha256(secrets.token_bytes(32)).hexdigest()
    theirs = Party(identity, shown, chat or people.party(identity).session)
    await linking.offer(theirs, digest)
    claim = await linking.claim(Party(own, shown, own), digest, key)
    if not isinstance(claim, Claim):
        return False
    move = await linking.confirm(identity, claim.entry, key)
    if move is not None:
        await scopes.carry_out(move)
    return move is not None
