"""Summary of an archive file of a session's memory. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """Contents of an archive of a session's memory.

    Attributes:
        path: Path of the file.
        size: Size in bytes.
        facts: Number of active facts.
        history: Number of history entries.
        notes: Number of days with notes.
        messages: Number of messages, by both sides.
        files: Number of files of the folder.
    """

    path: Path
    size: int
    facts: int
    history: int
    notes: int
    messages: int
    files: int = 0
