"""The connection of the moment: there is none while the network is away."""

from __future__ import annotations

import logging
import secrets
from typing import TypedDict

import anyio
import discord

from bot.bus import Address
from channels.delivery.screen import ScreenError, Unreachable
from channels.discord.faults import mapped
from channels.discord.places import written_to
from channels.discord.render import LIMIT
from channels.discord.written import Written
from channels.text import pieces

logger = logging.getLogger(__name__)

NOBODY = discord.AllowedMentions(everyone=False, users=False, roles=False, replied_user=True)
"""Whatever a model writes pings nobody but the person who is answered."""

CALL_SECONDS = 120.0
"""The longest that a call may take: discord.py waits up to 30 s for a limit and 25 s over five tries."""


class _Reply(TypedDict, total=False):
    reference: discord.MessageReference


class Uplink:
    """What calls to Discord go through; each life of the connection brings its own client.

    Args:
        written: Notes what is sent.

    Attributes:
        me: The bot, once it has logged in; it stays while there is no connection.
        written: What was sent.
    """

    def __init__(self, written: Written) -> None:
        self._client: discord.Client | None = None
        self.me: discord.ClientUser | None = None
        self.written = written

    @property
    def bot_id(self) -> int:
        """The bot; 0 before the first login."""
        return self.me.id if self.me else 0

    def up(self, client: discord.Client) -> None:
        """Use a client that has logged in."""
        self._client, self.me = client, client.user

    def down(self) -> None:
        """Have no connection."""
        self._client = None

    @property
    def client(self) -> discord.Client:
        """The client of the moment.

        Raises:
            Unreachable: There is none.
        """
        if self._client is None:
            raise Unreachable("there is no connection to Discord")
        return self._client

    def channel(self, channel_id: int) -> discord.PartialMessageable:
        """Return what can be written to.

        Raises:
            Unreachable: There is no connection.
        """
        return self.client.get_partial_messageable(channel_id)

    def at(self, address: Address) -> discord.PartialMessageable:
        """Return what an address means.

        Raises:
            Unreachable: There is no connection.
        """
        return self.channel(written_to(address))

    async def tell(self, channel_id: int, text: str, reply_to: int | None = None) -> None:
        """Write something as it is, if that is possible; as a reply where a message is named."""
        try:
            with mapped(), anyio.fail_after(CALL_SECONDS):
                for place, piece in enumerate(pieces(text, LIMIT)):
                    nonce = self.written.nonce(secrets.token_hex(8))
                    sent = await self.channel(channel_id).send(
                        piece,
                        nonce=nonce,
                        allowed_mentions=discord.AllowedMentions.none(),
                        suppress_embeds=True,
                        **_replies(channel_id, None if place else reply_to),
                    )
                    self.written.message(sent.id)
        except ScreenError as error:
            logger.info("a person could not be told something: %s", error)


def _replies(channel_id: int, message_id: int | None) -> _Reply:
    if message_id is None:
        return {}
    reference = discord.MessageReference(
        message_id=message_id, channel_id=channel_id, fail_if_not_exists=False
    )
    return {"reference": reference}
