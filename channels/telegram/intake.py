"""Updates on their way to the bus.

Rule 1: nothing of anybody is fetched, kept or answered before ``Access`` let them in; what had to
wait is asked for again.
Rule 2: an update is taken once its message is on the bus or its file is in the spool.
Rule 3: within a chat everything stays in order; what takes long waits in the chat's own lane.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from bot.bus import BusClosed, BusError, ChannelPort, Knock, Role, Spool, Verdict
from channels.base import Platform
from channels.lanes import Lanes
from channels.telegram.composing import Composer
from channels.telegram.gathering import Gathering
from channels.telegram.migrating import Movers
from channels.telegram.moves import Migration
from channels.telegram.publishing import Publisher
from channels.telegram.reading import Event
from channels.telegram.recent import Recent
from channels.telegram.telling import Teller
from channels.telegram.timing import Timing
from channels.telegram.updates import UpdateReader, update_number

logger = logging.getLogger(__name__)

_MOST_KNOWN = 2_000
_MOST_WAITING = 5_000
"""Messages that may wait in one chat's lane; their words are in the spool."""


class Intake:
    """Takes updates, however they came.

    Args:
        channel: The channel's name.
        platform: Who may, and where.
        port: Where messages go.
        reader: Reads them.
        spool: Keeps what takes long.
        lanes: A lane for each chat.
        composer: Makes messages of events.
        teller: Tells people what they have to know.
        recent: What the last messages said.
        timing: Waits.
    """

    def __init__(
        self,
        channel: str,
        platform: Platform,
        port: ChannelPort,
        *,
        reader: UpdateReader,
        spool: Spool,
        lanes: Lanes,
        composer: Composer,
        teller: Teller,
        recent: Recent,
        timing: Timing,
    ) -> None:
        self._channel = channel
        self._platform = platform
        self._publisher = Publisher(port, teller, timing)
        self._movers = Movers(platform.access, teller)
        self._reader = reader
        self._spool = spool
        self._lanes = lanes
        self._composer = composer
        self._teller = teller
        self._recent = recent
        self._timing = timing
        self._known: OrderedDict[int, None] = OrderedDict()
        self._open: dict[str, Gathering] = {}
        self._waiting: Counter[str] = Counter()
        self._fetching: Counter[str] = Counter()
        self._taking = anyio.Lock()
        self._caught_up = anyio.Event()

    async def resume(self) -> None:
        """Queue what a run before this one took and did not handle, before anything new."""
        for number, raw in await self._spool.load():
            self._know(number)
            event = self._reader.read(raw)
            if isinstance(event, Event):
                self._queue(event)
            else:
                await self._spool.remove(number)

    def caught_up(self) -> None:
        """Learn that what was on its way when the run began has been taken.

        Before that, an album of which a run before this one took some parts may have others to come.
        """
        self._caught_up.set()

    async def take(self, raw: Any) -> None:
        """Take an update as it came; return once it is durable, or is nothing to us.

        Raises:
            BusError: It is not taken and has to come again.
        """
        number = update_number(raw)
        if number is None:
            logger.warning("an update without an id is skipped")
            return
        # One after the other, for a webhook brings several at a time.
        async with self._taking:
            if number not in self._known:
                await self._take_new(number, raw)

    async def _take_new(self, number: int, raw: Any) -> None:
        try:
            event = self._reader.read(raw)
            if isinstance(event, Migration):
                await self._movers.tell(event)
            elif event is not None:
                await self._take(event, raw)
        except BusError:
            raise
        except Exception:  # an update that ends the channel would come again at every start
            logger.exception("the update %s is skipped: it broke down", number)
        self._know(number)

    # What is done with an event.

    async def _take(self, event: Event, raw: Any) -> None:
        if not self._wanted(event):
            return
        if event.kind == "edit" and self._recent.says(event):
            return
        role = await self._admitted(event)
        if role is None:
            return
        if event.callback is not None:
            self._teller.acknowledge(event.callback)
        if self._takes_long(event):
            await self._put_aside(event, raw)
        else:
            inbound = await self._composer.compose([event], role, asks=self._asks(event))
            await self._publisher.publish(event, inbound)
        if event.kind in ("message", "edit"):
            self._recent.said(event)

    def _wanted(self, event: Event) -> bool:
        """Return whether it may be published, were its sender let in."""
        gathering = self._open.get(event.address.session)
        # Which part of an album names the bot is known when all are there.
        return (
            self._asks(event)
            or event.private
            or self._platform.groups.keep_context
            or event.album is not None
            or (gathering is not None and gathering.takes(event))
        )

    def _asks(self, event: Event) -> bool:
        if event.kind == "reaction":
            return False
        place = f"{self._channel.partition('-')[0]}:{event.address.chat_id}"
        corrects = event.kind == "edit" and self._recent.asked(event)
        return event.addressed or corrects or place in self._platform.groups.always

    async def _admitted(self, event: Event) -> Role | None:
        """Return the sender's role; where they have none, tell them what the door says.

        Raises:
            BusError: The door could not record something.
        """
        text = event.text if event.private and event.kind == "message" else None
        verdict = await self._judged(event, text)
        if verdict.role is None and verdict.reply is not None and self._asks(event):
            self._teller.tell(event.address, verdict.reply)
        return verdict.role

    async def _judged(self, event: Event, text: str | None) -> Verdict:
        knock = Knock(
            address=event.address,
            sender=event.sender,
            private=event.private,
            places=(event.address.chat_id,),
            text=text,
        )
        return await self._platform.access.admit(knock)

    def _takes_long(self, event: Event) -> bool:
        lane = event.address.session
        if event.files or event.album is not None or event.long:
            return True
        # What is no file is there in a moment, and is to be stopped, too.
        overtakes = event.urgent and self._fetching[lane] > 0
        return self._lanes.busy(lane) and not overtakes

    async def _put_aside(self, event: Event, raw: Any) -> None:
        asks = self._asks(event)
        if self._waiting[event.address.session] >= _MOST_WAITING:
            if asks:
                self._teller.refuse(
                    event,
                    f"{_MOST_WAITING} messages already wait here, which is the most allowed: "
                    "this one was not taken, please send it again later",
                )
            return
        put = partial(self._spool.put, event.update, raw)
        await self._publisher.told_of(event, put, asks=asks)
        self._queue(event)

    def _queue(self, event: Event) -> None:
        """Let the chat's lane handle it, together with what it is a part of."""
        lane = event.address.session
        self._waiting[lane] += 1
        if event.files:
            self._fetching[lane] += 1
        gathering = self._open.get(lane)
        if gathering is not None and gathering.takes(event):
            gathering.add(event)
            return
        if gathering is not None:
            gathering.close()
        self._open[lane] = gathering = Gathering(event)
        self._lanes.put(lane, partial(self._handle, lane, gathering))

    # In the chat's lane.

    async def _handle(self, lane: str, gathering: Gathering) -> None:
        events = await gathering.complete(self._timing.gather, self._at_rest)
        if self._open.get(lane) is gathering:
            del self._open[lane]
        try:
            await self._settle(events)
        except BusClosed:
            return  # the files stay for the next start
        finally:
            self._waiting[lane] -= len(events)
            self._waiting += Counter()
            self._fetching[lane] -= sum(bool(event.files) for event in events)
            self._fetching += Counter()
        # The first is the last to go: without its first part, an album would come as another one.
        for event in reversed(events):
            await self._spool.remove(event.update)

    async def _at_rest(self) -> None:
        await self._caught_up.wait()
        shared = self._platform.spool
        if shared is not None:
            # What another process has received may be read late, where the storage is slow.
            with suppress(BusError):
                for _, raw in await shared.arrived(wait=False):
                    await self.take(raw)
        async with self._taking:
            pass

    async def _settle(self, events: list[Event]) -> None:
        first = events[0]
        # Who was shut out while it waited stays out; what the door tells newcomers, it has told.
        verdict = await self._publisher.insist(first, partial(self._judged, first, None))
        asks = any(self._asks(event) for event in events)
        keeps = asks or first.private or self._platform.groups.keep_context
        if verdict.role is None or not keeps:
            return
        inbound = await self._composer.compose(events, verdict.role, asks=asks)
        if len(events) > 1:
            self._recent.gathered(events, asks=asks)
        await self._publisher.insist(first, partial(self._publisher.publish, first, inbound))

    def _know(self, number: int) -> None:
        self._known[number] = None
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
