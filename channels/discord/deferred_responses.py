"""Slash commands that display "thinking" until their answers replace it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import discord

from channels.discord.current_client import CurrentClient
from channels.discord.errors import INVALID_WEBHOOK_TOKEN, UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK

INTERACTION_ID_PREFIX = "i"
"""The prefix of slash commands' inbound ids."""

PRESS_ID_PREFIX = "cb"
"""The prefix of presses' inbound ids."""

_LIFE_SECONDS = 14.5 * 60  # Discord's interaction tokens are valid for 15 minutes
_MOST = 1000
_GREETING_SECONDS = 12.0
_OVER = {UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK, INVALID_WEBHOOK_TOKEN}


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A deferred command; its token is a secret and works on any connection."""

    application_id: int
    token: str = field(repr=False)
    message_id: int
    until: float


class DeferredResponses:
    """The slash commands that wait for answers, by inbound id; bounded.

    Args:
        client: Holds the current client.
    """

    def __init__(self, client: CurrentClient) -> None:
        self._client = client
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._answered: OrderedDict[str, _Waiting] = OrderedDict()
        self._greeted: dict[str, anyio.Event] = {}

    def expect_acknowledgement(self, interaction: discord.Interaction) -> Callable[[], None]:
        """Let a command's answer wait until the returned function reports the acknowledgement."""
        key = f"{INTERACTION_ID_PREFIX}{interaction.id}"
        done = self._greeted[key] = anyio.Event()

        def greeted() -> None:
            self._greeted.pop(key, None)
            done.set()

        return greeted

    def remember(self, interaction: discord.Interaction, message_id: int) -> None:
        """Store a deferred command or press until it is answered or its token expires.

        Args:
            interaction: The command or press.
            message_id: The id of the message that displays "thinking"; 0 for a press.
        """
        waiting = _Waiting(
            interaction.application_id,
            interaction.token,
            message_id,
            time.monotonic() + _LIFE_SECONDS,
        )
        _remember(self._waiting, f"{INTERACTION_ID_PREFIX}{interaction.id}", waiting)

    async def tell_presser(self, press: str, content: str) -> bool:
        """Show a text to who pressed a button alone; return False if it is too late for that.

        Raises:
            PlatformUnreachable: There is no connection.
            discord.HTTPException: Discord rejected it.
        """
        waiting = await self._acknowledged(
            f"{INTERACTION_ID_PREFIX}{press.removeprefix(PRESS_ID_PREFIX)}"
        )
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

        Args:
            reply_to: The inbound id of the command.
            key: The part's key (see ``OutgoingMessage``), by which ``follow_up`` finds the command.
            content: The text.
            view: The buttons.

        Raises:
            PlatformUnreachable: There is no connection.
            discord.HTTPException: Discord rejected it for another reason.
        """
        waiting = await self._acknowledged(reply_to)
        if waiting is None:
            return None
        try:
            await self._webhook(waiting).edit_message(
                waiting.message_id,
                content=content,
                view=view,
                allowed_mentions=discord.AllowedMentions.none(),
            )
        except discord.HTTPException as error:
            if error.code not in _OVER:
                raise
            self._waiting.pop(reply_to, None)
            return None
        self._waiting.pop(reply_to, None)
        _remember(self._answered, _answer_of(key), waiting)
        return str(waiting.message_id)

    async def _acknowledged(self, key: str) -> _Waiting | None:
        """Return a command or press once it is acknowledged; None if its token has expired."""
        greeted = self._greeted.get(key)
        if greeted is not None:
            with anyio.move_on_after(_GREETING_SECONDS):
                await greeted.wait()
        waiting = self._waiting.get(key)
        return waiting if waiting is not None and waiting.until >= time.monotonic() else None

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
        return waiting if waiting is not None and waiting.until >= time.monotonic() else None

    def _webhook(self, waiting: _Waiting) -> discord.Webhook:
        client = self._client.client
        return discord.Webhook.partial(waiting.application_id, waiting.token, client=client)


def _answer_of(key: str) -> str:
    return key.rpartition("/")[0]


def _remember(known: OrderedDict[str, _Waiting], key: str, waiting: _Waiting) -> None:
    known[key] = waiting
    while len(known) > _MOST:
        known.popitem(last=False)
