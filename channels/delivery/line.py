"""One chat's queue: what it shows now, what it is to show next, and when."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Generic

import anyio

from bot.bus import Activity, Answer, ChannelPort, DeliveryReport, Outbound, Partial
from channels.delivery.screen import (
    Flooded,
    FormatRefused,
    MessageGone,
    PieceT,
    Refused,
    Screen,
    ScreenError,
    Unreachable,
)
from channels.delivery.shown import Shown

logger = logging.getLogger(__name__)

_FIRST_RETRY = 1.0
_LONGEST_RETRY = 60.0
_LEAVES_AFTER = 30.0
_LONGEST_TYPING = 600.0
_SHORTEST_PARTIAL = 24
_ENDED = 16
_NOTHING_TO_SEE = "(an answer without words)"


class ChatLine(Generic[PieceT]):
    """Shows what the bus has for one chat, in order; waits for nobody else's.

    Of partials only the newest counts, and none once its answer is there. An answer is tried until
    the platform takes it or refuses it for good.

    Args:
        port: Where reports go.
        screen: The platform.
    """

    def __init__(self, port: ChannelPort, screen: Screen[PieceT]) -> None:
        self._port = port
        self._screen = screen
        self._answers: deque[Answer] = deque()
        self._partial: Partial | None = None
        self._state: Activity | None = None
        self._woken = anyio.Event()
        self._typing_woken = anyio.Event()
        self._streamed: Shown[PieceT] | None = None
        self._not_before = 0.0
        self._flooded_until = 0.0
        self._ended: deque[str] = deque(maxlen=_ENDED)
        self._drafts = True
        self._types_until = 0.0

    @property
    def empty(self) -> bool:
        """True where nothing waits to be shown."""
        return not self._answers and self._partial is None and self._state is None

    def put(self, outbound: Outbound) -> None:
        """Add something; returns at once."""
        if isinstance(outbound, Answer):
            self._answers.append(outbound)
        elif isinstance(outbound, Partial):
            if outbound.stream not in self._ended:
                self._partial = outbound
        else:
            self._state = None if outbound.state == "idle" else outbound
            self._types_until = anyio.current_time() + _LONGEST_TYPING
            self._typing_woken.set()
        self._woken.set()

    def calm(self) -> None:
        """Forget what runs, after something broke down; answers stay."""
        self._state = self._partial = None

    async def run(self) -> None:
        """Serve until there has been nothing to do for a while."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._typing)
            while await self._step():
                pass
            tasks.cancel_scope.cancel()

    async def _step(self) -> bool:
        """Do what is next; False where the line may be given up."""
        if self._answers:
            await self._deliver(self._answers.popleft())
            return True
        pause = self._not_before - anyio.current_time() if self._partial else _LEAVES_AFTER
        if self._partial is not None and pause <= 0:
            await self._show(self._partial)
            return True
        self._woken = anyio.Event()
        with anyio.move_on_after(pause):
            await self._woken.wait()
            return True
        return not self.empty

    # Typing.

    async def _typing(self) -> None:
        while True:
            state = self._state
            if state is None or anyio.current_time() > self._types_until:
                self._state = None
                self._typing_woken = anyio.Event()
                await self._typing_woken.wait()
                continue
            # A platform that is asked during a flood makes it longer.
            await anyio.sleep_until(self._flooded_until)
            pause = self._screen.pace(state.address).typing
            try:
                await self._screen.typing(state.address)
            except Flooded as flood:
                pause = max(pause, flood.seconds)
            except ScreenError as error:
                logger.debug("no typing sign: %s", error)
            self._typing_woken = anyio.Event()
            with anyio.move_on_after(pause):
                await self._typing_woken.wait()

    # Streams.

    async def _show(self, partial: Partial) -> None:
        """Show a stream's text so far; whatever goes wrong, the answer comes later all the same."""
        self._partial = None
        pace = self._screen.pace(partial.address)
        if self._streamed is None or self._streamed.key != partial.stream:
            self._streamed = Shown.known(
                partial.address, partial.stream, partial.reply_to, partial.shown
            )
            if not partial.shown:
                self._not_before = anyio.current_time() + pace.first
                self._partial = partial
                return
        if len(partial.text) < _SHORTEST_PARTIAL:
            return
        self._not_before = anyio.current_time() + pace.edit
        try:
            await self._show_pieces(self._streamed, partial)
        except Flooded as flood:
            self._not_before = anyio.current_time() + max(pace.edit, flood.seconds)
            self._flooded_until = anyio.current_time() + flood.seconds
            self._again(partial)
        except Unreachable:
            self._not_before = anyio.current_time() + _FIRST_RETRY + pace.edit
            self._again(partial)
        except ScreenError as error:
            logger.debug("a stream is not shown further: %s", error)
            self._ended.append(partial.stream)

    def _again(self, partial: Partial) -> None:
        """Show it later, unless a newer one has come meanwhile."""
        if self._partial is None:
            self._partial = partial

    async def _show_pieces(self, shown: Shown[PieceT], partial: Partial) -> None:
        pieces = self._screen.render(partial.text)
        if not pieces:
            return
        if self._drafts and not shown.ids[len(pieces) - 1 :]:
            self._drafts = await self._screen.draft(partial.address, partial.stream, pieces[-1])
            if self._drafts:
                pieces = pieces[:-1]

        async def sent() -> None:
            await self._report_part(shown, partial.stream)

        await shown.bring_to(self._screen, pieces, sent, last=False)

    # Answers.

    async def _deliver(self, answer: Answer) -> None:
        """Show an answer whole, and report what became of it."""
        shown = self._begun(answer)
        if self._partial is not None and self._partial.stream == answer.stream:
            self._partial = None
        if shown is self._streamed:
            self._state = None
        if answer.stream is not None:
            self._ended.append(answer.stream)
        error: str | None = None
        try:
            await self._insist(shown, self._pieces(answer.text), answer)
        except ScreenError as refusal:
            logger.info("an answer for %s was refused: %s", answer.address.session, refusal)
            error = str(refusal)
        except Exception:  # else the answer would end the channel again at every start
            logger.exception("an answer for %s could not be shown", answer.address.session)
            error = "an error inside tapebot, which is in its log"
        except BaseException:
            # A stop: what is shown already is completed after the next start.
            with anyio.CancelScope(shield=True):
                await self._report_part(shown, answer.id)
            raise
        if shown is self._streamed:
            self._streamed = None
        session = answer.address.session
        report = DeliveryReport(session, answer.id, error is None, tuple(shown.ids), error)
        await self._port.report(report)

    def _pieces(self, text: str) -> Sequence[PieceT]:
        """Return an answer as messages; at least one, also of a text without a visible sign."""
        found = self._screen.render(text) or self._screen.plain(text)
        return found or self._screen.plain(_NOTHING_TO_SEE)

    def _begun(self, answer: Answer) -> Shown[PieceT]:
        streamed = self._streamed
        if streamed is not None and streamed.key == answer.stream:
            return streamed
        ids = answer.shown
        if not ids and answer.replaces is not None:
            ids = (answer.replaces,)
        return Shown.known(answer.address, answer.id, answer.reply_to, ids)

    async def _insist(self, shown: Shown[PieceT], pieces: Sequence[PieceT], answer: Answer) -> None:
        """Try until the platform shows it.

        Raises:
            Refused: It never will.
        """

        async def sent() -> None:
            if len(shown.ids) < len(pieces):
                await self._report_part(shown, answer.id)

        pause, plain = _FIRST_RETRY, False
        # A platform that is asked again during a flood makes it longer.
        await anyio.sleep_until(self._flooded_until)
        while True:
            try:
                await shown.bring_to(self._screen, pieces, sent, answer.buttons, last=True)
            except Flooded as flood:
                await anyio.sleep(flood.seconds)
            except Unreachable as error:
                logger.info("an answer waits %g s: %s", pause, error)
                await anyio.sleep(pause)
                pause = min(pause * 2, _LONGEST_RETRY)
            except MessageGone as gone:
                logger.debug("a message is sent anew: %s", gone)
            except FormatRefused as error:
                if plain:
                    raise Refused(str(error)) from error
                logger.info("the formatting of an answer was refused: %s", error)
                pieces, plain = self._screen.plain(answer.text) or pieces, True
            else:
                return

    async def _report_part(self, shown: Shown[PieceT], answer: str) -> None:
        if not shown.ids:
            return
        session = shown.address.session
        report = DeliveryReport(session, answer, platform_ids=tuple(shown.ids), final=False)
        await self._port.report(report)
