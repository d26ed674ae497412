"""Stream partial answers by editing messages or by drafts, best effort.

The final answer is delivered separately, so a failure here loses nothing.

Rule 1: only the newest partial counts, and none of a stream that has ended.
Rule 2: a draft is not a message. It is sent again before the platform drops it, and a rate limit on
    drafts does not delay messages.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic

import anyio

from bot.bus import Answer, PartialAnswer
from channels.delivery.displayed_answer import DisplayedAnswer
from channels.delivery.messenger import (
    MessengerApi,
    MessengerError,
    PieceT,
    PlatformUnreachable,
    RateLimited,
    RateLimitState,
)

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_MIN_CHARACTERS = 24
_MAX_ENDED_STREAMS = 16
_DRAFT_SECONDS = 20.0
"""Seconds after which a draft is sent again; Telegram drops it after 30."""

_DRAFT_INTERVAL_SECONDS = 1.0

ReportPart = Callable[[DisplayedAnswer[PieceT], str, str], Awaitable[None]]


class AnswerStream(Generic[PieceT]):
    """The current stream of one chat."""

    def __init__(
        self,
        messenger: MessengerApi[PieceT],
        rate_limit: RateLimitState,
        report: ReportPart[PieceT],
    ) -> None:
        self._messenger = messenger
        self._rate_limit = rate_limit
        self._report = report
        self._waiting: PartialAnswer | None = None
        self._displayed: DisplayedAnswer[PieceT] | None = None
        self._ended: deque[str] = deque(maxlen=_MAX_ENDED_STREAMS)
        self._not_before = 0.0
        self._drafted: PartialAnswer | None = None
        self._redraft_at = 0.0
        self._drafts = True

    @property
    def has_pending(self) -> bool:
        """Whether the newest text has not been displayed yet."""
        return self._waiting is not None

    def put(self, partial: PartialAnswer) -> None:
        """Accept a newer text, unless its stream has ended."""
        if partial.stream not in self._ended:
            self._waiting = partial

    def seconds_until_due(self, *, busy: bool) -> float:
        """Return the seconds until ``show`` is due; infinite if nothing is pending."""
        if self._waiting is None and (self._drafted is None or not busy):
            return math.inf
        later = max(self._not_before, self._rate_limit.next_edit_at, self._rate_limit.retry_at)
        if self._waiting is None:
            later = max(later, self._redraft_at)
        return later - anyio.current_time()

    def end(self, answer: Answer) -> DisplayedAnswer[PieceT]:
        """End the stream that this answer completes, and return the messages it has so far."""
        if answer.stream is not None:
            self._ended.append(answer.stream)
        if self._waiting is not None and self._waiting.stream == answer.stream:
            self._waiting = None
        if self._drafted is not None and self._drafted.stream == answer.stream:
            self._drafted = None
        displayed = self._displayed
        if displayed is not None and displayed.key == answer.stream:
            self._displayed = None
            return displayed
        ids = answer.sent_message_ids
        if not ids and answer.replaced_message_id is not None:
            ids = (answer.replaced_message_id,)
        return DisplayedAnswer.from_sent(answer.address, answer.id, answer.reply_to, ids)

    def clear(self) -> None:
        """Drop pending text and the draft, after an unexpected error."""
        self._waiting = self._drafted = None

    async def show(self) -> None:
        """Display the newest text, or send the current draft again."""
        partial = self._waiting or self._drafted
        self._waiting = None
        if partial is None:
            return
        pace = self._messenger.pace(partial.address)
        displayed = self._displayed
        if displayed is None or displayed.key != partial.stream:
            displayed = self._displayed = DisplayedAnswer.from_sent(
                partial.address, partial.stream, partial.reply_to, partial.sent_message_ids
            )
            self._drafts = True
            if not partial.sent_message_ids:
                self._again(partial, pace.first_edit)
                return
        if len(partial.text) < _MIN_CHARACTERS:
            return
        self._rate_limit.next_edit_at = anyio.current_time() + pace.edit
        await self._try(displayed, partial)

    async def _try(self, displayed: DisplayedAnswer[PieceT], partial: PartialAnswer) -> None:
        try:
            pieces = self._messenger.render(partial.text)
            if pieces:
                await self._bring(displayed, partial, pieces)
        except RateLimited as flood:
            self._rate_limit.back_off(flood.seconds)
            self._again(partial, flood.seconds)
        except PlatformUnreachable:
            self._again(partial, _RETRY_SECONDS)
        except MessengerError as error:
            logger.debug("a stream is no longer shown: %s", error)
            self._give_up(partial)
        except Exception:  # a failed stream must not stop the chat's queue
            logger.exception("a stream of %s failed", partial.address.session)
            self._give_up(partial)

    async def _bring(
        self, displayed: DisplayedAnswer[PieceT], partial: PartialAnswer, pieces: Sequence[PieceT]
    ) -> None:
        if self._drafts and not displayed.message_ids[len(pieces) - 1 :]:
            self._drafts = await self._draft(partial, pieces[-1])
            if self._drafts:
                pieces = pieces[:-1]

        async def sent() -> None:
            await self._report(displayed, partial.address.session, partial.stream)

        await displayed.reconcile(self._messenger, pieces, sent, last=False)

    async def _draft(self, partial: PartialAnswer, piece: PieceT) -> bool:
        """Send a draft; return False if the rest of the answer is shown without drafts."""
        try:
            displayed = await self._messenger.draft(partial.address, partial.stream, piece)
        except RateLimited as flood:
            self._not_before = anyio.current_time() + flood.seconds
            return True
        if displayed:
            self._drafted = partial
            self._not_before = anyio.current_time() + _DRAFT_INTERVAL_SECONDS
            self._redraft_at = anyio.current_time() + _DRAFT_SECONDS
        return displayed

    def _again(self, partial: PartialAnswer, pause: float) -> None:
        """Display the text after a pause, unless a newer one has arrived by then."""
        self._not_before = anyio.current_time() + pause
        if self._waiting is None:
            self._waiting = partial

    def _give_up(self, partial: PartialAnswer) -> None:
        self._ended.append(partial.stream)
        self._drafted = None
