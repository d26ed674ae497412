"""The current discord.py client, replaced on reconnection.

While there is no connection, calls raise ``PlatformUnreachable``.
"""

from __future__ import annotations

import hashlib
import hmac

import discord

from bot.bus import Address
from channels.delivery.messenger import PlatformUnreachable
from channels.discord.message_content import target_channel_id

_NONCE = 25
"""The most characters of a nonce that Discord accepts."""


class CurrentClient:
    """Hold the client for calls to Discord; each connection sets its own.

    Attributes:
        me: The bot's user, once it has logged in; kept while there is no connection.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._client: discord.Client | None = None
        self.me: discord.ClientUser | None = None

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

    def find_channel(self, channel_id: int, guild_id: int | None) -> object:
        """Return a channel as far as it is known.

        Raises:
            PlatformUnreachable: There is no connection.
        """
        unlisted = self.client.get_partial_messageable(channel_id, guild_id=guild_id)
        return self.client.get_channel(channel_id) or unlisted

    def nonce_for(self, key: str) -> str:
        """Return the nonce of a message, which is the same in every process of the bot."""
        return hmac.new(self._token, key.encode(), hashlib.sha256).hexdigest()[:_NONCE]
