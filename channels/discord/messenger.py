"""Discord's calls for delivery."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Sequence
from functools import partial

import anyio
import anyio.to_thread
import discord

from bot.bus import Address, Button, OutgoingFile
from channels.delivery.messenger import (
    MessageGone,
    MessageRejected,
    OutgoingMessage,
    Pace,
    check_file,
)
from channels.discord.current_client import CALL_SECONDS, REPLY_MENTION_ONLY, CurrentClient
from channels.discord.deferred_responses import INTERACTION_ID_PREFIX, DeferredResponses
from channels.discord.errors import (
    CANNOT_REPLY_CODES,
    INVALID_FORM_BODY,
    UNKNOWN_MESSAGE,
    map_discord_errors,
)
from channels.discord.message_content import target_channel_id
from channels.discord.render import LIMIT, render
from channels.text import split_plain_text

MAX_UPLOAD_BYTES = 10 * 1024 * 1024
"""Bytes that Discord takes from bots everywhere: https://discord.com/developers/docs/reference#uploading-files."""

_UPLOAD_SECONDS = 300.0
_SEARCHED_MESSAGES = 50


class FileSender:
    """Sends files.

    Args:
        uplink: The connection of the moment.
        deferred: Slash commands, whose answers may go where the bot may not write.
    """

    def __init__(self, uplink: CurrentClient, deferred: DeferredResponses) -> None:
        self._uplink = uplink
        self._deferred = deferred

    async def send(self, message: OutgoingMessage[OutgoingFile], *, young: bool) -> str:
        """Show a file; return its message's id.

        Args:
            message: The file.
            young: The process may have shown it before a restart: the last messages are looked
                through for it.

        Raises:
            FileRefused: It is gone or too large.
            ScreenError: It could not be sent.
        """
        await check_file(message.piece, MAX_UPLOAD_BYTES)
        with map_discord_errors(), anyio.fail_after(_UPLOAD_SECONDS):
            shown = await self._already(message) if young else None
            return shown or await self._post(message)

    async def _already(self, message: OutgoingMessage[OutgoingFile]) -> str | None:
        bot = self._uplink.client.user
        try:
            async for found in self._uplink.messageable(message.address).history(
                limit=_SEARCHED_MESSAGES
            ):
                mine = bot is not None and found.author.id == bot.id
                if mine and any(one.filename == message.piece.name for one in found.attachments):
                    return str(found.id)
        except discord.Forbidden as error:
            logger.debug("what was shown before cannot be looked for: %s", error)
        return None

    async def _post(self, message: OutgoingMessage[OutgoingFile]) -> str:
        try:
            sent = await self._uplink.messageable(message.address).send(
                file=await _opened(message.piece),
                nonce=self._uplink.sent_messages.register_nonce(message.key),
                allowed_mentions=REPLY_MENTION_ONLY,
            )
        except discord.Forbidden:
            # discord.py closes what it tried to send.
            again = await _opened(message.piece)
            try:
                shown = await self._deferred.follow_up_file(message.key, again)
            finally:
                again.close()
            if shown is None:
                raise
            return shown
        self._uplink.sent_messages.register_message(sent.id)
        return str(sent.id)


async def _opened(file: OutgoingFile) -> discord.File:
    return await anyio.to_thread.run_sync(partial(discord.File, file.path, filename=file.name))


logger = logging.getLogger(__name__)

BUTTON_ID_PREFIX = "t:"
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


