"""Slash commands that show "thinking" and wait for their answers."""

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
"""What the inbound ids of slash commands begin with."""

_LIFE_SECONDS = 14.5 * 60  # Discord's tokens are good for 15 minutes
_MOST = 1000
_GREETING_SECONDS = 12.0
_OVER = {UNKNOWN_MESSAGE, UNKNOWN_WEBHOOK, INVALID_WEBHOOK_TOKEN}


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A command; its token is a secret, and works on any connection."""

    application_id: int
    token: str = field(repr=False)
    message_id: int
    until: float


class DeferredResponses:
    """The commands whose answers are still to come, by inbound id; a bounded number of them.

    Args:
        uplink: The connection of the moment.
    """

    def __init__(self, uplink: CurrentClient) -> None:
        self._uplink = uplink
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._answered: OrderedDict[str, _Waiting] = OrderedDict()
        self._greeted: dict[str, anyio.Event] = {}

    def expect_acknowledgement(self, interaction: discord.Interaction) -> Callable[[], None]:
        """Let the answer of a command wait until what is returned is called: it is acknowledged."""
        key = f"{INTERACTION_ID_PREFIX}{interaction.id}"
        done = self._greeted[key] = anyio.Event()

        def greeted() -> None:
            self._greeted.pop(key, None)
            done.set()

        return greeted

    def remember(self, interaction: discord.Interaction, message_id: int) -> None:
        """Remember a deferred command until its answer or its token's end.

        Args:
            interaction: The command.
            message_id: The message that shows "thinking".
        """
        waiting = _Waiting(
            interaction.application_id,
            interaction.token,
            message_id,
            time.monotonic() + _LIFE_SECONDS,
        )
        _remember(self._waiting, f"{INTERACTION_ID_PREFIX}{interaction.id}", waiting)

    async def answer(
        self, reply_to: str, key: str, content: str, view: discord.ui.View
    ) -> str | None:
        """Put an answer in the place of "thinking"; return its id, None where it is too late.

        Args:
            reply_to: The inbound id of the command.
            key: The part's key (see ``Outgoing``), by which later parts find their way.
            content: The part.
            view: Its buttons.

        Raises:
            Unreachable: There is no connection.
            discord.HTTPException: Discord refused it for another reason than its being too late.
        """
        greeted = self._greeted.get(reply_to)
        if greeted is not None:
            with anyio.move_on_after(_GREETING_SECONDS):
                await greeted.wait()
        waiting = self._waiting.get(reply_to)
        if waiting is None or waiting.until < time.monotonic():
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

    async def follow_up(self, key: str, content: str, view: discord.ui.View) -> str | None:
        """Show a later part of a command's answer as its follow-up; None where there is none.

        Raises:
            Unreachable: There is no connection.
            discord.HTTPException: Discord refused it.
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
        """Show a file of a command's answer as its follow-up; None where there is none.

        Raises:
            Unreachable: There is no connection.
            discord.HTTPException: Discord refused it.
        """
        waiting = self._still_answered(key)
        if waiting is None:
            return None
        return str((await self._webhook(waiting).send(file=file, wait=True)).id)

    def _still_answered(self, key: str) -> _Waiting | None:
        """Return the command that an answer is to; None where Discord takes no more for it."""
        waiting = self._answered.get(_answer_of(key))
        return waiting if waiting is not None and waiting.until >= time.monotonic() else None

    def _webhook(self, waiting: _Waiting) -> discord.Webhook:
        client = self._uplink.client
        return discord.Webhook.partial(waiting.application_id, waiting.token, client=client)


def _answer_of(key: str) -> str:
    return key.rpartition("/")[0]


def _remember(known: OrderedDict[str, _Waiting], key: str, waiting: _Waiting) -> None:
    known[key] = waiting
    while len(known) > _MOST:
        known.popitem(last=False)
