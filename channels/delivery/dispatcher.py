"""Dispatch outbound messages to one queue per chat, and deliver answers in order, with retries."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup, TaskStatus

from bot.bus import (
    Address,
    Answer,
    Button,
    ChannelPort,
    DeliveryReport,
    Outbound,
    OutgoingFile,
    PartialAnswer,
)
from bot.core.i18n import N_, _
from bot.core.reasons import Reason, reason_of
from channels.delivery.answer_stream import AnswerStream
from channels.delivery.displayed_answer import GRACE_SECONDS, DisplayedAnswer
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
from channels.delivery.notice import Notice
from channels.delivery.typing_indicator import TypingIndicator

_MOST_NOTICES = 3
_MOST_CHATS = 1_000


class OutboundDispatcher(Generic[PieceT]):
    """Deliver everything that a channel's port yields, and what the channel itself says.

    Each chat has its own queue, so a rate limit or a lost network delays only the chats that it
    concerns. A queue is created when there is something for the chat and dropped after a while
    without work.
    """

    def __init__(self, port: ChannelPort, messenger: MessengerApi[PieceT]) -> None:
        self._port = port
        self._messenger = messenger
        self._queues: dict[str, ChatQueue[PieceT]] = {}
        self._last_answers: OrderedDict[str, frozenset[str]] = OrderedDict()
        # Rate-limit state lives as long as a queue that uses it.
        self._rate_limits: WeakValueDictionary[str, RateLimitState] = WeakValueDictionary()
        self._tasks: TaskGroup
        self._stopped = False

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            try:
                while True:
                    self._hand_over(await self._port.receive())
            finally:
                self._stopped = True

    def tell(self, address: Address, text: str, reply_to: str | None = None) -> None:
        """Show a chat a text without waiting; drop it if three others already wait there."""
        waiting = self._queues[address.session].notices if address.session in self._queues else []
        if len(waiting) < _MOST_NOTICES:
            self._hand_over(Notice(address, text, reply_to))

    def refuse(self, address: Address, reason: str, message_id: str, name: str) -> None:
        """Tell a chat, without waiting, that a message was not taken.

        The notice replies to the message. It also names the messages that are refused for the same
        reason before it is sent, so that each is told of, however many there are.

        Args:
            address: The chat.
            reason: Why, and what the sender can do.
            message_id: The platform's id of the message.
            name: The message's beginning; empty if the notice names no other message.
        """
        queue = self._queues.get(address.session)
        for notice in queue.notices if queue and name else ():
            if notice.names and notice.text == reason:
                notice.add(name)
                return
        self._hand_over(Notice(address, reason, message_id, [name] if name else []))

    def is_last_answer(self, session: str, message_id: str) -> bool:
        """Return whether a message carries the last answer in a chat, or a part of it."""
        return message_id in self._last_answers.get(session, ())

    def statistics(self) -> dict[str, int]:
        """Return the number of chats that have a queue."""
        return {"lines": len(self._queues)}

    def _hand_over(self, outbound: Outbound | Notice) -> None:
        if self._stopped:
            return  # a webhook's last update may still be refused, and must not fail of that
        session = outbound.address.session
        queue = self._queues.get(session)
        if queue is None:
            rate_limit = self._rate_limits.setdefault(
                self._messenger.rate_limit_key(outbound.address), RateLimitState()
            )
            queue = self._queues[session] = ChatQueue(
                self._port, self._messenger, rate_limit, partial(self._note_answer, session)
            )
            self._tasks.start_soon(self._serve, session, queue)
        queue.put(outbound)

    def _note_answer(self, session: str, message_ids: tuple[str, ...]) -> None:
        self._last_answers[session] = frozenset(message_ids)
        self._last_answers.move_to_end(session)
        if len(self._last_answers) > _MOST_CHATS:
            self._last_answers.popitem(last=False)

    async def _serve(self, session: str, queue: ChatQueue[PieceT]) -> None:
        try:
            await self._run_logged(session, queue)
            # Messages that arrived while the queue was ending must not be lost.
            while not queue.empty:
                await self._run_logged(session, queue)
        finally:
            del self._queues[session]

    async def _run_logged(self, session: str, queue: ChatQueue[PieceT]) -> None:
        try:
            await queue.run()
        except Exception:  # other chats go on, and this one goes on with its next message
            logger.exception("showing something in %s failed", session)
            queue.reset()


logger = logging.getLogger(__name__)

_FIRST_RETRY = 1.0
_LONGEST_RETRY = 60.0
_IDLE_SECONDS = 30.0
_MAX_UNEXPECTED_ERRORS = 3
_NOTHING_TO_SEE = N_("(an answer without words)")


@dataclass(frozen=True, slots=True)
class _Form(Generic[PieceT]):
    """The form in which an answer is sent: its text, and the text as platform messages."""

    text: str
    pieces: Sequence[PieceT]
    buttons: tuple[Button, ...]
    files: tuple[OutgoingFile, ...]
    plain: bool = False


class _Backoff:
    """Wait between tries with exponential backoff."""

    def __init__(self) -> None:
        self._pause = _FIRST_RETRY
        self._breakdowns = 0

    async def wait_after(self, error: Exception) -> None:
        """Wait before the next try.

        Raises:
            Exception: ``error`` itself, if it is the third that is not ``PlatformUnreachable``.
        """
        self._breakdowns += not isinstance(error, PlatformUnreachable)
        if self._breakdowns == _MAX_UNEXPECTED_ERRORS:
            raise error
        logger.info("an answer waits %g s: %s", self._pause, error)
        await anyio.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_RETRY)


class ChatQueue(Generic[PieceT]):
    """Deliver the answers, partials and typing state of one chat, in order.

    An answer is retried until the platform accepts it or rejects it permanently.
    """

    def __init__(
        self,
        port: ChannelPort,
        messenger: MessengerApi[PieceT],
        rate_limit: RateLimitState,
        note_answer: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._port = port
        self._messenger = messenger
        self._rate_limit = rate_limit
        self._note_answer = note_answer
        self._answers: deque[Answer | Notice] = deque()
        self._woken = anyio.Event()
        self._typing = TypingIndicator(messenger, rate_limit)
        self._stream = AnswerStream(messenger, rate_limit, self._report_part)

    @property
    def empty(self) -> bool:
        """Whether nothing is waiting to be displayed."""
        return not self._answers and not self._stream.has_pending and not self._typing.is_active

    @property
    def notices(self) -> list[Notice]:
        """What the channel itself says and has not begun to send."""
        return [waiting for waiting in self._answers if isinstance(waiting, Notice)]

    def put(self, outbound: Outbound | Notice) -> None:
        """Queue a message without waiting."""
        if isinstance(outbound, Answer | Notice):
            self._answers.append(outbound)
        elif isinstance(outbound, PartialAnswer):
            self._stream.put(outbound)
        else:
            self._typing.put(outbound)
        self._woken.set()

    def reset(self) -> None:
        """Drop the stream and the typing indicator after an unexpected error; keep the answers."""
        self._stream.clear()
        self._typing.stop()

    async def run(self) -> None:
        """Deliver until there has been nothing to do for 30 seconds."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._typing.run)
            while await self._step():
                pass
            tasks.cancel_scope.cancel()

    async def _step(self) -> bool:
        """Do the next thing; return False if the queue may be dropped."""
        if self._answers:
            waiting = self._answers.popleft()
            if isinstance(waiting, Notice):
                await self._show(waiting)
            else:
                await self._deliver(waiting)
            return True
        due = self._stream.seconds_until_due(busy=self._typing.is_active)
        if due <= 0:
            await self._stream.show()
            return True
        self._woken = anyio.Event()
        with anyio.move_on_after(min(due, _IDLE_SECONDS)):
            await self._woken.wait()
            return True
        return not self.empty

    async def _deliver(self, answer: Answer) -> None:
        """Deliver a final answer and report the result."""
        displayed = self._stream.end(answer)
        error: str | None = None
        try:
            if not await self._told_alone(answer):
                form = _Form(answer.text, self._pieces(answer.text), answer.buttons, answer.files)
                await self._retry_until_accepted(displayed, form, answer)
        except MessengerError as refusal:
            logger.warning("an answer for %s was refused: %s", answer.address.session, refusal)
            error = reason_of(refusal)
        except Exception:  # otherwise the answer would end the channel again at every start
            logger.exception("an answer for %s could not be shown", answer.address.session)
            error = Reason("delivery_broken")
        except BaseException:
            await self._report_stopped(displayed, answer)
            raise
        await self._report_final(displayed, answer, error)

    async def _show(self, notice: Notice) -> None:
        """Show what the channel itself says."""
        answer = notice.as_answer()
        displayed = DisplayedAnswer[PieceT](answer.address, answer.id, answer.reply_to, is_new=True)
        form = _Form(answer.text, self._pieces(answer.text, plain=True), (), (), plain=True)
        try:
            await self._retry_until_accepted(displayed, form)
        except MessengerError as refusal:
            logger.info("a notice to %s was refused: %s", answer.address.session, refusal)

    async def _told_alone(self, answer: Answer) -> bool:
        """Tell who pressed a button what it did, if the platform still can; else the chat is told."""
        if not answer.alone or answer.files or answer.buttons or answer.reply_to is None:
            return False
        try:
            pieces = self._pieces(answer.text)
            return await self._messenger.tell_presser(answer.address, answer.reply_to, pieces)
        except MessengerError as error:
            logger.info("the result of a press goes to its chat: %s", error)
            return False

    def _pieces(self, text: str, *, plain: bool = False) -> Sequence[PieceT]:
        """Return an answer as at least one message, even if its text has no visible character."""
        found = () if plain else self._messenger.render(text)
        return (
            found
            or self._messenger.render_plain(text)
            or self._messenger.render_plain(_(_NOTHING_TO_SEE))
        )

    async def _retry_until_accepted(
        self,
        displayed: DisplayedAnswer[PieceT],
        form: _Form[PieceT],
        answer: Answer | None = None,
    ) -> None:
        """Retry until the platform accepts a text, and report the parts of an answer.

        Raises:
            MessageRejected: The platform rejected it permanently.
        """
        backoff = _Backoff()
        while True:
            await self._rate_limit.wait()
            count = len(form.pieces) + len(form.files)
            sent = partial(self._note_sent, displayed, answer, count)
            try:
                await displayed.reconcile(
                    self._messenger, form.pieces, sent, form.buttons, form.files, last=True
                )
            except RateLimited as flood:
                self._rate_limit.back_off(flood.seconds)
            except MessageGone as gone:
                logger.debug("a message is sent again: %s", gone)
            except FormattingRejected as error:
                form = self._plainer(form, error)
            except FileRejected as refusal:
                form = self._without(form, refusal)
            except MessageRejected:
                raise
            except Exception as error:  # noqa: BLE001 (raised again after a few tries)
                await backoff.wait_after(error)
            else:
                return

    def _plainer(self, form: _Form[PieceT], error: FormattingRejected) -> _Form[PieceT]:
        """Return a simpler form after a rejection: first plain text, then without buttons.

        Raises:
            MessageRejected: There is no simpler form.
        """
        logger.info("the format of an answer was refused: %s", error)
        if not form.plain:
            return replace(
                form, pieces=self._messenger.render_plain(form.text) or form.pieces, plain=True
            )
        if form.buttons:
            return replace(form, buttons=())
        raise MessageRejected(str(error)) from error

    def _without(self, form: _Form[PieceT], refusal: FileRejected) -> _Form[PieceT]:
        """Return the form without a rejected file, with a note about it in the text."""
        logger.info("a file is skipped: %s", refusal)
        text = f"{form.text}\n\n{refusal}"
        files = tuple(
            outgoing_file for outgoing_file in form.files if outgoing_file != refusal.file
        )
        return replace(form, text=text, pieces=self._pieces(text, plain=form.plain), files=files)

    async def _note_sent(
        self, displayed: DisplayedAnswer[PieceT], answer: Answer | None, count: int
    ) -> None:
        displayed.all_sent = len(displayed.message_ids) >= count
        if answer is not None and not displayed.all_sent:
            await self._report_part(displayed, answer.session, answer.id)

    async def _report_final(
        self, displayed: DisplayedAnswer[PieceT], answer: Answer, error: str | None
    ) -> None:
        ids = tuple(displayed.message_ids)
        self._note_answer(ids)
        report = DeliveryReport(answer.session, answer.id, error is None, ids, error)
        await self._port.report(report)

    async def _report_stopped(self, displayed: DisplayedAnswer[PieceT], answer: Answer) -> None:
        """Report what was sent before a stop, so that the next start completes it.

        A complete answer is reported as final: otherwise another process that takes over the
        channel would send it again, because it does not learn of parts in time.
        """
        if displayed.all_sent and not displayed.stale_ids:
            with anyio.move_on_after(GRACE_SECONDS, shield=True):
                await self._report_final(displayed, answer, None)
        else:
            with anyio.CancelScope(shield=True):
                await self._report_part(displayed, answer.session, answer.id)

    async def _report_part(
        self, displayed: DisplayedAnswer[PieceT], session: str, answer: str
    ) -> None:
        if ids := tuple(displayed.message_ids):
            self._note_answer(ids)
            await self._port.report(DeliveryReport(session, answer, platform_ids=ids, final=False))
