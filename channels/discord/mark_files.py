"""Marks in the channel's folder, a file for each shard."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio.to_thread

from channels.discord.marks import Row
from channels.discord.shards import Shard

logger = logging.getLogger(__name__)


class MarkFiles:
    """Implements ``MarkStore`` with files of mode 0600.

    All shards' files in the folder are read, so that a bot may be divided anew. What runs on another
    machine is not there: then a store that the machines share is wanted.

    Args:
        folder: Made if it is not there.
        shard: Whose file is written.
    """

    def __init__(self, folder: Path, shard: Shard) -> None:
        self._folder = folder
        part = "" if shard.alone else f"-{shard.number}-of-{shard.count}"
        self._path = folder / f"marks{part}.json"
        self._rows: dict[int, Row] = {}

    async def read(self) -> Iterable[Row]:
        """Return what the files hold; one that is damaged counts as none, and is reported."""
        return await anyio.to_thread.run_sync(self._read)

    async def write(self, moved: Sequence[Row], dropped: Sequence[int]) -> None:
        """Write the shard's file.

        Raises:
            OSError: It cannot be written.
        """
        rows = self._rows | {row[0]: row for row in moved}
        for channel in dropped:
            rows.pop(channel, None)
        await anyio.to_thread.run_sync(_replace, self._path, _encode(rows.values()))
        self._rows = rows

    def _read(self) -> Iterable[Row]:
        newest: dict[int, Row] = {}
        for path in sorted(self._folder.glob("marks*.json")):
            rows = _rows_of(path)
            if path == self._path:
                self._rows = rows
            for channel, row in rows.items():
                newest[channel] = max(row, newest.get(channel, row), key=lambda each: each[1])
        return newest.values()


def _rows_of(path: Path) -> dict[int, Row]:
    try:
        return {row[0]: row for row in _decode(path.read_bytes())}
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        logger.warning(
            "what was dealt with before cannot be read (%s): what was said on Discord while "
            "the bot was away is not answered",
            error,
        )
        return {}


def _encode(rows: Iterable[Row]) -> bytes:
    shape = {
        str(channel): {"last": str(message), "server": None if guild is None else str(guild)}
        for channel, message, guild in rows
    }
    return json.dumps(shape).encode()


def _decode(data: bytes) -> list[Row]:
    return [
        (int(channel), int(each["last"]), int(each["server"]) if each["server"] else None)
        for channel, each in json.loads(data).items()
    ]


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
