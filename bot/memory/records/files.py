"""Define the entries of a folder's tape, and fold them to its files. Pure.

A folder of files is a tape of its own, such as ``files:person:telegram:42``. A file's text is on it in
sections, directly before the entry that keeps the file, in one append; its bytes are in the blob store.

Entries: ``file.text`` is a section of a file's text, ``{file, kept, name, place, text}``.
``file.kept`` is ``{file, name, by, written, sections, note, turn, session, key}``, with the blob
in ``meta.attachments``. ``file.deleted`` and ``file.restored`` are ``{file, key}``.

Rule 1: ``file.kept`` keeps a file, or a new version of one; ``file.restored`` swaps the version before
    and the current one; ``file.deleted`` ends a file.
Rule 2: the version before the current one stays; older ones and deleted files are ``stale`` until
    their entries are erased. But what the model writes never ends a version that a person kept: of two
    such texts in a row, the first is stale.
Rule 3: a version that is erased changes nothing, so that those before and after it stay what they are.
Rule 4: text of files is text from outside: nobody's word, however it came here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.core.clock import parse_time
from bot.core.reasons import parse_reason, reason_json
from bot.memory.records.attachments import EntryAttachment, attachment_record, attachments_in
from bot.memory.records.event_names import FILE_DELETED, FILE_KEPT, FILE_TEXT, FOLDER_EVENTS
from bot.memory.records.file_names import clean_name
from bot.memory.records.tombstones import is_erased
from bot.tape.entries import TapeEntry, event

FILES_PREFIX = "files:"
"""Prefix of the names of tapes that hold folders of files."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One version of a file in a folder.

    Attributes:
        tape: The folder's tape.
        number: The file's number on that tape, the same for all versions.
        entry: Id of the entry that keeps this version.
        sections: How many entries with its text precede that entry.
        name: The file's name.
        mime: The media type.
        size: The size in bytes.
        blob: Name in the blob store; empty if the entry names none.
        by: Identity of whoever kept it, such as ``telegram:42``; empty if unknown.
        written: Whether the model wrote it.
        note: What of its text could not be read, and why; empty if all was.
        kept: When; None if unreadable.
    """

    tape: str
    number: int
    entry: int
    sections: int
    name: str
    mime: str
    size: int
    blob: str
    by: str = ""
    written: bool = False
    note: str = ""
    kept: datetime | None = None

    @property
    def ids(self) -> range:
        """Ids of the entries with its text, and of the entry that keeps it."""
        return range(self.entry - self.sections, self.entry + 1)


@dataclass(slots=True)
class FolderFold:
    """The files on one folder's tape.

    Attributes:
        tape: The tape's name.
        version: Id of the last entry applied.
        files: Current versions, by number.
        former: The versions before them, by number.
        stale: Versions that are neither and not erased yet, by the id of their entry.
        keys: Keys of the requests that were carried out, with the number of their file.
        next_number: The number of the next new file.
    """

    tape: str
    version: int = 0
    files: dict[int, KeptFile] = field(default_factory=dict)
    former: dict[int, KeptFile] = field(default_factory=dict)
    stale: dict[int, KeptFile] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    next_number: int = 1

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; entries that change no file change only the version."""
        self.version = max(self.version, entry.id)
        number = entry.data.get("file")
        if entry.kind != "event" or entry.name not in FOLDER_EVENTS or type(number) is not int:
            return
        self.next_number = max(self.next_number, number + 1)
        if isinstance(key := entry.data.get("key"), str):
            self.keys[key] = number
        if entry.name == FILE_KEPT:
            if not is_erased(entry):
                self._keep(_kept_file(self.tape, entry))
        elif entry.name == FILE_DELETED:
            self._end(self.files.pop(number, None), self.former.pop(number, None))
        elif number in self.former and number in self.files:
            self.files[number], self.former[number] = self.former[number], self.files[number]

    def outgoing(self, fresh: KeptFile) -> KeptFile | None:
        """Return the version that a new one would end; None if it would end none."""
        before, former = self.files.get(fresh.number), self.former.get(fresh.number)
        if before is None or former is None:
            return None
        return before if fresh.written and before.written and not former.written else former

    def _keep(self, fresh: KeptFile) -> None:
        """Make a version the current one."""
        number, going = fresh.number, self.outgoing(fresh)
        before = self.files.get(number)
        if before is not None and going is not before:
            self.former[number] = before
        self.files[number] = fresh
        self._end(going)

    def _end(self, *files: KeptFile | None) -> None:
        self.stale.update((file.entry, file) for file in files if file is not None)

    def size(self) -> int:
        """Return the bytes of all versions that are kept."""
        versions = (*self.files.values(), *self.former.values())
        return sum(file.size for file in versions)


def kept_entries(
    version: int,
    sections: list[tuple[str, str]],
    file: KeptFile,
    *,
    key: str,
    session: str,
    turn: str,
) -> list[TapeEntry]:
    """Return the entries that keep a file, behind the tape's ``version``.

    ``sections`` are places and texts; ``key`` names the request, which is carried out once, and ``turn``
    the turn whose tool call asked for it, empty for a command. The file's entry and number of sections
    are set here.
    """
    kept = version + len(sections) + 1
    texts = [
        event(
            FILE_TEXT,
            {
                "file": file.number,
                "kept": kept,
                "name": file.name,
                "place": place,
                "text": text,
            },
        )
        for place, text in sections
    ]
    data: dict[str, Any] = {
        "file": file.number,
        "name": file.name,
        "by": file.by,
        "written": file.written,
        "sections": len(sections),
        "session": session,
        "key": key,
    }
    data |= {"note": reason_json(file.note)} if file.note else {}
    data |= {"turn": turn} if turn else {}
    blob = EntryAttachment("document", file.name, file.mime, file.size, file.blob)
    return [*texts, event(FILE_KEPT, data, attachments=[attachment_record(blob)])]


def change_entry(name: str, number: int, key: str) -> TapeEntry:
    """Return the event that deletes or restores a file."""
    return event(name, {"file": number, "key": key})


def _kept_file(tape: str, entry: TapeEntry) -> KeptFile:
    data = entry.data
    sections = data.get("sections")
    blob = next(iter(attachments_in(entry.meta)), EntryAttachment("document", ""))
    return KeptFile(
        tape,
        data["file"],
        entry.id,
        sections if type(sections) is int and 0 <= sections < entry.id else 0,
        # A tape may be imported, so its names are not trusted.
        clean_name(str(data.get("name") or "")),
        blob.mime,
        blob.size,
        blob.blob or "",
        str(data.get("by") or ""),
        data.get("written") is True,
        parse_reason(data.get("note")),
        parse_time(entry.meta.get("ts")),
    )
