"""What was written of a session's memory into one file. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """An archive of a session's memory.

    Attributes:
        path: The file.
        size: Its bytes.
        facts: Facts believed that are in it.
        history: Pieces of history.
        notes: Days with notes.
        messages: Messages of the conversation, both sides'.
    """

    path: Path
    size: int
    facts: int
    history: int
    notes: int
    messages: int
