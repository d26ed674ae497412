"""Discord's calls for delivery."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Sequence
from functools import partial

import anyio
import discord

from bot.bus import Address, Button, OutFile
from channels.delivery.screen import MessageGone, Outgoing, Pace, Refused
from channels.discord.deferred import PREFIX, Deferred
from channels.discord.faults import (
    INVALID_FORM,
    NOT_TO_BE_REPLIED_TO,
    UNKNOWN_MESSAGE,
    mapped,
)
from channels.discord.places import written_to
from channels.discord.render import LIMIT, render
from channels.discord.uplink import CALL_SECONDS, NOBODY, Uplink
from channels.discord.uploads import Uploads
from channels.text import pieces

logger = logging.getLogger(__name__)

BUTTON = "t:"
"""What the ids of our buttons begin with; the command follows."""

_PACE = Pace(edit=1.5, typing=8.0)
_LONGEST_ID = 100
_LONGEST_LABEL = 80
_MOST_BUTTONS = 25
_NOTHING = "…"
_YOUNG_SECONDS = 600.0
_LOOKED_THROUGH = 50
_MESSAGE_ID = re.compile(r"(\d+)(?:\.e\d+)?")
_ASKED = re.compile(r"\D*(\d+)")


class DiscordScreen:
    """Implements ``Screen[str]``.

    discord.py waits out short rate limits itself, a channel at a time; longer ones are raised.

    Args:
        uplink: The connection of the moment.
        deferred: Slash commands that wait for their answers.
    """

    def __init__(self, uplink: Uplink, deferred: Deferred) -> None:
        self._uplink = uplink
        self._deferred = deferred
        self._uploads = Uploads(uplink, deferred)
        self._old = time.monotonic() + _YOUNG_SECONDS
        self._written: set[str] = set()

    def room(self, address: Address) -> str:
        """Return the channel; a thread is one of its own."""
        return address.topic or address.chat_id

    def pace(self, address: Address) -> Pace:  # noqa: ARG002 - the same everywhere
        """Return how fast a chat may be written to."""
        return _PACE

    def render(self, text: str) -> Sequence[str]:
        """Return Markdown as messages of Discord."""
        return render(text) or [_NOTHING]

    def plain(self, text: str) -> Sequence[str]:
        """Return the text as it is, in messages of Discord."""
        return pieces(text, LIMIT) or [_NOTHING]

    async def send(self, message: Outgoing[str]) -> str:
        """Show a message; one that was shown before a restart is taken up again."""
        with mapped(), anyio.fail_after(CALL_SECONDS):
            shown = await self._as_response(message) or await self.already(message)
            if shown is None:
                shown = await self._post(message)
            self._written.add(message.address.session)
        return shown

    async def send_file(self, message: Outgoing[OutFile]) -> str:
        """Show a file; one that was shown before a restart is taken up again."""
        young = time.monotonic() <= self._old
        return await self._uploads.send(message, young=young)

    async def edit(
        self, address: Address, message_id: str, piece: str, buttons: tuple[Button, ...] = ()
    ) -> None:
        """Change a message of the bot's."""
        if not message_id.isdigit():
            raise MessageGone(f"{message_id!r} is no message of Discord")
        with mapped(), anyio.fail_after(CALL_SECONDS):
            message = self._uplink.at(address).get_partial_message(int(message_id))
            await message.edit(content=piece, view=_view(buttons), allowed_mentions=NOBODY)

    async def delete(self, address: Address, message_id: str) -> None:
        """Take a message of the bot's away."""
        try:
            with mapped(), anyio.fail_after(CALL_SECONDS):
                await self._uplink.at(address).get_partial_message(int(message_id)).delete()
        except MessageGone:
            return

    async def typing(self, address: Address) -> None:
        """Show that an answer is on its way."""
        with mapped(), anyio.fail_after(_PACE.typing):
            await self._uplink.at(address).typing()

    async def draft(self, address: Address, stream: str, piece: str) -> bool:  # noqa: ARG002
        """Discord has no text that is no message yet."""
        return False

    async def already(self, message: Outgoing[str]) -> str | None:
        """Return the message that shows this since before a restart, brought up to date.

        Discord knows a repeated send for some minutes only. So, in a young process and a chat that
        it has not written to, the last messages are looked through.

        Raises:
            Unreachable: There is no connection.
        """
        if message.address.session in self._written or time.monotonic() > self._old:
            return None
        channel = self._uplink.at(message.address)
        bot = self._uplink.client.user
        try:
            recent = [found async for found in channel.history(limit=_LOOKED_THROUGH)]
            nonce = self._uplink.written.nonce_of(message.key)
            for found in recent:
                if bot is None or found.author.id != bot.id:
                    continue
                if _thinks(found, message):
                    await self._end_thinking(message.address, found.id)
                if not _is(found, message, nonce):
                    continue
                if not _same(found.content, message.piece) or message.buttons:
                    await self.edit(message.address, str(found.id), message.piece, message.buttons)
                return str(found.id)
        except (discord.Forbidden, MessageGone) as error:
            logger.debug("what was shown before cannot be taken up: %s", error)
        return None

    async def _end_thinking(self, address: Address, message_id: int) -> None:
        """Take the sign away that a process left behind whose command only it could answer."""
        try:
            await self.delete(address, str(message_id))
        except Refused as error:
            logger.debug("a command still shows that it is thought about: %s", error)

    async def _as_response(self, message: Outgoing[str]) -> str | None:
        reply_to = message.reply_to
        if reply_to is None or not reply_to.startswith(PREFIX):
            return None
        view = _view(message.buttons)
        return await self._deferred.answer(reply_to, message.key, message.piece, view)

    async def _post(self, message: Outgoing[str]) -> str:
        try:
            sent = await self._create(message, message.key)
        except discord.Forbidden:
            # A command may be used where the bot may not write: there its answer goes on all the same.
            view = _view(message.buttons)
            shown = await self._deferred.follow_up(message.key, message.piece, view)
            if shown is None:
                raise
            return shown
        except discord.NotFound as error:
            if error.code != UNKNOWN_MESSAGE:
                raise
            # The same was sent and deleted a moment ago.
            sent = await self._create(message, message.key + secrets.token_hex(8))
        if not _same(sent.content, message.piece):
            # A send that seemed to have failed had not, and the text has grown since.
            await self.edit(message.address, str(sent.id), message.piece, message.buttons)
        self._uplink.written.message(sent.id)
        return str(sent.id)

    async def _create(self, message: Outgoing[str], key: str) -> discord.Message:
        reference = _reference(message)
        send = partial(
            self._uplink.at(message.address).send,
            message.piece,
            nonce=self._uplink.written.nonce(key),
            view=_view(message.buttons),
            allowed_mentions=NOBODY,
            suppress_embeds=True,
        )
        if reference is None:
            return await send()
        try:
            return await send(reference=reference)
        except discord.HTTPException as error:
            unknown = error.code == INVALID_FORM and "message_reference" in error.text
            if not unknown and error.code not in NOT_TO_BE_REPLIED_TO:
                raise
            # What it replies to cannot be replied to; the answer is shown all the same.
            return await send()


