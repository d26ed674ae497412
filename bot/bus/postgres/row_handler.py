"""Turn queue rows into deliveries, and set aside messages that keep killing workers.

Rule 1: a message that outlived some of its holders is handled alone. After a few more deaths it is
    marked as given up, so that its person may ask for it again. After yet more it becomes a dead
    letter: its chat is notified, and its session goes on.
Rule 2: holders that returned it alive do not count, nor those that lost it and live.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from bot.bus.journal import decode_in
from bot.bus.messages import Answer, Inbound
from bot.bus.postgres.codec import decode_report
from bot.bus.postgres.held_session import HeldSession, PostgresDelivery, ReportRow
from bot.bus.postgres.queries import InboundRow, Queries
from bot.core.errors import BusError, InvalidInbound, SessionLost
from bot.core.i18n import N_, _, current_language, use_language

logger = logging.getLogger(__name__)

SUSPECT_AFTER = 2
"""Deaths of holders after which a message is handled alone."""

GIVEN_UP_AFTER = 5
"""Deaths of holders after which a message is handled only if its person asks again."""

DEAD_LETTER_AFTER_DEATHS = 7
"""Deaths of holders after which a message is set aside."""

DEAD_LETTER_NOTICE = N_(
    "I was interrupted all seven times that I tried to answer a message of yours, and gave up. "
    "Please send it again."
)


class InboundRowHandler:
    """Decodes rows and queues them for workers.

    Args:
        queries: The statements of the bus.
        counts: Counts dead letters, as ``poison``.
        ack: Acknowledges a message.
    """

    def __init__(
        self,
        queries: Queries,
        counts: Counter[str],
        ack: Callable[[HeldSession, PostgresDelivery], Awaitable[None]],
    ) -> None:
        self._queries = queries
        self._counts = counts
        self._ack = ack

    async def handle(self, hold: HeldSession, inbound_row: InboundRow) -> bool:
        """Queue a row for the session's worker; return False if it became a dead letter."""
        is_report = inbound_row.kind == "report"
        if is_report:
            hold.after_report = inbound_row.id
        else:
            hold.after_in = inbound_row.id
        try:
            if is_report:
                report = decode_report(str(inbound_row.body))
                hold.session = report.session
                hold.add(ReportRow(inbound_row.id, report))
                return True
            record = decode_in(str(inbound_row.body))
        except InvalidInbound:
            logger.exception("message %d cannot be read", inbound_row.id)
            await self._bury(hold, inbound_row.id, None)
            return False
        hold.session = record.inbound.session
        if inbound_row.deaths >= DEAD_LETTER_AFTER_DEATHS:
            logger.error("message %d of session %s is set aside", inbound_row.id, hold.session)
            await self._bury(hold, inbound_row.id, record.inbound)
            return False
        suspect, given_up = (
            inbound_row.deaths >= SUSPECT_AFTER,
            inbound_row.deaths >= GIVEN_UP_AFTER,
        )
        hold.add(
            PostgresDelivery(
                inbound_row.id, record, inbound_row.reads > 1, suspect, given_up, hold, self._ack
            )
        )
        return True

    async def _bury(self, hold: HeldSession, row: int, inbound: Inbound | None) -> None:
        self._counts["poison"] += 1
        notice = None if inbound is None else _notice(inbound, f"buried-{row}")
        try:
            await self._queries.dead_letter(hold, row, notice)
        except SessionLost:
            hold.lose()
        except BusError as error:
            # The next holder tries again.
            logger.warning("message %d could not be set aside: %s", row, error)


def _notice(inbound: Inbound, known_by: str) -> Answer:
    """Return the notice that a message was set aside, for the surface that waits for its answer."""
    with use_language(inbound.sender.language or current_language()):
        text = _(DEAD_LETTER_NOTICE)
    if inbound.answer_to is None:
        return Answer(inbound.address, known_by, text)
    return Answer(inbound.answer_to, known_by, text, inbound.id, report_to=inbound.session)
