"""How far each channel was dealt with, so that nothing is missed while the bot is away.

Discord hands out what was said meanwhile by history only. An old mark does no harm: what is read
again is known to the bus by its id.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio

from bot.bus import BusError
from channels.discord.patience import FIRST_PAUSE, LONGEST_PAUSE
from channels.discord.shards import WHOLE, Shard

logger = logging.getLogger(__name__)

_WRITE_SECONDS = 1.0
_LAST_WORD_SECONDS = 5.0
_MOST_CHANNELS = 5000

Row = tuple[int, int, int | None]
"""A channel, the last message there that was dealt with, and its server (None: a direct conversation)."""


class MarkStore(Protocol):
    """Where marks outlive the process; whoever takes a shard over reads there what the others wrote."""

    async def read(self) -> Iterable[Row]:
        """Return the marks of all shards, whatever their number was; of one channel the newest.

        Raises:
            BusError: They cannot be had now.
        """
        ...

    async def write(self, moved: Sequence[Row], dropped: Sequence[int]) -> None:
        """Keep marks that moved, and forget channels; a mark never goes back.

        Raises:
            BusError: They could not be kept now; they come again.
            OSError: Likewise.
        """
        ...


@dataclass(frozen=True, slots=True)
class Mark:
    """How far one channel was dealt with.

    Attributes:
        message_id: The last message that was.
        guild_id: The server; None in direct conversations.
    """

    message_id: int
    guild_id: int | None


class Marks:
    """The marks of one shard's channels.

    Args:
        store: Where they outlive the process.
        shard: Whose they are.
    """

    def __init__(self, store: MarkStore, shard: Shard = WHOLE) -> None:
        self._store = store
        self._shard = shard
        self._marks: dict[int, Mark] = {}
        self._moved: set[int] = set()
        self._changed = anyio.Event()

    async def load(self) -> None:
        """Read them, waiting until they can be had: without them what was missed stays so."""
        pause = FIRST_PAUSE
        while True:
            try:
                rows = await self._store.read()
            except BusError as error:
                logger.warning("what was dealt with before cannot be read yet: %s", error)
                await anyio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                self._marks = {
                    channel: Mark(message, guild)
                    for channel, message, guild in rows
                    if self._shard.has(guild)
                }
                return

    def get(self, channel_id: int) -> int | None:
        """Return the last message that was dealt with; None where the channel is not known."""
        mark = self._marks.get(channel_id)
        return None if mark is None else mark.message_id

    def guild_of(self, channel_id: int) -> int | None:
        """Return the server of a followed channel; None for direct conversations."""
        mark = self._marks.get(channel_id)
        return None if mark is None else mark.guild_id

    def snapshot(self) -> dict[int, Mark]:
        """Return all marks by channel."""
        return dict(self._marks)

    def meet(self, channel_id: int, message_id: int, guild_id: int | None) -> None:
        """Begin to follow a channel after a message; nothing where it is followed already."""
        if channel_id in self._marks:
            return
        if len(self._marks) >= _MOST_CHANNELS:
            self.drop(min(self._marks, key=lambda each: self._marks[each].message_id))
        self._marks[channel_id] = Mark(message_id, guild_id)
        self._touch(channel_id)

    def move(self, channel_id: int, message_id: int) -> None:
        """Note that a message was dealt with, where its channel is followed."""
        mark = self._marks.get(channel_id)
        if mark is not None and message_id > mark.message_id:
            self._marks[channel_id] = Mark(message_id, mark.guild_id)
            self._touch(channel_id)

    def drop(self, channel_id: int) -> None:
        """Follow a channel no more."""
        if self._marks.pop(channel_id, None) is not None:
            self._touch(channel_id)

    async def keep(self) -> None:
        """Write what changed, about once a second, until cancelled; then once more."""
        try:
            while True:
                await self._changed.wait()
                await self._save()
                await anyio.sleep(_WRITE_SECONDS)
        finally:
            with anyio.move_on_after(_LAST_WORD_SECONDS, shield=True):
                await self._save()

    def _touch(self, *channels: int) -> None:
        self._moved.update(channels)
        self._changed.set()

    async def _save(self) -> None:
        if not self._moved:
            return
        touched, self._moved, self._changed = self._moved, set(), anyio.Event()
        marks = {channel: self._marks.get(channel) for channel in sorted(touched)}
        moved = [(each, m.message_id, m.guild_id) for each, m in marks.items() if m is not None]
        try:
            await self._store.write(moved, [each for each, mark in marks.items() if mark is None])
        except (OSError, BusError) as error:
            # Marks that stay behind only make history be read again.
            self._touch(*touched)
            logger.warning("how far Discord's channels were dealt with is not written: %s", error)
        except BaseException:
            self._touch(*touched)
            raise
