"""One chat's queue: what it shows now, what it is to show next, and when."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from bot.bus import Answer, Button, ChannelPort, DeliveryReport, Outbound, OutgoingFile, Partial
from channels.delivery.answer_stream import AnswerStream
from channels.delivery.displayed_answer import DisplayedAnswer
from channels.delivery.messenger import (
    FileRejected,
    FormattingRejected,
    MessageGone,
    MessageRejected,
    MessengerApi,
    MessengerError,
    PieceT,
    PlatformUnreachable,
    RateLimited,
    RateLimitState,
)
from channels.delivery.typing_indicator import TypingIndicator


class OutboundDispatcher(Generic[PieceT]):
    """Shows everything that a channel's port brings, until cancelled.

    A chat that waits (a flood, a lost network) delays no other: each has a line, made when there is
    something for it and given up when there has been nothing for a while.

    Args:
        port: The channel's two ends.
        screen: The platform.
    """

    def __init__(self, port: ChannelPort, screen: MessengerApi[PieceT]) -> None:
        self._port = port
        self._screen = screen
        self._lines: dict[str, ChatQueue[PieceT]] = {}
        # A room is remembered as long as a line of it lives.
        self._rooms: WeakValueDictionary[str, RateLimitState] = WeakValueDictionary()

    async def run(self) -> None:
        """Serve until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._hand_over(await self._port.receive(), tasks)

    def statistics(self) -> dict[str, int]:
        """Return how many chats have a line."""
        return {"lines": len(self._lines)}

    def _hand_over(self, outbound: Outbound, tasks: TaskGroup) -> None:
        session = outbound.address.session
        line = self._lines.get(session)
        if line is None:
            room = self._rooms.setdefault(
                self._screen.rate_limit_key(outbound.address), RateLimitState()
            )
            line = self._lines[session] = ChatQueue(self._port, self._screen, room)
            tasks.start_soon(self._serve, session, line)
        line.put(outbound)

    async def _serve(self, session: str, line: ChatQueue[PieceT]) -> None:
        try:
            await self._contained(session, line)
            # What came while it was closing its books must not be lost.
            while not line.empty:
                await self._contained(session, line)
        finally:
            del self._lines[session]

    async def _contained(self, session: str, line: ChatQueue[PieceT]) -> None:
        try:
            await line.run()
        except Exception:  # whatever it is, other chats go on, and this one with what comes next
            logger.exception("showing something in %s broke down", session)
            line.reset()


logger = logging.getLogger(__name__)

_FIRST_RETRY = 1.0
_LONGEST_RETRY = 60.0
_LEAVES_AFTER = 30.0
_BREAKDOWNS = 3
_NOTHING_TO_SEE = "(an answer without words)"


@dataclass(frozen=True, slots=True)
class _Form(Generic[PieceT]):
    """How an answer is shown: its text, and that as messages."""

    text: str
    pieces: Sequence[PieceT]
    buttons: tuple[Button, ...]
    files: tuple[OutgoingFile, ...]
    plain: bool = False


class _Pauses:
    """Waits between tries, longer and longer."""

    def __init__(self) -> None:
        self._pause = _FIRST_RETRY
        self._breakdowns = 0

    async def wait_after(self, error: Exception) -> None:
        """Wait; what the platform did not cause is raised again after a few tries."""
        self._breakdowns += not isinstance(error, PlatformUnreachable)
        if self._breakdowns == _BREAKDOWNS:
            raise error
        logger.info("an answer waits %g s: %s", self._pause, error)
        await anyio.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_RETRY)


