"""How far each channel was dealt with, so that nothing is missed while the bot is away.

Discord hands out what was said meanwhile by history only. An old mark does no harm: what is read
again is known to the bus by its id.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import anyio

logger = logging.getLogger(__name__)

_WRITE_SECONDS = 1.0
_LAST_WORD_SECONDS = 5.0
_MOST_CHANNELS = 5000


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
    """The marks of all channels, in a file with mode 0600.

    Args:
        path: The file; its folder is made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: dict[int, Mark] = {}
        self._changed = anyio.Event()
        self._dirty = False

    def load(self) -> None:
        """Read the file; one that is damaged counts as none, and is reported."""
        try:
            self._marks = _decode(self._path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError) as error:
            logger.warning(
                "what was dealt with before cannot be read (%s): what was said on Discord while "
                "the bot was away is not answered",
                error,
            )

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
            del self._marks[min(self._marks, key=lambda each: self._marks[each].message_id)]
        self._marks[channel_id] = Mark(message_id, guild_id)
        self._touch()

    def move(self, channel_id: int, message_id: int) -> None:
        """Note that a message was dealt with, where its channel is followed."""
        mark = self._marks.get(channel_id)
        if mark is not None and message_id > mark.message_id:
            self._marks[channel_id] = Mark(message_id, mark.guild_id)
            self._touch()

    def drop(self, channel_id: int) -> None:
        """Follow a channel no more."""
        if self._marks.pop(channel_id, None) is not None:
            self._touch()

    async def keep(self) -> None:
        """Write the file after changes, about once a second, until cancelled; then once more."""
        try:
            while True:
                await self._changed.wait()
                await self._save()
                await anyio.sleep(_WRITE_SECONDS)
        finally:
            with anyio.move_on_after(_LAST_WORD_SECONDS, shield=True):
                await self._save()

    def _touch(self) -> None:
        self._dirty = True
        self._changed.set()

    async def _save(self) -> None:
        if not self._dirty:
            return
        self._dirty, self._changed = False, anyio.Event()
        data = _encode(self._marks)
        try:
            await anyio.to_thread.run_sync(_replace, self._path, data)
        except OSError as error:
            # Marks that stay behind only make history be read again.
            self._touch()
            logger.warning("%s cannot be written: %s", self._path, error)
        except BaseException:
            self._touch()
            raise


def _encode(marks: dict[int, Mark]) -> bytes:
    shape = {
        str(channel): {"last": str(mark.message_id), "server": _text(mark.guild_id)}
        for channel, mark in marks.items()
    }
    return json.dumps(shape).encode()


def _decode(data: bytes) -> dict[int, Mark]:
    return {
        int(channel): Mark(int(each["last"]), int(each["server"]) if each["server"] else None)
        for channel, each in json.loads(data).items()
    }


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
