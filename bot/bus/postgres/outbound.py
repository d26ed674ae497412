"""Write answers and partials to the outbound tables, and read them for one channel."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict, deque
from dataclasses import replace
from pathlib import Path

import aiofiles
import anyio
import anyio.to_thread

from bot.bus.messages import Activity, Answer, DeliveryReport, Outbound, OutgoingFile, PartialAnswer
from bot.bus.outbox import Outbox
from bot.bus.postgres.codec import coalescing_key, decode, encode_key, stream_coalescing_key
from bot.bus.postgres.queries import OUTBOUND_ROWS, Queries
from bot.bus.site import WEB_CHANNEL
from bot.core.database.wakeups import POLL, Wakeups
from bot.core.errors import BusError
from bot.core.files import private_directory, replace_file

logger = logging.getLogger(__name__)

PACE = 0.25
"""Seconds between two writes of partials and activity."""

FETCHED_WITHIN = 3_600.0
"""Seconds for which files of the web channel stay: the site links to them for download."""

_MAX_ENDED_STREAMS = 1_000
# Wake-ups within this time after another are handled together.
_BATCH_SECONDS = 0.03
_RETRY_SECONDS = 1.0


class OutboundWriter:
    """Writes outbound items for the workers."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._newest: OrderedDict[tuple[str, str], PartialAnswer | Activity] = OrderedDict()
        self._filled = anyio.Event()

    def put(self, outbound: PartialAnswer | Activity) -> None:
        """Queue a partial or activity, which a newer one replaces; returns at once."""
        slot = (outbound.address.session, coalescing_key(outbound))
        self._newest.pop(slot, None)
        self._newest[slot] = outbound
        self._filled.set()

    async def send(self, answer: Answer) -> None:
        """Write an answer, after the chat's queued partials and activity."""
        session = answer.address.session
        if answer.stream is not None:
            self._newest.pop((session, stream_coalescing_key(answer.stream)), None)
        before = [slot for slot in self._newest if slot[0] == session]
        if before:
            await self._queries.write_partials([self._newest.pop(place) for place in before])
        files = [await _content(outgoing_file.path) for outgoing_file in answer.files]
        await self._queries.write_answer(answer, files)

    async def run(self) -> None:
        """Write queued items until cancelled; refused ones are dropped, since newer ones follow."""
        while True:
            await self._filled.wait()
            self._filled = anyio.Event()
            newest, self._newest = self._newest, OrderedDict()
            try:
                await self._queries.write_partials(list(newest.values()))
            except BusError as error:
                logger.info("partial texts were not shown: %s", error)
            await anyio.sleep(PACE)


