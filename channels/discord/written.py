"""Which of the bot's messages were sent from here; another program may use its token, too.

A nonce is made of what it is for, so that whichever process sends the same part of an answer again
sends the same nonce, and Discord shows it once.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Hashable

import discord

_MOST = 4096
_PLAIN = {discord.MessageType.default, discord.MessageType.reply}
# Together the longest nonce that Discord takes.
_NAME, _SEAL = 15, 10


class Written:
    """The nonces of what was sent, noted before the call, and the ids that came back.

    Args:
        token: The bot's, a secret; seals nonces.
        shared: Whether other processes of ours write to the same chats: then the seal tells their
            messages from strangers', though not from those of another tapebot with the same token.
    """

    def __init__(self, token: str, *, shared: bool) -> None:
        self._token = token.encode()
        self._shared = shared
        self._known: OrderedDict[Hashable, None] = OrderedDict()

    def nonce_of(self, key: str) -> str:
        """Return the nonce of what has this key, in every process the same."""
        name = hashlib.sha256(key.encode()).hexdigest()[:_NAME]
        return name + self._seal(name)

    def nonce(self, key: str) -> str:
        """Note a message that is about to be sent; return its nonce."""
        nonce = self.nonce_of(key)
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
        if self._shared and nonce is not None and self._sealed(nonce):
            return False
        return message.id not in self._known and nonce not in self._known

    def _sealed(self, nonce: str) -> bool:
        return hmac.compare_digest(self._seal(nonce[:_NAME]).encode(), nonce[_NAME:].encode())

    def _seal(self, name: str) -> str:
        return hmac.new(self._token, name.encode(), hashlib.sha256).hexdigest()[:_SEAL]

    def _note(self, key: Hashable) -> None:
        self._known[key] = None
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
