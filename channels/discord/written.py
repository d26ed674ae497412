"""Which of the bot's messages this process has written; another program may use its token, too."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

import discord

_MOST = 4096
_PLAIN = {discord.MessageType.default, discord.MessageType.reply}


class Written:
    """The nonces of what was sent, noted before the call, and the ids that came back."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, None] = OrderedDict()

    def nonce(self, nonce: str) -> str:
        """Note a message that is about to be sent; return its nonce."""
        self._note(nonce)
        return nonce

    def message(self, message_id: int) -> None:
        """Note a message that was sent."""
        self._note(message_id)

    def foreign(self, message: discord.Message) -> bool:
        """Whether a live message of the bot's was not sent from here.

        What answers an interaction is never held to be foreign: Discord takes one program's word
        for each of them, and its messages carry no nonce.
        """
        if message.type not in _PLAIN:
            return False
        if message.interaction_metadata is not None or message.webhook_id is not None:
            return False
        nonce = None if message.nonce is None else str(message.nonce)
        return message.id not in self._known and nonce not in self._known

    def _note(self, key: Hashable) -> None:
        self._known[key] = None
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
