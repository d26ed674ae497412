"""Reconcile a chat's messages with an answer by sending, editing and deleting.

Streams, final answers and restarts all use this one function. Also shields calls from cancellation.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic

import anyio

from bot.bus import Address, Button, OutgoingFile
from bot.core.reasons import reason_of
from channels.delivery.messenger import (
    FileRejected,
    MessageGone,
    MessageRejected,
    MessengerApi,
    OutgoingMessage,
    PieceT,
)
from channels.outgoing_files import rejected_file_text

logger = logging.getLogger(__name__)

OnSent = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class DisplayedAnswer(Generic[PieceT]):
    """The platform messages of one answer, and their known contents.

    Attributes:
        address: The chat.
        key: Identifies the answer in repeated sends.
        reply_to: The id of the message that is answered.
        message_ids: The platform's message ids, in order.
        pieces: The content of each message; None if unknown, because it was sent before a restart.
            An unknown message at a file's position is assumed to hold that file.
        stale_ids: Messages that held parts of the answer and must be deleted.
        all_sent: Whether the last message of the final answer was sent.
        is_new: Whether no earlier process can have sent a part of it.
    """

    address: Address
    key: str
    reply_to: str | None
    message_ids: list[str] = field(default_factory=list)
    pieces: list[PieceT | OutgoingFile | None] = field(default_factory=list)
    stale_ids: list[str] = field(default_factory=list)
    all_sent: bool = False
    is_new: bool = False

    @classmethod
    def from_sent(
        cls, address: Address, key: str, reply_to: str | None, ids: Sequence[str]
    ) -> DisplayedAnswer[PieceT]:
        """Return an answer whose messages were already sent, with unknown contents."""
        return cls(address, key, reply_to, list(ids), [None] * len(ids))

    async def reconcile(
        self,
        messenger: MessengerApi[PieceT],
        wanted: Sequence[PieceT],
        on_sent: OnSent,
        buttons: tuple[Button, ...] = (),
        files: Sequence[OutgoingFile] = (),
        *,
        last: bool,
    ) -> None:
        """Send, edit and delete until the chat shows the answer; safe to repeat after any error.

        Raises:
            MessengerError: A call failed; completed calls are remembered.
        """
        whole: list[PieceT | OutgoingFile] = [*wanted, *files]
        for index, piece in enumerate(whole):
            below = buttons if index == len(wanted) - 1 else ()
            if index < len(self.message_ids):
                await self._change(messenger, index, piece, below)
            else:
                await run_shielded(partial(self._send, messenger, piece, below, on_sent))
        if last:
            self._discard_from(len(whole))
            while self.stale_ids:
                await self._delete(messenger, self.stale_ids[-1])
                self.stale_ids.pop()

    async def _change(
        self,
        messenger: MessengerApi[PieceT],
        index: int,
        piece: PieceT | OutgoingFile,
        buttons: tuple[Button, ...],
    ) -> None:
        known = self.pieces[index]
        if known == piece and not buttons:
            return
        if isinstance(piece, OutgoingFile) and known is None:
            return
        if isinstance(piece, OutgoingFile) or isinstance(known, OutgoingFile):
            self._discard_from(index)
            raise MessageGone("no text becomes a file, and no file a text")  # for programmers
        try:
            await messenger.edit(self.address, self.message_ids[index], piece, buttons)
        except (MessageGone, MessageRejected) as error:
            # Send this message and all that follow again, to keep the order. A message that is only
            # too old to be edited still shows a part of the answer, so it is deleted as well.
            self._discard_from(index)
            raise MessageGone(str(error)) from error
        self.pieces[index] = piece

    def _discard_from(self, index: int) -> None:
        """Forget the messages from an index on; they are deleted at the end."""
        self.all_sent = False
        self.stale_ids += self.message_ids[index:]
        del self.message_ids[index:], self.pieces[index:]

    async def _delete(self, messenger: MessengerApi[PieceT], message_id: str) -> None:
        try:
            await messenger.delete(self.address, message_id)
        except (MessageGone, MessageRejected) as error:
            logger.info("a message of %s could not be deleted: %s", self.address.session, error)

    async def _send(
        self,
        messenger: MessengerApi[PieceT],
        piece: PieceT | OutgoingFile,
        buttons: tuple[Button, ...],
        on_sent: OnSent,
    ) -> None:
        if isinstance(piece, OutgoingFile):
            sent = await self._send_file(messenger, piece)
        else:
            sent = await self._send_text(messenger, piece, buttons)
        self.message_ids.append(sent)
        self.pieces.append(piece)
        await on_sent()

    async def _send_file(self, messenger: MessengerApi[PieceT], file: OutgoingFile) -> str:
        message = OutgoingMessage(self.address, file, f"{self.key}/{len(self.message_ids)}")
        try:
            return await messenger.send_file(message)
        except (MessageGone, MessageRejected) as refusal:
            # The text is already in the chat: the caller adds a note about the file to it.
            raise FileRejected(file, rejected_file_text(file, reason_of(refusal))) from refusal

    async def _send_text(
        self, messenger: MessengerApi[PieceT], piece: PieceT, buttons: tuple[Button, ...]
    ) -> str:
        index = len(self.message_ids)
        message = OutgoingMessage(
            self.address,
            piece,
            f"{self.key}/{index}",
            self.reply_to if index == 0 else None,
            buttons,
            self.is_new,
        )
        try:
            return await messenger.send(message)
        except MessageGone as gone:
            if message.reply_to is None:
                raise MessageRejected(str(gone)) from gone
            # The message that is answered was deleted: send without a reply.
            self.reply_to = None
            return await self._again(messenger, message)

    async def _again(
        self, messenger: MessengerApi[PieceT], message: OutgoingMessage[PieceT]
    ) -> str:
        try:
            return await messenger.send(replace(message, reply_to=None))
        except MessageGone as gone:
            raise MessageRejected(str(gone)) from gone


GRACE_SECONDS = 5.0
"""Seconds that a started call may go on after cancellation."""


async def run_shielded(call: Callable[[], Awaitable[None]]) -> None:
    """Await a call; if cancelled, let it finish for up to ``GRACE_SECONDS`` first.

    Raises:
        Exception: Any error that the call raised.
    """
    scope, done = anyio.CancelScope(shield=True), anyio.Event()
    failures: list[Exception] = []

    async def shielded() -> None:
        with scope:
            try:
                await call()
            except Exception as error:  # noqa: BLE001 (raised again by the caller's task)
                failures.append(error)
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shielded)
        try:
            await done.wait()
        except BaseException:
            scope.deadline = anyio.current_time() + GRACE_SECONDS
            raise
    if failures:
        raise failures[0]