class ChatQueue(Generic[PieceT]):
    """Shows what the bus has for one chat, in order; waits for nobody else's.

    An answer is tried until the platform takes it or refuses it for good.

    Args:
        port: Where reports go.
        screen: The platform.
        room: The chat's limits.
    """

    def __init__(
        self, port: ChannelPort, screen: MessengerApi[PieceT], room: RateLimitState
    ) -> None:
        self._port = port
        self._screen = screen
        self._room = room
        self._answers: deque[Answer] = deque()
        self._woken = anyio.Event()
        self._typing = TypingIndicator(screen, room)
        self._stream = AnswerStream(screen, room, self._report_part)

    @property
    def empty(self) -> bool:
        """True where nothing waits to be shown."""
        return not self._answers and not self._stream.has_pending and not self._typing.is_active

    def put(self, outbound: Outbound) -> None:
        """Add something; returns at once."""
        if isinstance(outbound, Answer):
            self._answers.append(outbound)
        elif isinstance(outbound, Partial):
            self._stream.put(outbound)
        else:
            self._typing.put(outbound)
        self._woken.set()

    def reset(self) -> None:
        """Forget what runs, after something broke down; answers stay."""
        self._stream.clear()
        self._typing.stop()

    async def run(self) -> None:
        """Serve until there has been nothing to do for a while."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._typing.run)
            while await self._step():
                pass
            tasks.cancel_scope.cancel()

    async def _step(self) -> bool:
        """Do what is next; False where the line may be given up."""
        if self._answers:
            await self._deliver(self._answers.popleft())
            return True
        due = self._stream.seconds_until_due(busy=self._typing.is_active)
        if due <= 0:
            await self._stream.show()
            return True
        self._woken = anyio.Event()
        with anyio.move_on_after(min(due, _LEAVES_AFTER)):
            await self._woken.wait()
            return True
        return not self.empty

    async def _deliver(self, answer: Answer) -> None:
        """Show an answer whole, and report what became of it."""
        shown = self._stream.end(answer)
        error: str | None = None
        try:
            await self._insist(shown, answer)
        except MessengerError as refusal:
            logger.warning("an answer for %s was refused: %s", answer.address.session, refusal)
            error = str(refusal)
        except Exception:  # else the answer would end the channel again at every start
            logger.exception("an answer for %s could not be shown", answer.address.session)
            error = "an error inside tapebot, which is in its log"
        except BaseException:
            # A stop: what is shown already is completed after the next start.
            with anyio.CancelScope(shield=True):
                await self._report_part(shown, answer.id)
            raise
        session = answer.address.session
        report = DeliveryReport(session, answer.id, error is None, tuple(shown.message_ids), error)
        await self._port.report(report)

    def _pieces(self, text: str, *, plain: bool = False) -> Sequence[PieceT]:
        """Return an answer as messages; at least one, also of a text without a visible sign."""
        found = () if plain else self._screen.render(text)
        return (
            found or self._screen.render_plain(text) or self._screen.render_plain(_NOTHING_TO_SEE)
        )

    async def _insist(self, shown: DisplayedAnswer[PieceT], answer: Answer) -> None:
        """Try until the platform shows it.

        Raises:
            Refused: It never will.
        """
        form = _Form(answer.text, self._pieces(answer.text), answer.buttons, answer.files)
        pauses = _Pauses()
        while True:
            await self._room.wait()
            count = len(form.pieces) + len(form.files)
            sent = partial(self._report_unless_last, shown, answer.id, count)
            try:
                await shown.reconcile(
                    self._screen, form.pieces, sent, form.buttons, form.files, last=True
                )
            except RateLimited as flood:
                self._room.back_off(flood.seconds)
            except MessageGone as gone:
                logger.debug("a message is sent anew: %s", gone)
            except FormattingRejected as error:
                form = self._plainer(form, error)
            except FileRejected as refusal:
                form = self._without(form, refusal)
            except MessageRejected:
                raise
            except Exception as error:  # noqa: BLE001 (raised again after a few tries)
                await pauses.wait_after(error)
            else:
                return

    def _plainer(self, form: _Form[PieceT], error: FormattingRejected) -> _Form[PieceT]:
        """Return what is tried when the form was refused: first plain text, then without buttons."""
        logger.info("the form of an answer was refused: %s", error)
        if not form.plain:
            return replace(
                form, pieces=self._screen.render_plain(form.text) or form.pieces, plain=True
            )
        if form.buttons:
            return replace(form, buttons=())
        raise MessageRejected(str(error)) from error

    def _without(self, form: _Form[PieceT], refusal: FileRejected) -> _Form[PieceT]:
        """Return what is shown when a file cannot be: a word on it in the text."""
        logger.info("a file is left out: %s", refusal)
        text = f"{form.text}\n\n{refusal}"
        files = tuple(one for one in form.files if one != refusal.file)
        return replace(form, text=text, pieces=self._pieces(text, plain=form.plain), files=files)

    async def _report_unless_last(
        self, shown: DisplayedAnswer[PieceT], answer: str, count: int
    ) -> None:
        if len(shown.message_ids) < count:
            await self._report_part(shown, answer)

    async def _report_part(self, shown: DisplayedAnswer[PieceT], answer: str) -> None:
        if shown.message_ids:
            session = shown.address.session
            report = DeliveryReport(
                session, answer, platform_ids=tuple(shown.message_ids), final=False
            )
            await self._port.report(report)
