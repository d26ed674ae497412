"""Define the data that importers return, and read other assistants' files.

Rule 1: unreadable data costs only itself, and is reported with its file and line.
Rule 2: imported data gets no meaning on our tapes that it did not have before: events keep their
    content under a name that no fold knows.
Rule 3: the same files always give the same entries.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.core.errors import InvalidEntry
from bot.core.foreign_files import why_not_read_at
from bot.core.i18n import _
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.transfer.conversion import session_key

CONSOLE_SESSION = "console:local"
Report = Callable[[str], None]


@dataclass(slots=True)
class ImportedSession:
    """A session of the other assistant.

    Attributes:
        key: The other assistant's key.
        session: Our key.
        source: Display name of its file.
        entries: Its entries in order, not appended yet, each with a ``ts``.
        history: ``memory.history`` events of this session alone.
        consolidated_count: How many entries, from the first, the other assistant had consolidated
            or archived.
    """

    key: str
    session: str
    source: str
    entries: list[TapeEntry] = field(default_factory=list)
    history: list[TapeEntry] = field(default_factory=list)
    consolidated_count: int = 0

    @property
    def last_timestamp(self) -> str:
        """Time of its last entry; empty without entries."""
        return str(self.entries[-1].meta.get("ts", "")) if self.entries else ""


@dataclass(slots=True)
class ImportedMemory:
    """The other assistant's memory outside of its sessions.

    Attributes:
        long_term: Long-term memory as Markdown.
        history: ``memory.history`` events, oldest first.
        notes: Daily notes by ISO date.
    """

    long_term: str = ""
    history: list[TapeEntry] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is any memory."""
        return bool(self.long_term or self.history or self.notes)


@dataclass(slots=True)
class ImportedData:
    """The result of reading another assistant's files.

    Attributes:
        bot: The other assistant's name.
        conversations: Its sessions.
        memory: Its memory.
        problems: Data that was unreadable or skipped, one line each.
    """

    bot: str
    conversations: list[ImportedSession] = field(default_factory=list)
    memory: ImportedMemory = field(default_factory=ImportedMemory)
    problems: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """The ``meta.origin`` of all entries that come from it."""
        return f"import:{self.bot}"

    def add_entry(self, conversation: ImportedSession, entry: TapeEntry, where: str) -> None:
        """Add an entry to a conversation if a tape can hold it."""
        marked = entry.with_meta(origin=self.origin)
        if self.accepts(marked, where):
            conversation.entries.append(marked)

    def accepts(self, entry: TapeEntry, where: str) -> bool:
        """Return whether a tape can hold an entry; if not, report a problem."""
        try:
            encode_entries([TapeEntry(1, entry.kind, entry.payload, entry.meta)])
        except InvalidEntry:
            self.problems.append(_("{where}: is not JSON; skipped", where=where))
            return False
        return True

    def name_sessions(self, own_console: Sequence[str]) -> None:
        """Give each conversation a unique session key that is the same at each import; sort them."""
        taken: set[str] = set()
        ranks = {key: place for place, key in enumerate(own_console)}
        self.conversations.sort(
            key=lambda imported_session: imported_session.last_timestamp, reverse=True
        )
        for imported_session in sorted(
            self.conversations, key=lambda o: (ranks.get(o.key, len(ranks)), o.key)
        ):
            session = session_key(imported_session.key, self.bot)
            if imported_session.key in ranks and CONSOLE_SESSION not in taken:
                session = CONSOLE_SESSION
            elif session.startswith("cli:"):
                session = f"console:{session.removeprefix('cli:')}"
            imported_session.session = session
            number = 1
            while imported_session.session in taken:
                number += 1
                imported_session.session = f"{session}-{number}"
            taken.add(imported_session.session)


def read_json_lines(path: Path, shown: str, report: Report) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each readable line of a JSONL file."""
    for number, raw in enumerate(_decoded(path, shown, report).split("\n"), start=1):
        if not raw.strip():
            continue
        try:
            yield number, json.loads(raw, parse_constant=_refuse)
        except (ValueError, RecursionError):
            report(_("{shown}, line {number}: cannot be read", shown=shown, number=number))


def is_file(path: Path, shown: str, report: Report) -> bool:
    """Return whether a path is a file to read; report a folder, a pipe or a link."""
    if why_not_read_at(path) is not None:
        report(_("{shown}: is a link or no file; skipped", shown=shown))
        return False
    return path.is_file()


def read_text(path: Path, shown: str, report: Report) -> str:
    """Return a text file's content with normalised line ends; empty if there is no file."""
    text = _decoded(path, shown, report)
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()


def _decoded(path: Path, shown: str, report: Report) -> str:
    if not is_file(path, shown, report):
        return ""
    try:
        data = path.read_bytes()
    except OSError as error:
        report(_("{shown}: cannot be read ({strerror})", shown=shown, strerror=error.strerror))
        return ""
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        report(_("{shown}: parts of it are not text; those characters are lost", shown=shown))
        return data.decode(encoding, "replace")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def display_path(file: Path, home: Path) -> str:
    """Return the display name of a file."""
    return str(file.relative_to(home)) if file.is_relative_to(home) else file.name
