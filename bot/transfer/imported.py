"""What another assistant left behind, in our terms; and reading its files line by line.

Rule 1: what cannot be read costs itself alone, and is told with its file and line.
Rule 2: nothing of theirs has a meaning on our tape that it had not with them: their events are kept as
    what they are, under a name that no fold of ours knows.
Rule 3: the same files give the same entries, whenever they are read.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.core.errors import InvalidEntry
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.transfer.conversion import session_key

CONSOLE_SESSION = "console:local"


@dataclass(slots=True)
class ImportedSession:
    """One session of the other assistant.

    Attributes:
        key: As it was called there.
        session: As it is called here.
        source: Its file, as it is shown.
        entries: What was said and done, in order, not appended yet; each has its ``ts``.
        history: ``memory.history`` events of this session alone.
        consolidated_count: How many of them, from the first, the other had consolidated or put behind it.
    """

    key: str
    session: str
    source: str
    entries: list[TapeEntry] = field(default_factory=list)
    history: list[TapeEntry] = field(default_factory=list)
    consolidated_count: int = 0

    @property
    def last_timestamp(self) -> str:
        """When its last entry was made."""
        return str(self.entries[-1].meta.get("ts", "")) if self.entries else ""


@dataclass(slots=True)
class ImportedMemory:
    """What it remembered beside its sessions.

    Attributes:
        long_term: Markdown.
        history: ``memory.history`` events, oldest first.
        notes: Daily notes by ISO date.
    """

    long_term: str = ""
    history: list[TapeEntry] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.long_term or self.history or self.notes)


@dataclass(slots=True)
class ImportedData:
    """All that was found.

    Attributes:
        bot: The other assistant's name.
        conversations: Its sessions.
        memory: What it remembered.
        problems: What could not be read or was passed over, one line each.
    """

    bot: str
    conversations: list[ImportedSession] = field(default_factory=list)
    memory: ImportedMemory = field(default_factory=ImportedMemory)
    problems: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        """The ``meta.origin`` of all that comes from it."""
        return f"import:{self.bot}"

    def add_entry(self, conversation: ImportedSession, entry: TapeEntry, where: str) -> None:
        """Add an entry to a conversation, if a tape can hold it."""
        marked = entry.with_meta(origin=self.origin)
        if self.accepts(marked, where):
            conversation.entries.append(marked)

    def accepts(self, entry: TapeEntry, where: str) -> bool:
        """Say whether a tape can hold an entry; if not, that is a problem."""
        try:
            encode_entries([TapeEntry(1, entry.kind, entry.payload, entry.meta)])
        except InvalidEntry:
            self.problems.append(f"{where}: holds what is not JSON; passed over")
            return False
        return True


def read_json_lines(path: Path, shown: str, problems: list[str]) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line of a file that can be read.

    Args:
        path: The file.
        shown: What it is called in problems.
        problems: Takes what cannot be read.
    """
    for number, raw in enumerate(_decoded(path, shown, problems).split("\n"), start=1):
        if not raw.strip():
            continue
        try:
            yield number, json.loads(raw, parse_constant=_refuse)
        except (ValueError, RecursionError):
            problems.append(f"{shown}, line {number}: cannot be read")


def is_file(path: Path, shown: str, problems: list[str]) -> bool:
    """Say whether there is a file to read; a folder, a pipe, or a link to nothing is a problem."""
    if not path.is_file():
        problems.append(f"{shown}: is no file; passed over")
        return False
    return True


def read_text(path: Path, shown: str, problems: list[str]) -> str:
    """Return a text file's content with plain line ends; empty where there is none."""
    text = _decoded(path, shown, problems) if path.is_file() else ""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip()


def _decoded(path: Path, shown: str, problems: list[str]) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        problems.append(f"{shown}: cannot be read ({error.strerror})")
        return ""
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        problems.append(f"{shown}: some of it is not text; those characters are lost")
        return data.decode(encoding, "replace")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def name_sessions(found: ImportedData, own_console: Sequence[str]) -> None:
    """Give each conversation a key here that no other has, the same at each import.

    Args:
        found: The conversations.
        own_console: What the other calls its console's session; the first that is there becomes
            the console's here.
    """
    taken: set[str] = set()
    ranks = {key: place for place, key in enumerate(own_console)}
    for one in sorted(found.conversations, key=lambda o: (ranks.get(o.key, len(ranks)), o.key)):
        session = session_key(one.key, found.bot)
        if one.key in ranks and CONSOLE_SESSION not in taken:
            session = CONSOLE_SESSION
        elif session.startswith("cli:"):
            session = f"console:{session.removeprefix('cli:')}"
        one.session = session
        number = 1
        while one.session in taken:
            number += 1
            one.session = f"{session}-{number}"
        taken.add(one.session)


def display_path(file: Path, home: Path) -> str:
    """Return what a file is called in problems."""
    return str(file.relative_to(home)) if file.is_relative_to(home) else file.name
