"""Read positions: the last handled message of each channel, persisted.

With them, messages sent while the bot is offline can be read from history. An outdated position is
harmless, since the bus recognises repeated messages by their ids.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from bot.bus import BusError, ReadPosition, ReadPositionStore, create_or_replace_file
from channels.discord.errors import MIN_BACKOFF_SECONDS, endless_retries
from channels.discord.shards import SINGLE_SHARD, Shard


class FileReadPositions(ReadPositionStore):
    """Implement ``ReadPositionStore`` with files of mode 0600.

    Reads all shards' files in the folder, so that the number of shards may change. Shards on
    several machines need a store that these share.
    """

    def __init__(self, folder: Path, shard: Shard) -> None:
        self._folder = folder
        part = "" if shard.is_only else f"-{shard.number}-of-{shard.count}"
        self._path = folder / f"marks{part}.json"
        self._rows: dict[int, ReadPosition] = {}

    async def read(self) -> Iterable[ReadPosition]:
        """Return the positions in all files; a damaged file is logged and counts as empty."""
        return await anyio.to_thread.run_sync(self._read)

    async def write(self, moved: Sequence[ReadPosition], dropped: Sequence[int]) -> None:
        """Write the shard's file.

        Raises:
            OSError: It cannot be written.
        """
        rows = dict(self._rows)
        for row in moved:
            rows[row[0]] = max(row, rows.get(row[0], row), key=lambda each: each[1])
        for channel in dropped:
            rows.pop(channel, None)
        await anyio.to_thread.run_sync(create_or_replace_file, self._path, _encode(rows.values()))
        self._rows = rows

    def _read(self) -> Iterable[ReadPosition]:
        newest: dict[int, ReadPosition] = {}
        # `Path.glob` takes a folder that cannot be read for an empty one, from Python 3.13 on.
        listed = self._folder.iterdir() if self._folder.is_dir() else ()
        for path in sorted(path for path in listed if path.match("marks*.json")):
            rows = _rows_of(path)
            if path == self._path:
                self._rows = rows
            for channel, row in rows.items():
                newest[channel] = max(row, newest.get(channel, row), key=lambda each: each[1])
        return newest.values()


def _rows_of(path: Path) -> dict[int, ReadPosition]:
    try:
        return {row[0]: row for row in _decode(path.read_bytes())}
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        logger.warning(
            "the read positions cannot be read (%s): messages sent on Discord while the bot was "
            "away are not answered",
            error,
        )
        return {}


def _encode(rows: Iterable[ReadPosition]) -> bytes:
    shape = {
        str(channel): {"last": str(message), "server": None if guild is None else str(guild)}
        for channel, message, guild in rows
    }
    return json.dumps(shape).encode()


def _decode(data: bytes) -> list[ReadPosition]:
    return [
        (int(channel), int(each["last"]), int(each["server"]) if each["server"] else None)
        for channel, each in json.loads(data).items()
    ]


logger = logging.getLogger(__name__)

_WRITE_SECONDS = 1.0
_LAST_WORD_SECONDS = 5.0
_MOST_CHANNELS = 5000


@dataclass(frozen=True, slots=True)
class ChannelPosition:
    """The read position of one channel.

    Attributes:
        message_id: The last handled message.
        guild_id: The server; None for direct messages.
    """

    message_id: int
    guild_id: int | None


class ReadPositions:
    """The read positions of one shard's channels."""

    def __init__(self, store: ReadPositionStore, shard: Shard = SINGLE_SHARD) -> None:
        self._store = store
        self._shard = shard
        self._positions: dict[int, ChannelPosition] = {}
        self._moved: set[int] = set()
        self._changed = anyio.Event()

    async def load(self) -> None:
        """Load the positions, retrying until that succeeds; nothing missed can be read without."""

        def is_temporary(error: Exception) -> bool:
            if isinstance(error, BusError):
                logger.warning("the read positions cannot be read yet: %s", error)
            return isinstance(error, BusError)

        rows = await endless_retries(MIN_BACKOFF_SECONDS)(is_temporary, self._store.read)
        self._positions = {
            channel: ChannelPosition(message, guild)
            for channel, message, guild in rows
            if self._shard.owns_guild(guild)
        }

    def get(self, channel_id: int) -> int | None:
        """Return the last handled message of a channel; None if it is not followed."""
        position = self._positions.get(channel_id)
        return None if position is None else position.message_id

    def guild_of(self, channel_id: int) -> int | None:
        """Return the server of a followed channel; None for direct messages."""
        position = self._positions.get(channel_id)
        return None if position is None else position.guild_id

    def snapshot(self) -> dict[int, ChannelPosition]:
        """Return all positions by channel."""
        return dict(self._positions)

    def follow(self, channel_id: int, message_id: int, guild_id: int | None) -> None:
        """Follow a channel from a message on; do nothing if it is followed already."""
        if channel_id in self._positions:
            return
        if len(self._positions) >= _MOST_CHANNELS:
            self.unfollow(min(self._positions, key=lambda each: self._positions[each].message_id))
        self._positions[channel_id] = ChannelPosition(message_id, guild_id)
        self._touch(channel_id)

    def advance(self, channel_id: int, message_id: int) -> None:
        """Advance a followed channel's position to a handled message."""
        position = self._positions.get(channel_id)
        if position is not None and message_id > position.message_id:
            self._positions[channel_id] = ChannelPosition(message_id, position.guild_id)
            self._touch(channel_id)

    def unfollow(self, channel_id: int) -> None:
        """Stop following a channel."""
        if self._positions.pop(channel_id, None) is not None:
            self._touch(channel_id)

    async def save_periodically(self) -> None:
        """Save changes about once a second until cancelled, and then once more."""
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
        positions = {channel: self._positions.get(channel) for channel in sorted(touched)}
        moved = [(each, m.message_id, m.guild_id) for each, m in positions.items() if m is not None]
        try:
            await self._store.write(
                moved, [each for each, position in positions.items() if position is None]
            )
        except (OSError, BusError) as error:
            # Outdated positions only cause history to be read again.
            self._touch(*touched)
            logger.warning("the read positions of Discord's channels could not be saved: %s", error)
        except BaseException:
            self._touch(*touched)
            raise
