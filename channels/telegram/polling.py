"""Receive updates by long polling.

Telegram is asked to drop an update (by ``offset``) only after the intake has accepted it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from aiogram.methods import DeleteWebhook, TelegramMethod

from bot.bus import BusClosed, BusError
from bot.core.i18n import _
from channels.base import ConnectionStatus
from channels.delivery.messenger import MessengerError, RateLimited
from channels.telegram.api import Backoff, BotApiClient, TelegramTiming, UpdatesConflict
from channels.telegram.intake import TelegramIntake
from channels.telegram.updates import read_update_id
from channels.telegram.user_events import ALLOWED_UPDATES

logger = logging.getLogger(__name__)

_NETWORK_SECONDS = 15
_WORTH_A_WARNING = 2


class GetRawUpdates(TelegramMethod[list[Any]]):
    """``getUpdates`` with unparsed results, so that a malformed update does not spoil the batch.

    https://core.telegram.org/bots/api#getupdates
    """

    __returning__ = list[Any]
    __api_method__ = "getUpdates"

    offset: int | None = None
    timeout: int | None = None
    allowed_updates: list[str] | None = None


class UpdatePoller:
    """Poll Telegram for updates."""

    def __init__(
        self,
        api: BotApiClient,
        intake: TelegramIntake,
        status: ConnectionStatus,
        announce: Callable[[str], None],
        timing: TelegramTiming,
    ) -> None:
        self._api = api
        self._intake = intake
        self._status = status
        self._announce = announce
        self._timing = timing
        self._network = Backoff(timing)
        self._bus = Backoff(timing)
        self._offset: int | None = None
        self._conflict = False
        self._failures = 0
        self._begun = False

    async def run(self) -> None:
        """Poll until cancelled; retry after network errors, rate limits and conflicts."""
        webhook = True
        while True:
            try:
                if webhook:
                    await self._api(DeleteWebhook(drop_pending_updates=False))
                    webhook = False
                batch = await self._poll()
            except UpdatesConflict as conflict:
                # A webhook set by another program would get the updates that are polled here.
                webhook = "webhook" in str(conflict)
                self._conflicting(conflict)
                await self._network.wait()
            except RateLimited as flood:
                await self._network.wait(flood.seconds)
            except MessengerError as error:
                self._cut_off(error)
                await self._network.wait()
            else:
                self._mended()
                await self._handle_batch(batch)

    async def _poll(self) -> list[Any]:
        # The first call returns at once: parts of albums wait until it is handled. So does one after
        # a failure, which shows whether there is a connection.
        held = self._timing.poll if self._begun and not self._failures else 0
        batch: list[Any] = await self._api(
            GetRawUpdates(offset=self._offset, timeout=held, allowed_updates=ALLOWED_UPDATES),
            seconds=held + _NETWORK_SECONDS,
        )
        # Updates below the offset are confirmed now. The offset is not sent again, since after a
        # week without updates Telegram may continue with smaller ids.
        self._offset = None
        return batch

    async def _handle_batch(self, batch: list[Any]) -> None:
        try:
            await self._intake.learn_moves(batch)
            for raw in batch:
                await self._intake.handle_update(raw)
                number = read_update_id(raw)
                if number is not None:
                    self._offset = number + 1
        except BusError as error:
            # This update and those after it stay unconfirmed and are sent again.
            if not isinstance(error, BusClosed):
                logger.warning("an update was not accepted: %s", error)
            await self._bus.wait()
            return
        self._begun = True
        self._intake.mark_caught_up()
        if batch and self._offset is None:
            await self._bus.wait()
        else:
            self._bus.reset()

    def _conflicting(self, conflict: UpdatesConflict) -> None:
        """Announce once that another program receives the updates, which only a person can stop."""
        if not self._conflict:
            what = _(
                "Telegram: another program gets this bot's updates; stop it, or give each program its own bot. Retrying ({conflict})",
                conflict=conflict,
            )
            logger.warning("%s", what)
            self._announce(what)
        self._conflict = True

    def _cut_off(self, error: MessengerError) -> None:
        self._failures += 1
        # A single broken connection needs no warning: Telegram closes old ones.
        logger.debug("Telegram cannot be reached: %s", error)
        if self._failures >= _WORTH_A_WARNING:
            self._status.lost(error)

    def _mended(self) -> None:
        self._network.reset()
        self._status.restored()
        if self._conflict:
            logger.info("Telegram: receiving updates again")
        self._conflict, self._failures = False, 0
