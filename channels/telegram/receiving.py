"""Receivers: any process of several takes what Telegram sends, and one of them handles it.

Rule 1: an update is confirmed to Telegram once it is in the spool, or is nothing to us.
Rule 2: what somebody who was not let in says in a group is not kept; in private it may be a code, so
that it is, and what strangers can keep there is bounded by the spool.
Rule 3: nobody is answered here.
"""

from __future__ import annotations

import logging
from typing import Any

from aiogram.types import Chat, Update

from bot.bus import Access, Address, Knock, Sender, SharedSpool
from channels.telegram.moves import moved_ids
from channels.telegram.people import author_of, person, reactor
from channels.telegram.updates import update_number, validated
from channels.telegram.webhook import WebhookPlace, listening, secret_of

logger = logging.getLogger(__name__)

_MOST = 2**63


async def receive(
    channel: str, token: str, *, place: WebhookPlace, spool: SharedSpool, access: Access
) -> None:
    """Take what Telegram sends for one bot into a spool, until cancelled.

    Whoever runs the channel asks Telegram to send it.

    Args:
        channel: The channel's name.
        token: The bot's token.
        place: Where to listen; bots may share it.
        spool: Where the channel takes updates from.
        access: Says who may.

    Raises:
        ChannelRefused: The port is taken, or the host is not this machine's.
    """
    receiver = Receiver(channel, spool, access)
    bot_id = int(token.partition(":")[0])
    async with listening(place) as listener:
        await listener.serve(bot_id, secret_of(token), receiver.take)


class Receiver:
    """Takes one bot's updates into a spool.

    Args:
        channel: The channel's name.
        spool: Where the channel takes them from.
        access: Says who may.
    """

    def __init__(self, channel: str, spool: SharedSpool, access: Access) -> None:
        self._channel = channel
        self._spool = spool
        self._access = access

    async def take(self, raw: Any) -> None:
        """Return once an update is in the spool, or is nothing to us.

        Raises:
            BusError: It has to come again: it could not be kept, or too many wait.
        """
        number = update_number(raw)
        if number is None or not 0 <= number < _MOST:
            logger.warning("an update with no usable id is skipped")
            return
        try:
            update = validated(raw)
            news, knock = _is_news(update), _knock(update, self._channel)
        except (ValueError, OverflowError, OSError):
            logger.warning("the update %s is skipped, as it is malformed", number)
            return
        if news:
            await self._spool.arrive(number, raw, known=False)
        elif knock is not None:
            # Without its text no code is used up by looking.
            verdict = await self._access.admit(knock)
            known = verdict.role is not None
            if known or knock.private or verdict.reply is not None:
                await self._spool.arrive(number, raw, known=known)


def _is_news(update: Update) -> bool:
    """Return whether it tells of a chat rather than of what a person said there."""
    message = update.message
    return update.my_chat_member is not None or (
        message is not None and moved_ids(message) is not None
    )


def _knock(update: Update, channel: str) -> Knock | None:
    """Return who wants something where; None where nobody does to whom a bot listens."""
    message = update.message or update.edited_message
    query, reaction = update.callback_query, update.message_reaction
    if message is not None:
        return _of(channel, message.chat, author_of(message))
    if query is not None and query.message is not None and not query.from_user.is_bot:
        return _of(channel, query.message.chat, person(query.from_user))
    if reaction is not None:
        return _of(channel, reaction.chat, reactor(reaction.user, reaction.actor_chat))
    return None


def _of(channel: str, chat: Chat, sender: Sender | None) -> Knock | None:
    if sender is None:
        return None
    number = str(chat.id)
    return Knock(
        Address(channel, number),
        sender,
        private=chat.type == "private",
        places=(number,),
        text=None,
    )
