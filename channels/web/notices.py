"""Store notices: answers that are on no tape, such as a request to link two identities.

The newest notices of a chat are stored, one small file each, for pages that are opened later. No
file is written twice: erasure may delete a file at any time, and nothing may restore it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import anyio.to_thread
from pydantic import TypeAdapter, ValidationError

from bot.bus import BusError, create_or_replace_file

logger = logging.getLogger(__name__)

MAX_NOTICES = 20
"""The most notices of a chat."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A stored notice.

    Attributes:
        id: The answer's id.
        position: The position of the message before it; 0 if there is none.
        text: Markdown.
        at: The time of the answer, ISO 8601.
        buttons: Labels and commands.
        files: Names and paths.
    """

    id: str
    position: int
    text: str
    at: str
    buttons: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()


_NOTICE = TypeAdapter(Notice)


class NoticeStore:
    """Store notices in a directory per chat."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def load(self, session: str) -> list[Notice]:
        """Return a chat's notices, oldest first."""
        kept = await anyio.to_thread.run_sync(_kept, self._of(session))
        return sorted(kept.values(), key=lambda notice: notice.at)

    async def add(self, session: str, notice: Notice) -> bool:
        """Store a notice durably; return False if it is stored already.

        Raises:
            BusError: It could not be written.
        """
        try:
            return await anyio.to_thread.run_sync(_add, self._of(session), notice)
        except OSError as exc:
            raise BusError(f"a notice could not be kept: {exc.strerror}") from exc  # for the log

    def _of(self, session: str) -> Path:
        return self._folder / sha256(session.encode()).hexdigest()


def _add(folder: Path, notice: Notice) -> bool:
    path = folder / f"{sha256(notice.id.encode()).hexdigest()}.json"
    if path.exists():
        return False
    create_or_replace_file(path, json.dumps(asdict(notice)).encode())
    kept = _kept(folder)
    for old in sorted(kept, key=lambda other: kept[other].at)[:-MAX_NOTICES]:
        old.unlink(missing_ok=True)
    return True


def _kept(folder: Path) -> dict[Path, Notice]:
    found = {}
    for path in folder.glob("*.json"):
        try:
            found[path] = _NOTICE.validate_json(path.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValidationError) as exc:
            logger.warning("the notice in %s cannot be read: %s", path, type(exc).__name__)
    return found