def _is(found: discord.Message, message: Outgoing[str], nonce: str) -> bool:
    """Whether a message of the bot's is what would be sent, or the beginning of it."""
    if found.flags.loading:
        return False
    if found.nonce is not None and str(found.nonce) == nonce:
        return True
    if message.reply_to is None:
        return not message.key.endswith("/0") and _same(found.content, message.piece)
    begun = found.content.removesuffix("```").strip()
    if not message.piece.startswith(begun):
        return False
    origin, reference = found.interaction_metadata, found.reference
    if origin is not None:
        return f"{PREFIX}{origin.id}" == message.reply_to
    if reference is not None:
        target = _MESSAGE_ID.fullmatch(message.reply_to)
        return target is not None and str(reference.message_id) == target[1]
    # It refers to nothing where Discord did not let it; then it is the same text after the question.
    asked = _ASKED.match(message.reply_to)
    unnamed = found.nonce is None and asked is not None and found.id > int(asked[1])
    return unnamed and _same(found.content, message.piece)


def _thinks(found: discord.Message, message: Outgoing[str]) -> bool:
    """Whether a message of the bot's says that it thinks about what this answers."""
    origin = found.interaction_metadata
    return found.flags.loading and origin is not None and f"{PREFIX}{origin.id}" == message.reply_to


def _same(shown: str, wanted: str) -> bool:
    return shown.strip() == wanted.strip()


def _reference(message: Outgoing[str]) -> discord.MessageReference | None:
    target = _MESSAGE_ID.fullmatch(message.reply_to or "")
    if target is None:
        return None
    channel_id = written_to(message.address)
    return discord.MessageReference(
        message_id=int(target[1]), channel_id=channel_id, fail_if_not_exists=False
    )


def _view(buttons: Sequence[Button]) -> discord.ui.View:
    """Return buttons that work over restarts: their ids say what they do."""
    view = discord.ui.View(timeout=None)
    shown: set[str] = set()
    for button in buttons[:_MOST_BUTTONS]:
        custom_id = BUTTON + button.command
        if custom_id in shown or not button.label.strip():
            logger.warning("a button is left out: it has no label, or its command is there already")
            continue
        if len(custom_id) > _LONGEST_ID:
            logger.warning("a button is left out: its command is too long for Discord")
            continue
        shown.add(custom_id)
        view.add_item(discord.ui.Button(label=button.label[:_LONGEST_LABEL], custom_id=custom_id))
    # Presses are taken by their ids; discord.py need not remember the view.
    view.stop()
    return view
