"""The current discord.py client, replaced on reconnection, and the record of sent messages.

While there is no connection, calls raise ``PlatformUnreachable``.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import Hashable
from typing import TypedDict

import anyio
import discord

from bot.bus import Address
from channels.delivery.messenger import MessengerError, PlatformUnreachable
from channels.discord.errors import map_discord_errors
from channels.discord.message_content import target_channel_id
from channels.discord.render import LIMIT
from channels.text import split_plain_text

logger = logging.getLogger(__name__)

REPLY_MENTION_ONLY = discord.AllowedMentions(
    everyone=False, users=False, roles=False, replied_user=True
)
"""Only the author of the message that is answered is pinged, whatever a model writes."""

CALL_SECONDS = 120.0
"""The longest time of a call; discord.py waits up to 30 s for a limit and 25 s over five tries."""


class _Reply(TypedDict, total=False):
    reference: discord.MessageReference


class CurrentClient:
    """Hold the client for calls to Discord; each connection sets its own.

    Attributes:
        me: The bot's user, once it has logged in; kept while there is no connection.
        sent_messages: The record of sent messages.
    """

    def __init__(self, written: SentMessages) -> None:
        self._client: discord.Client | None = None
        self.me: discord.ClientUser | None = None
        self.sent_messages = written

    @property
    def bot_id(self) -> int:
        """The bot's user id; 0 before the first login."""
        return self.me.id if self.me else 0

    def set_client(self, client: discord.Client) -> None:
        """Set a client that has logged in."""
        self._client, self.me = client, client.user

    def clear_client(self) -> None:
        """Drop the client, as the connection is lost."""
        self._client = None

    @property
    def client(self) -> discord.Client:
        """The current client.

        Raises:
            PlatformUnreachable: There is no connection.
        """
        if self._client is None:
            raise PlatformUnreachable("there is no connection to Discord")  # for the log
        return self._client

    def channel(self, channel_id: int) -> discord.PartialMessageable:
        """Return a channel to call, without fetching it.

        Raises:
            PlatformUnreachable: There is no connection.
        """
        return self.client.get_partial_messageable(channel_id)

    def messageable(self, address: Address) -> discord.PartialMessageable:
        """Return the channel or thread of an address, without fetching it.

        Raises:
            PlatformUnreachable: There is no connection.
        """
        return self.channel(target_channel_id(address))

    async def send_text(self, channel_id: int, text: str, reply_to: int | None = None) -> None:
        """Send plain text, best effort; as a reply if a message id is given."""
        try:
            with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
                for place, piece in enumerate(split_plain_text(text, LIMIT)):
                    nonce = self.sent_messages.register_nonce(secrets.token_hex(8))
                    sent = await self.channel(channel_id).send(
                        piece,
                        nonce=nonce,
                        allowed_mentions=discord.AllowedMentions.none(),
                        suppress_embeds=True,
                        **_replies(channel_id, None if place else reply_to),
                    )
                    self.sent_messages.register_message(sent.id)
        except MessengerError as error:
            logger.info("a notice could not be sent to a person: %s", error)


def _replies(channel_id: int, message_id: int | None) -> _Reply:
    if message_id is None:
        return {}
    reference = discord.MessageReference(
        message_id=message_id, channel_id=channel_id, fail_if_not_exists=False
    )
    return {"reference": reference}


_MOST = 4096
_PLAIN = {discord.MessageType.default, discord.MessageType.reply}
# Together 25 characters, the longest nonce that Discord accepts.
_NAME, _SEAL = 15, 10


class SentMessages:
    """Record nonces and ids of sent messages, to detect another program that uses the token.

    Nonces are recorded before the call, ids after it.
    """

    def __init__(self, token: str, *, shared: bool) -> None:
        self._token = token.encode()
        self._shared = shared
        self._known: OrderedDict[Hashable, None] = OrderedDict()

    def nonce_for(self, key: str) -> str:
        """Return the nonce for a key, which is the same in every process."""
        name = hashlib.sha256(key.encode()).hexdigest()[:_NAME]
        return name + self._seal(name)

    def register_nonce(self, key: str) -> str:
        """Record the nonce of a message that is about to be sent, and return it."""
        nonce = self.nonce_for(key)
        self._note(nonce)
        return nonce

    def register_message(self, message_id: int) -> None:
        """Record the id of a sent message."""
        self._note(message_id)

    def is_foreign(self, message: discord.Message) -> bool:
        """Return whether another program sent this live message of the bot.

        Responses to interactions never count as foreign: Discord accepts them from one program
        only, and they carry no nonce.
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