class OutboundReader:
    """Reads outbound items for one channel, or for one shard of it.

    Args:
        queries: The statements of the bus.
        wakeups: Notifications of new rows.
        channel: The channel's name.
        shard: The shard's number.
        shards: How many shards there are.
        epoch: Epoch of the lease that the channel runs under; 0 without one.
        exports: The folder to put files of answers in.
    """

    def __init__(
        self,
        queries: Queries,
        wakeups: Wakeups,
        channel: str,
        *,
        shard: int,
        shards: int,
        epoch: int,
        exports: Path,
    ) -> None:
        self.shard, self.shards = shard, shards
        self._queries = queries
        self._wakeups = wakeups
        self._channel = channel
        self._epoch = epoch
        self._exports = exports
        self._box = Outbox()
        self._raw: deque[tuple[str | None, str]] = deque()
        # Answers that were read, and whose last report is not recorded, with their rows' ids.
        self._in_hand: dict[str, int] = {}
        self._ended_streams: OrderedDict[str, None] = OrderedDict()
        self._written: dict[str, list[Path]] = {}
        self._leaving: deque[tuple[float, list[Path]]] = deque()
        self._woken = anyio.Event()
        self._woken.set()
        self._taking = anyio.Lock()

    async def receive(self) -> Outbound:
        """Return the next item to show, waiting for it and for an unreachable database."""
        refused = False
        while True:
            woken = self._woken.is_set()
            try:
                if woken or not self._box:
                    await self._fetch()
                refused = False
            except BusError as error:
                if not refused:
                    logger.warning(
                        "channel %s will show waiting answers later: %s", self._channel, error
                    )
                refused = True
                await anyio.sleep(_RETRY_SECONDS)
                continue
            if (item := self._box.get_nowait()) is not None:
                return item
            await self._wakeups.wait(self._woken, _BATCH_SECONDS if woken else POLL)

    async def report(self, report: DeliveryReport) -> None:
        """Record a delivery report, waiting for an unreachable database.

        A report that is not final is dropped instead: channels send it while they stop.
        """
        refused = False
        while True:
            try:
                await self._queries.report(report)
                break
            except BusError as error:
                if not refused:
                    logger.warning("a delivery report waits: %s", error)
                refused = True
                if not report.final:
                    return
                await anyio.sleep(_RETRY_SECONDS)
        if report.final:
            self._in_hand.pop(encode_key(report.answer), None)
            written = self._written.pop(encode_key(report.answer), [])
            stay = FETCHED_WITHIN if self._channel == WEB_CHANNEL else 0.0
            self._leaving.append((anyio.current_time() + stay, written))
            self._remove_files()

    def _remove_files(self) -> None:
        """Remove files of delivered answers after their time."""
        while self._leaving and self._leaving[0][0] <= anyio.current_time():
            for path in self._leaving.popleft()[1]:
                path.unlink(missing_ok=True)

    async def _fetch(self) -> None:
        self._remove_files()
        async with self._taking:
            # Get the event before the query, so that no notification is missed.
            self._woken = self._wakeups.event(f"outbound:{self._channel}")
            rows = await self._queries.outbound(
                self._channel, self.shard, self.shards, self._epoch, self._in_hand.values()
            )
            for number, answer, body in rows:
                if answer is not None:
                    self._in_hand[answer] = number
                self._raw.append((answer, body))
            if len(rows) >= OUTBOUND_ROWS:
                self._woken = anyio.Event()
                self._woken.set()
            while self._raw:
                answer, body = self._raw[0]
                outbound = decode(body)
                if isinstance(outbound, Answer) and answer is not None and outbound.files:
                    outbound = await self._with_files(answer, outbound)
                # Remove it only when complete: if cancelled, the next call handles it.
                self._raw.popleft()
                self._put(outbound)

    def _put(self, outbound: Outbound) -> None:
        if isinstance(outbound, Answer):
            if outbound.stream is not None:
                self._ended_streams[outbound.stream] = None
                if len(self._ended_streams) > _MAX_ENDED_STREAMS:
                    self._ended_streams.popitem(last=False)
        elif isinstance(outbound, PartialAnswer) and outbound.stream in self._ended_streams:
            return
        self._box.put(outbound)

    async def _with_files(self, key_of_answer: str, answer: Answer) -> Answer:
        """Write an answer's files to this process's folder."""
        contents = await self._queries.files(key_of_answer)
        files, written = [], []
        for number, file in enumerate(answer.files, 1):
            if (content := contents.get(number)) is None:
                files.append(file)
                continue
            path, new = await _placed(self._exports, file, content)
            files.append(OutgoingFile(file.name, path))
            written += [path] if new else []
        if written:
            self._written[key_of_answer] = written
        return replace(answer, files=tuple(files))


async def _content(path: Path) -> bytes | None:
    try:
        async with aiofiles.open(path, "rb") as file:
            return await file.read()
    except OSError:
        return None


async def _placed(folder: Path, file: OutgoingFile, content: bytes) -> tuple[Path, bool]:
    """Return a file's path, and whether it was written now."""
    path = folder / file.path.name
    if await _content(path) == content:
        return path, False
    if path.exists():
        # The folder has another file of this name.
        path = folder / f"{hashlib.sha256(content).hexdigest()[:12]}-{file.path.name}"
        if await _content(path) == content:
            return path, False
    private_directory(folder)
    await anyio.to_thread.run_sync(replace_file, path, content)
    return path, True
