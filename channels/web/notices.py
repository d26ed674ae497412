"""Notices: what a chat is told that is on no tape, such as who wants to be linked with whom.

The newest of a chat are kept, a small file each in a folder of the chat's, so that somebody who opens the
page later is told, too. No file is written a second time: one with words that were to be forgotten is taken
away behind our back, and nothing may bring it back.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import anyio.to_thread
from pydantic import TypeAdapter, ValidationError

from bot.bus import BusError
from channels.private_files import write_private

logger = logging.getLogger(__name__)

MAX_NOTICES = 20
"""Notices of a chat."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice, as it is kept.

    Attributes:
        id: The answer's.
        position: That of the line before it; 0 where there was none.
        text: Markdown.
        at: When it came, ISO 8601.
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
    """Keeps notices.

    Args:
        folder: The chats' folders'; made, open to its owner only, with the first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def load(self, session: str) -> list[Notice]:
        """Return a chat's notices, oldest first."""
        kept = await anyio.to_thread.run_sync(_kept, self._of(session))
        return sorted(kept.values(), key=lambda one: one.at)

    async def add(self, session: str, notice: Notice) -> bool:
        """Keep a notice; when this returns it is durable. False where it is known already.

        Raises:
            BusError: It could not be written.
        """
        try:
            return await anyio.to_thread.run_sync(_add, self._of(session), notice)
        except OSError as exc:
            raise BusError(f"a notice could not be kept: {exc.strerror}") from exc

    def _of(self, session: str) -> Path:
        return self._folder / sha256(session.encode()).hexdigest()


def _add(folder: Path, notice: Notice) -> bool:
    path = folder / f"{sha256(notice.id.encode()).hexdigest()}.json"
    if path.exists():
        return False
    write_private(path, json.dumps(asdict(notice)).encode())
    kept = _kept(folder)
    for old in sorted(kept, key=lambda one: kept[one].at)[:-MAX_NOTICES]:
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
