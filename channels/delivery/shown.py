"""Bringing what a chat shows to what it should show: one function for streams, ends and restarts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic

from bot.bus import Address, Button
from channels.delivery.finishing import finish
from channels.delivery.screen import MessageGone, Outgoing, PieceT, Refused, Screen

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
        pieces: What each message holds; None where that is not known (sent before a restart).
        astray: Messages that carried parts of it and must go.
    """

    address: Address
    key: str
    reply_to: str | None
    ids: list[str] = field(default_factory=list)
    pieces: list[PieceT | None] = field(default_factory=list)
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
        *,
        last: bool,
    ) -> None:
        """Edit, send and take away until the chat shows this; safe to repeat after any error.

        Args:
            screen: The platform.
            wanted: The messages that are to be there.
            on_sent: Called after each new message.
            buttons: Below the last of them.
            last: No more will come: what is too much is taken away.

        Raises:
            ScreenError: A call failed; what was done before it is remembered.
        """
        for place, piece in enumerate(wanted):
            below = buttons if place == len(wanted) - 1 else ()
            if place < len(self.ids):
                await self._change(screen, place, piece, below)
            else:
                await finish(partial(self._send, screen, piece, below, on_sent))
        if last:
            self.astray += self.ids[len(wanted) :]
            del self.ids[len(wanted) :], self.pieces[len(wanted) :]
            while self.astray:
                await self._take_away(screen, self.astray[-1])
                self.astray.pop()

    async def _change(
        self, screen: Screen[PieceT], place: int, piece: PieceT, buttons: tuple[Button, ...]
    ) -> None:
        if self.pieces[place] == piece and not buttons:
            return
        try:
            await screen.edit(self.address, self.ids[place], piece, buttons)
        except (MessageGone, Refused) as error:
            # It and what follows it are sent anew, so that the order stays.
            there = place if isinstance(error, Refused) else place + 1
            self.astray += self.ids[there:]
            del self.ids[place:], self.pieces[place:]
            raise MessageGone(str(error)) from error
        self.pieces[place] = piece

    async def _take_away(self, screen: Screen[PieceT], message_id: str) -> None:
        try:
            await screen.delete(self.address, message_id)
        except (MessageGone, Refused) as error:
            logger.info("a message of %s stays: %s", self.address.session, error)

    async def _send(
        self,
        screen: Screen[PieceT],
        piece: PieceT,
        buttons: tuple[Button, ...],
        on_sent: OnSent,
    ) -> None:
        place = len(self.ids)
        message = Outgoing(
            self.address,
            piece,
            f"{self.key}/{place}",
            self.reply_to if place == 0 else None,
            buttons,
        )
        try:
            sent = await screen.send(message)
        except MessageGone as gone:
            if message.reply_to is None:
                raise Refused(str(gone)) from gone
            # The message that is answered is not there any more.
            self.reply_to = None
            sent = await self._again(screen, message)
        self.ids.append(sent)
        self.pieces.append(piece)
        await on_sent()

    async def _again(self, screen: Screen[PieceT], message: Outgoing[PieceT]) -> str:
        try:
            return await screen.send(replace(message, reply_to=None))
        except MessageGone as gone:
            raise Refused(str(gone)) from gone
