"""Groups that got another id: nobody notices, unless the chat is told."""

from __future__ import annotations

from collections import OrderedDict

from bot.bus import Access, Knock
from channels.telegram.moves import Migration
from channels.telegram.telling import Teller

MOVED = (
    "Telegram gave this group a new id, so this is a new chat to me: our conversation starts anew. "
    "To let everybody here in again, an owner sends /pair here"
)
"""What a group is told once it became a supergroup."""

_MOST_KNOWN = 100


class Movers:
    """Tells groups that used the bot what their move means.

    Args:
        access: Says who was let in before.
        teller: Tells them.
    """

    def __init__(self, access: Access, teller: Teller) -> None:
        self._access = access
        self._teller = teller
        self._told: OrderedDict[str, None] = OrderedDict()

    async def tell(self, migration: Migration) -> None:
        """Tell a group once, if whoever moved it might use the bot there before.

        Raises:
            BusError: The door could not record something.
        """
        old, new = migration.old, migration.new
        if new.session in self._told:
            return
        knock = Knock(
            address=old, sender=migration.sender, private=False, places=(old.chat_id,), text=None
        )
        verdict = await self._access.admit(knock)
        if verdict.role is None:
            return
        self._told[new.session] = None
        if len(self._told) > _MOST_KNOWN:
            self._told.popitem(last=False)
        self._teller.tell(new, MOVED)