class DiscordMessenger:
    """Implements ``Screen[str]``.

    discord.py waits out short rate limits itself, a channel at a time; longer ones are raised.

    Args:
        uplink: The connection of the moment.
        deferred: Slash commands that wait for their answers.
    """

    def __init__(self, uplink: CurrentClient, deferred: DeferredResponses) -> None:
        self._uplink = uplink
        self._deferred = deferred
        self._uploads = FileSender(uplink, deferred)
        self._old = time.monotonic() + _YOUNG_SECONDS
        self._written: set[str] = set()

    def rate_limit_key(self, address: Address) -> str:
        """Return the channel; a thread is one of its own."""
        return address.topic or address.chat_id

    def pace(self, address: Address) -> Pace:  # noqa: ARG002 - the same everywhere
        """Return how fast a chat may be written to."""
        return _PACE

    def render(self, text: str) -> Sequence[str]:
        """Return Markdown as messages of Discord."""
        return render(text) or [_NOTHING]

    def render_plain(self, text: str) -> Sequence[str]:
        """Return the text as it is, in messages of Discord."""
        return split_plain_text(text, LIMIT) or [_NOTHING]

    async def send(self, message: OutgoingMessage[str]) -> str:
        """Show a message; one that was shown before a restart is taken up again."""
        with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
            shown = await self._as_response(message) or await self.find_sent(message)
            if shown is None:
                shown = await self._post(message)
            self._written.add(message.address.session)
        return shown

    async def send_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        """Show a file; one that was shown before a restart is taken up again."""
        young = time.monotonic() <= self._old
        return await self._uploads.send(message, young=young)

    async def edit(
        self, address: Address, message_id: str, piece: str, buttons: tuple[Button, ...] = ()
    ) -> None:
        """Change a message of the bot's."""
        if not message_id.isdigit():
            raise MessageGone(f"{message_id!r} is no message of Discord")
        with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
            message = self._uplink.messageable(address).get_partial_message(int(message_id))
            await message.edit(
                content=piece, view=_view(buttons), allowed_mentions=REPLY_MENTION_ONLY
            )

    async def delete(self, address: Address, message_id: str) -> None:
        """Take a message of the bot's away."""
        try:
            with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
                await (
                    self._uplink.messageable(address).get_partial_message(int(message_id)).delete()
                )
        except MessageGone:
            return

    async def typing(self, address: Address) -> None:
        """Show that an answer is on its way."""
        with map_discord_errors(), anyio.fail_after(_PACE.typing):
            await self._uplink.messageable(address).typing()

    async def draft(self, address: Address, stream: str, piece: str) -> bool:  # noqa: ARG002
        """Discord has no text that is no message yet."""
        return False

    async def find_sent(self, message: OutgoingMessage[str]) -> str | None:
        """Return the message that shows this since before a restart, brought up to date.

        Discord knows a repeated send for some minutes only. So, in a young process and a chat that
        it has not written to, the last messages are looked through.

        Raises:
            Unreachable: There is no connection.
        """
        if message.address.session in self._written or time.monotonic() > self._old:
            return None
        channel = self._uplink.messageable(message.address)
        bot = self._uplink.client.user
        try:
            recent = [found async for found in channel.history(limit=_LOOKED_THROUGH)]
            nonce = self._uplink.sent_messages.nonce_for(message.key)
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
        except MessageRejected as error:
            logger.debug("a command still shows that it is thought about: %s", error)

    async def _as_response(self, message: OutgoingMessage[str]) -> str | None:
        reply_to = message.reply_to
        if reply_to is None or not reply_to.startswith(INTERACTION_ID_PREFIX):
            return None
        view = _view(message.buttons)
        return await self._deferred.answer(reply_to, message.key, message.piece, view)

    async def _post(self, message: OutgoingMessage[str]) -> str:
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
        self._uplink.sent_messages.register_message(sent.id)
        return str(sent.id)

    async def _create(self, message: OutgoingMessage[str], key: str) -> discord.Message:
        reference = _reference(message)
        send = partial(
            self._uplink.messageable(message.address).send,
            message.piece,
            nonce=self._uplink.sent_messages.register_nonce(key),
            view=_view(message.buttons),
            allowed_mentions=REPLY_MENTION_ONLY,
            suppress_embeds=True,
        )
        if reference is None:
            return await send()
        try:
            return await send(reference=reference)
        except discord.HTTPException as error:
            unknown = error.code == INVALID_FORM_BODY and "message_reference" in error.text
            if not unknown and error.code not in CANNOT_REPLY_CODES:
                raise
            # What it replies to cannot be replied to; the answer is shown all the same.
            return await send()


def _is(found: discord.Message, message: OutgoingMessage[str], nonce: str) -> bool:
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
        return f"{INTERACTION_ID_PREFIX}{origin.id}" == message.reply_to
    if reference is not None:
        target = _MESSAGE_ID.fullmatch(message.reply_to)
        return target is not None and str(reference.message_id) == target[1]
    # It refers to nothing where Discord did not let it; then it is the same text after the question.
    asked = _ASKED.match(message.reply_to)
    unnamed = found.nonce is None and asked is not None and found.id > int(asked[1])
    return unnamed and _same(found.content, message.piece)


def _thinks(found: discord.Message, message: OutgoingMessage[str]) -> bool:
    """Whether a message of the bot's says that it thinks about what this answers."""
    origin = found.interaction_metadata
    return (
        found.flags.loading
        and origin is not None
        and f"{INTERACTION_ID_PREFIX}{origin.id}" == message.reply_to
    )


def _same(shown: str, wanted: str) -> bool:
    return shown.strip() == wanted.strip()


def _reference(message: OutgoingMessage[str]) -> discord.MessageReference | None:
    target = _MESSAGE_ID.fullmatch(message.reply_to or "")
    if target is None:
        return None
    channel_id = target_channel_id(message.address)
    return discord.MessageReference(
        message_id=int(target[1]), channel_id=channel_id, fail_if_not_exists=False
    )


def _view(buttons: Sequence[Button]) -> discord.ui.View:
    """Return buttons that work over restarts: their ids say what they do."""
    view = discord.ui.View(timeout=None)
    shown: set[str] = set()
    for button in buttons[:_MOST_BUTTONS]:
        custom_id = BUTTON_ID_PREFIX + button.command
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
