"""The connection of the moment: there is none while the network is away."""

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
"""Whatever a model writes pings nobody but the person who is answered."""

CALL_SECONDS = 120.0
"""The longest that a call may take: discord.py waits up to 30 s for a limit and 25 s over five tries."""


class _Reply(TypedDict, total=False):
    reference: discord.MessageReference


class CurrentClient:
    """What calls to Discord go through; each life of the connection brings its own client.

    Args:
        written: Notes what is sent.

    Attributes:
        me: The bot, once it has logged in; it stays while there is no connection.
        written: What was sent.
    """

    def __init__(self, written: SentMessages) -> None:
        self._client: discord.Client | None = None
        self.me: discord.ClientUser | None = None
        self.sent_messages = written

    @property
    def bot_id(self) -> int:
        """The bot; 0 before the first login."""
        return self.me.id if self.me else 0

    def set_client(self, client: discord.Client) -> None:
        """Use a client that has logged in."""
        self._client, self.me = client, client.user

    def clear_client(self) -> None:
        """Have no connection."""
        self._client = None

    @property
    def client(self) -> discord.Client:
        """The client of the moment.

        Raises:
            Unreachable: There is none.
        """
        if self._client is None:
            raise PlatformUnreachable("there is no connection to Discord")
        return self._client

    def channel(self, channel_id: int) -> discord.PartialMessageable:
        """Return what can be written to.

        Raises:
            Unreachable: There is no connection.
        """
        return self.client.get_partial_messageable(channel_id)

    def messageable(self, address: Address) -> discord.PartialMessageable:
        """Return what an address means.

        Raises:
            Unreachable: There is no connection.
        """
        return self.channel(target_channel_id(address))

    async def send_text(self, channel_id: int, text: str, reply_to: int | None = None) -> None:
        """Write something as it is, if that is possible; as a reply where a message is named."""
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
            logger.info("a person could not be told something: %s", error)


def _replies(channel_id: int, message_id: int | None) -> _Reply:
    if message_id is None:
        return {}
    reference = discord.MessageReference(
        message_id=message_id, channel_id=channel_id, fail_if_not_exists=False
    )
    return {"reference": reference}


_MOST = 4096
_PLAIN = {discord.MessageType.default, discord.MessageType.reply}
# Together the longest nonce that Discord takes.
_NAME, _SEAL = 15, 10


class SentMessages:
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

    def nonce_for(self, key: str) -> str:
        """Return the nonce of what has this key, in every process the same."""
        name = hashlib.sha256(key.encode()).hexdigest()[:_NAME]
        return name + self._seal(name)

    def register_nonce(self, key: str) -> str:
        """Note a message that is about to be sent; return its nonce."""
        nonce = self.nonce_for(key)
        self._note(nonce)
        return nonce

    def register_message(self, message_id: int) -> None:
        """Note a message that was sent."""
        self._note(message_id)

    def is_foreign(self, message: discord.Message) -> bool:
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
