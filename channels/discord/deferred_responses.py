"""Slash commands that display "thinking" until their answers replace it."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

import anyio
import discord

from bot.bus import Address, BusError, Sender, Spool
from channels.delivery.messenger import MessengerError
from channels.discord.current_client import CurrentClient
from channels.discord.errors import (
    INVALID_WEBHOOK_TOKEN,
    UNKNOWN_MESSAGE,
    UNKNOWN_WEBHOOK,
    map_discord_errors,
)
from channels.intake import Event

logger = logging.getLogger(__name__)

INTERACTION_ID_PREFIX = "i"
"""The prefix of slash commands' inbound ids."""

PRESS_ID_PREFIX = "cb"
"""The prefix of presses' inbound ids."""

_LIFE_SECONDS = 14.5 * 60  # Discord's interaction tokens are valid for 15 minutes
_MOST = 1000
_GREETING_SECONDS = 12.0
_RESPONSE_SECONDS = 10.0
_OVER = {UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK, INVALID_WEBHOOK_TOKEN}


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A deferred command; its token is a secret and works on any connection, until a time."""

    application_id: int
    token: str = field(repr=False)
    until: float

    @property
    def is_over(self) -> bool:
        """Whether the token has expired."""
        return self.until < time.time()


class DeferredResponses:
    """The slash commands that wait for answers, by inbound id; bounded.

    A command is in the spool before it displays "thinking", until its answer does: Discord sends it
    only once.
    """

    def __init__(self, client: CurrentClient, spool: Spool) -> None:
        self._client = client
        self._spool = spool
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._answered: OrderedDict[str, _Waiting] = OrderedDict()
        self._greeted: dict[str, anyio.Event] = {}

    def acknowledging(
        self, interaction: discord.Interaction, key: str
    ) -> Callable[[], Coroutine[Any, Any, None]]:
        """Return what acknowledges a command or press; its answer waits for that from now on."""
        done = self._greeted[key] = anyio.Event()

        async def acknowledge() -> None:
            command = interaction.type is discord.InteractionType.application_command
            try:
                with map_discord_errors(), anyio.fail_after(_RESPONSE_SECONDS):
                    await interaction.response.defer(thinking=command)
                if not command:
                    _remember(self._waiting, key, _waiting(interaction))
            except MessengerError as error:
                # Discord's limit has passed; the answer is sent as an ordinary message.
                logger.info("an interaction could not be acknowledged: %s", error)
            finally:
                self._greeted.pop(key, None)
                done.set()

        return acknowledge

    async def remember(self, interaction: discord.Interaction, event: Event) -> None:
        """Store a command that is about to display "thinking", until it is answered."""
        waiting = _waiting(interaction)
        _remember(self._waiting, event.id, waiting)
        record = {
            "waiting": [waiting.application_id, waiting.token, waiting.until],
            "session": event.address.session,
            "sender": [event.sender.id, event.sender.name, event.sender.language],
            "text": event.text,
            "sent": event.sent_at.isoformat(),
            "private": event.private,
            "chat_ids": event.chat_ids,
        }
        try:
            await self._spool.store_claimed(interaction.id, record)
        except BusError as error:
            logger.warning("a command would not survive a kill: %s", error)

    def is_waiting(self, inbound: str) -> bool:
        """Return whether a command displays "thinking" and may still be answered in its place."""
        return inbound in self._waiting

    async def forget(self, inbound: str) -> None:
        """Forget a command that is answered, or cannot be any more."""
        if self._waiting.pop(inbound, None) is not None:
            await self._spool.remove(int(inbound.removeprefix(INTERACTION_ID_PREFIX)))

    async def forget_if_over(self, inbound: str) -> None:
        """Forget a command whose token has expired."""
        waiting = self._waiting.get(inbound)
        if waiting is not None and waiting.is_over:
            await self.forget(inbound)

    async def load(self) -> list[Event]:
        """Return the commands that an earlier run left; some may be on the bus already."""
        found = []
        for number, raw in await self._spool.load():
            key = f"{INTERACTION_ID_PREFIX}{number}"
            try:
                event = Event(
                    kind="message",
                    id=key,
                    address=Address.parse(raw["session"]),
                    chat_ids=tuple(raw["chat_ids"]),
                    sender=Sender(*raw["sender"]),
                    private=raw["private"],
                    message_id=key,
                    text=raw["text"],
                    sent_at=datetime.fromisoformat(raw["sent"]),
                    addressed=True,
                    in_place=True,
                )
                application, token, until = raw["waiting"]
                self._waiting[key] = _Waiting(int(application), str(token), float(until))
            except Exception:  # otherwise it would end the channel at every start
                logger.exception("the stored command %s is dropped: it is not readable", number)
                await self._spool.remove(number)
                continue
            found.append(event)
        return found

    async def tell_presser(self, press: str, content: str) -> bool:
        """Show a text to who pressed a button alone; return False if it is too late for that.

        Raises:
            PlatformUnreachable: There is no connection.
            discord.HTTPException: Discord rejected it.
        """
        waiting = await self._acknowledged(press)
        if waiting is None:
            return False
        webhook = self._webhook(waiting)
        webhook.type = discord.WebhookType.application  # only such ones send to one person
        await webhook.send(content, ephemeral=True, allowed_mentions=discord.AllowedMentions.none())
        return True

    async def answer(
        self, reply_to: str, key: str, content: str, view: discord.ui.View
    ) -> str | None:
        """Replace "thinking" by an answer; return the message's id, or None if it is too late.

        Raises:
            PlatformUnreachable: There is no connection.
            discord.HTTPException: Discord rejected it for another reason.
        """
        await self.forget_if_over(reply_to)
        waiting = await self._acknowledged(reply_to)
        if waiting is None:
            return None
        try:
            shown = await self._webhook(waiting).edit_message(
                cast("int", "@original"),  # as Discord names the message that displays "thinking"
                content=content,
                view=view,
                allowed_mentions=discord.AllowedMentions.none(),
            )
        except discord.HTTPException as error:
            if error.code not in _OVER:
                raise
            await self.forget(reply_to)
            return None
        await self.forget(reply_to)
        _remember(self._answered, _answer_of(key), waiting)
        return str(shown.id)

    async def _acknowledged(self, key: str) -> _Waiting | None:
        """Return a command or press once it is acknowledged; None if its token has expired."""
        greeted = self._greeted.get(key)
        if greeted is not None:
            with anyio.move_on_after(_GREETING_SECONDS):
                await greeted.wait()
        waiting = self._waiting.get(key)
        return None if waiting is None or waiting.is_over else waiting

    async def follow_up(self, key: str, content: str, view: discord.ui.View) -> str | None:
        """Send a later part of a command's answer as a follow-up; return None if impossible.

        Raises:
            PlatformUnreachable: There is no connection.
            discord.HTTPException: Discord rejected it.
        """
        waiting = self._still_answered(key)
        if waiting is None:
            return None
        message = await self._webhook(waiting).send(
            content,
            view=view,
            wait=True,
            suppress_embeds=True,
            allowed_mentions=discord.AllowedMentions.none(),
        )
        return str(message.id)

    async def follow_up_file(self, key: str, file: discord.File) -> str | None:
        """Send a file of a command's answer as a follow-up; return None if that is impossible.

        Raises:
            PlatformUnreachable: There is no connection.
            discord.HTTPException: Discord rejected it.
        """
        waiting = self._still_answered(key)
        if waiting is None:
            return None
        return str((await self._webhook(waiting).send(file=file, wait=True)).id)

    def _still_answered(self, key: str) -> _Waiting | None:
        """Return the command that an answer belongs to; None if its token has expired."""
        waiting = self._answered.get(_answer_of(key))
        return None if waiting is None or waiting.is_over else waiting

    def _webhook(self, waiting: _Waiting) -> discord.Webhook:
        client = self._client.client
        return discord.Webhook.partial(waiting.application_id, waiting.token, client=client)


def _answer_of(key: str) -> str:
    return key.rpartition("/")[0]


def _waiting(interaction: discord.Interaction) -> _Waiting:
    until = time.time() + _LIFE_SECONDS
    return _Waiting(interaction.application_id, interaction.token, until)


def _remember(known: OrderedDict[str, _Waiting], key: str, waiting: _Waiting) -> None:
    known[key] = waiting
    while len(known) > _MOST:
        known.popitem(last=False)
