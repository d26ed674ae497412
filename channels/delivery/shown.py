"""Bringing what a chat shows to what it should show: one function for streams, ends and restarts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic

from bot.bus import Address, Button, OutFile
from channels.delivery.finishing import finish
from channels.delivery.screen import (
    FileRefused,
    MessageGone,
    Outgoing,
    PieceT,
    Refused,
    Screen,
)
from channels.outfiles import not_taken

logger = logging.getLogger(__name__)

OnSent = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Shown(Generic[PieceT]):
    """The platform messages of one answer, and what each is known to hold.

    Attributes:
        address: Where.
        key: Names the answer in repeated sends.
        reply_to: The message that is answered.
        ids: The platform's ids, in order.
        pieces: What each message holds; None where that is not known (sent before a restart): then
            what stands in a file's place is taken for the file.
        astray: Messages that carried parts of it and must go.
    """

    address: Address
    key: str
    reply_to: str | None
    ids: list[str] = field(default_factory=list)
    pieces: list[PieceT | OutFile | None] = field(default_factory=list)
    astray: list[str] = field(default_factory=list)

    @classmethod
    def known(
        cls, address: Address, key: str, reply_to: str | None, ids: Sequence[str]
    ) -> Shown[PieceT]:
        """Return an answer of which these messages were sent before."""
        return cls(address, key, reply_to, list(ids), [None] * len(ids))

    async def bring_to(
        self,
        screen: Screen[PieceT],
        wanted: Sequence[PieceT],
        on_sent: OnSent,
        buttons: tuple[Button, ...] = (),
        files: Sequence[OutFile] = (),
        *,
        last: bool,
    ) -> None:
        """Edit, send and take away until the chat shows this; safe to repeat after any error.

        Args:
            screen: The platform.
            wanted: The messages that are to be there.
            on_sent: Called after each new message.
            buttons: Below the last of them.
            files: That are to be there below them, a message each.
            last: No more will come: what is too much is taken away.

        Raises:
            ScreenError: A call failed; what was done before it is remembered.
        """
        whole: list[PieceT | OutFile] = [*wanted, *files]
        for place, piece in enumerate(whole):
            below = buttons if place == len(wanted) - 1 else ()
            if place < len(self.ids):
                await self._change(screen, place, piece, below)
            else:
                await finish(partial(self._send, screen, piece, below, on_sent))
        if last:
            self._part_from(len(whole))
            while self.astray:
                await self._take_away(screen, self.astray[-1])
                self.astray.pop()

    async def _change(
        self,
        screen: Screen[PieceT],
        place: int,
        piece: PieceT | OutFile,
        buttons: tuple[Button, ...],
    ) -> None:
        known = self.pieces[place]
        if known == piece and not buttons:
            return
        if isinstance(piece, OutFile) and known is None:
            return
        if isinstance(piece, OutFile) or isinstance(known, OutFile):
            self._part_from(place)
            raise MessageGone("no text becomes a file, and no file a text")
        try:
            await screen.edit(self.address, self.ids[place], piece, buttons)
        except (MessageGone, Refused) as error:
            # It and what follows it are sent anew, so that the order stays. A message that is only too
            # old to be edited still stands with a part of the answer: it is taken away as well.
            self._part_from(place)
            raise MessageGone(str(error)) from error
        self.pieces[place] = piece

    def _part_from(self, place: int) -> None:
        """Let go of the messages from a place on; they are taken away at the end."""
        self.astray += self.ids[place:]
        del self.ids[place:], self.pieces[place:]

    async def _take_away(self, screen: Screen[PieceT], message_id: str) -> None:
        try:
            await screen.delete(self.address, message_id)
        except (MessageGone, Refused) as error:
            logger.info("a message of %s stays: %s", self.address.session, error)

    async def _send(
        self,
        screen: Screen[PieceT],
        piece: PieceT | OutFile,
        buttons: tuple[Button, ...],
        on_sent: OnSent,
    ) -> None:
        if isinstance(piece, OutFile):
            sent = await self._send_file(screen, piece)
        else:
            sent = await self._send_text(screen, piece, buttons)
        self.ids.append(sent)
        self.pieces.append(piece)
        await on_sent()

    async def _send_file(self, screen: Screen[PieceT], file: OutFile) -> str:
        message = Outgoing(self.address, file, f"{self.key}/{len(self.ids)}")
        try:
            return await screen.send_file(message)
        except (MessageGone, Refused) as refusal:
            # The chat has the text already; that a file cannot be there is a word in it.
            raise FileRefused(file, not_taken(file, str(refusal))) from refusal

    async def _send_text(
        self, screen: Screen[PieceT], piece: PieceT, buttons: tuple[Button, ...]
    ) -> str:
        place = len(self.ids)
        message = Outgoing(
            self.address,
            piece,
            f"{self.key}/{place}",
            self.reply_to if place == 0 else None,
            buttons,
        )
        try:
            return await screen.send(message)
        except MessageGone as gone:
            if message.reply_to is None:
                raise Refused(str(gone)) from gone
            # The message that is answered is not there any more.
            self.reply_to = None
            return await self._again(screen, message)

    async def _again(self, screen: Screen[PieceT], message: Outgoing[PieceT]) -> str:
        try:
            return await screen.send(replace(message, reply_to=None))
        except MessageGone as gone:
            raise Refused(str(gone)) from gone
