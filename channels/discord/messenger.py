"""Send, edit and delete messages and files by Discord's REST API."""

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
from channels.discord.current_client import CurrentClient
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
"""Bytes each server accepts: https://discord.com/developers/docs/reference#uploading-files."""

CALL_SECONDS = 120.0
"""The longest time of a call; discord.py waits up to 30 s for a limit and 25 s over five tries."""

REPLY_MENTION_ONLY = discord.AllowedMentions(
    everyone=False, users=False, roles=False, replied_user=True
)
"""Only the author of the message that is answered is pinged, whatever a model writes."""

_UPLOAD_SECONDS = 300.0


logger = logging.getLogger(__name__)

BUTTON_ID_PREFIX = "t:"
"""The prefix of this bot's button ids; what ``Button.data`` returns follows."""

_PACE = Pace(edit=1.5, typing=8.0)
_LONGEST_ID = 100
_LONGEST_LABEL = 80
_MOST_BUTTONS = 25
_NOTHING = "…"
_RECENTLY_STARTED_SECONDS = 600.0
_LOOKED_THROUGH = 50
_MESSAGE_ID = re.compile(r"(\d+)(?:\.e\d+)?")
_ASKED = re.compile(r"\D*(\d+)")


class DiscordMessenger:
    """Implement ``MessengerApi[str]``.

    discord.py waits for short rate limits itself, per channel; longer ones are raised.

    Args:
        client: Holds the current client.
        deferred: Slash commands that wait for answers.
    """

    def __init__(self, client: CurrentClient, deferred: DeferredResponses) -> None:
        self._client = client
        self._deferred = deferred
        self._recently_started_until = time.monotonic() + _RECENTLY_STARTED_SECONDS
        self._written: set[str] = set()

    def rate_limit_key(self, address: Address) -> str:
        """Return the channel's id, or a thread's own."""
        return address.topic or address.chat_id

    def pace(self, address: Address) -> Pace:  # noqa: ARG002 - the same everywhere
        """Return how often a chat may be updated."""
        return _PACE

    def render(self, text: str) -> Sequence[str]:
        """Return Markdown as Discord messages."""
        return render(text) or [_NOTHING]

    def render_plain(self, text: str) -> Sequence[str]:
        """Return the source text as Discord messages."""
        return split_plain_text(text, LIMIT) or [_NOTHING]

    async def send(self, message: OutgoingMessage[str]) -> str:
        """Send a message, or adopt the one that was sent before a restart; return its id."""
        with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
            shown = await self._as_response(message) or await self.find_sent(message)
            if shown is None:
                shown = await self._post(message)
            if not message.is_new:  # a notice may come before an answer from before a restart
                self._written.add(message.address.session)
        return shown

    async def send_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        """Send a file, or adopt the message that was sent before a restart; return its id.

        Raises:
            FileRejected: The file is missing or too large.
        """
        await check_file(message.piece, MAX_UPLOAD_BYTES)
        with map_discord_errors(), anyio.fail_after(_UPLOAD_SECONDS):
            return await self._find_file(message) or await self._post_file(message)

    async def _find_file(self, message: OutgoingMessage[OutgoingFile]) -> str | None:
        if time.monotonic() > self._recently_started_until:
            return None
        name, channel = message.piece.name, self._client.messageable(message.address)
        try:
            async for found in channel.history(limit=_LOOKED_THROUGH):
                mine = found.author.id == self._client.bot_id
                if mine and any(one.filename == name for one in found.attachments):
                    return str(found.id)
        except discord.Forbidden as error:
            logger.debug("earlier messages of an answer cannot be found: %s", error)
        return None

    async def _post_file(self, message: OutgoingMessage[OutgoingFile]) -> str:
        try:
            sent = await self._client.messageable(message.address).send(
                file=await _opened(message.piece),
                nonce=self._client.nonce_for(message.key),
                allowed_mentions=REPLY_MENTION_ONLY,
            )
        except discord.Forbidden:
            # discord.py closes the file after a failed send.
            again = await _opened(message.piece)
            try:
                shown = await self._deferred.follow_up_file(message.key, again)
            finally:
                again.close()
            if shown is None:
                raise
            return shown
        return str(sent.id)

    async def edit(
        self, address: Address, message_id: str, piece: str, buttons: tuple[Button, ...] = ()
    ) -> None:
        """Edit a message of the bot."""
        if not message_id.isdigit():
            raise MessageGone(f"{message_id!r} is not a Discord message")  # for the log
        with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
            message = self._client.messageable(address).get_partial_message(int(message_id))
            await message.edit(
                content=piece, view=_view(buttons), allowed_mentions=REPLY_MENTION_ONLY
            )

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message of the bot; succeed if it no longer exists."""
        if not message_id.isdigit():
            return
        try:
            with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
                await (
                    self._client.messageable(address).get_partial_message(int(message_id)).delete()
                )
        except MessageGone:
            return

    async def tell_presser(
        self,
        address: Address,  # noqa: ARG002 - the interaction knows its place
        press: str,
        pieces: Sequence[str],
    ) -> bool:
        """Show the text in a message that only the presser sees."""
        if len(pieces) > 1:
            return False
        with map_discord_errors(), anyio.fail_after(CALL_SECONDS):
            return await self._deferred.tell_presser(press, pieces[0])

    async def typing(self, address: Address) -> None:
        """Display the typing indicator once."""
        with map_discord_errors(), anyio.fail_after(_PACE.typing):
            await self._client.messageable(address).typing()

    async def draft(self, address: Address, stream: str, piece: str) -> bool:  # noqa: ARG002
        """Return False, since Discord has no drafts."""
        return False

    async def find_sent(self, message: OutgoingMessage[str]) -> str | None:
        """Return the message with this content from before a restart, after updating it.

        Discord recognises a repeated nonce for a few minutes only. So, for the first ten minutes of
        the process and in chats that it has not written to, the last messages are searched.

        Raises:
            PlatformUnreachable: There is no connection.
        """
        if (
            message.is_new
            or message.address.session in self._written
            or time.monotonic() > self._recently_started_until
        ):
            return None
        channel = self._client.messageable(message.address)
        try:
            recent = [found async for found in channel.history(limit=_LOOKED_THROUGH)]
            nonce = self._client.nonce_for(message.key)
            for found in recent:
                if found.author.id != self._client.bot_id:
                    continue
                if _thinks(found, message):
                    await self._end_thinking(message.address, found.id)
                if not _is(found, message, nonce):
                    continue
                if not _same(found.content, message.piece) or message.buttons:
                    await self.edit(message.address, str(found.id), message.piece, message.buttons)
                return str(found.id)
        except (discord.Forbidden, MessageGone) as error:
            logger.debug("an answer that was partly shown cannot be continued: %s", error)
        return None

    async def _end_thinking(self, address: Address, message_id: int) -> None:
        """Delete the "thinking" of a command that only an earlier process could answer."""
        try:
            await self.delete(address, str(message_id))
        except MessageRejected as error:
            logger.debug("the thinking state of a command could not be ended: %s", error)

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
            # A slash command works where the bot may not write; its follow-ups do, too.
            view = _view(message.buttons)
            shown = await self._deferred.follow_up(message.key, message.piece, view)
            if shown is None:
                raise
            return shown
        except discord.NotFound as error:
            if error.code != UNKNOWN_MESSAGE:
                raise
            # A message with the same nonce was sent and deleted a moment ago.
            sent = await self._create(message, message.key + secrets.token_hex(8))
        if not _same(sent.content, message.piece):
            # An earlier send had succeeded despite its error, and the text has grown since.
            await self.edit(message.address, str(sent.id), message.piece, message.buttons)
        return str(sent.id)

    async def _create(self, message: OutgoingMessage[str], key: str) -> discord.Message:
        reference = _reference(message)
        send = partial(
            self._client.messageable(message.address).send,
            message.piece,
            nonce=self._client.nonce_for(key),
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
            # The message cannot be replied to: send without a reply.
            return await send()


async def _opened(file: OutgoingFile) -> discord.File:
    return await anyio.to_thread.run_sync(partial(discord.File, file.path, filename=file.name))


def _is(found: discord.Message, message: OutgoingMessage[str], nonce: str) -> bool:
    """Return whether a message of the bot is the one to send, or the beginning of it."""
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
    # Without a reference, it must have the same text and come after the message that it answers.
    asked = _ASKED.match(message.reply_to)
    unnamed = found.nonce is None and asked is not None and found.id > int(asked[1])
    return unnamed and _same(found.content, message.piece)


def _thinks(found: discord.Message, message: OutgoingMessage[str]) -> bool:
    """Return whether a message displays "thinking" for the command that this message answers."""
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
    """Return buttons that work across restarts, as their ids lead to their commands."""
    view = discord.ui.View(timeout=None)
    shown: set[str] = set()
    for button in buttons[:_MOST_BUTTONS]:
        custom_id = BUTTON_ID_PREFIX + button.data
        if custom_id in shown or not button.label.strip():
            logger.warning("a button is skipped: it has no label, or its command is a duplicate")
            continue
        if len(custom_id) > _LONGEST_ID:
            logger.warning("a button is skipped: its command is too long for Discord")
            continue
        shown.add(custom_id)
        view.add_item(discord.ui.Button(label=button.label[:_LONGEST_LABEL], custom_id=custom_id))
    # Presses are recognised by their ids; discord.py need not remember the view.
    view.stop()
    return view
