"""Import nanobot's sessions (JSONL or SQLite) and its memory (Markdown and JSONL).

A session file has a line of metadata (``"_type": "metadata"`` with ``key`` and
``last_consolidated``), then one message per line in the provider's format with a ``timestamp``.
Releases from 0.3.6 on keep the same records in ``sessions.sqlite3``.
"""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePath
from typing import Any

from bot.core.clock import format_time
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.memory.records.event_names import HISTORY_EVENT
from bot.tape.entries import TapeEntry, event, message, system
from bot.transfer.conversion import (
    PendingToolCalls,
    attachment,
    call_entry,
    parse_time,
    result_entry,
    session_key,
    text_and_files,
    user_message,
)
from bot.transfer.imported import (
    ImportedData,
    ImportedSession,
    display_path,
    is_file,
    read_json_lines,
    read_text,
)
from bot.transfer.memory_markdown import NOTICE

BOT = "nanobot"

_DATABASE = "sessions.sqlite3"
_OWN_CONSOLE = ("cli:direct", "cli:default")
_BLANKS = LazyPattern(r"\n\s*\n")
_DAY = LazyPattern(r"\d{4}-\d\d-\d\d")
_DATED = LazyPattern(r"\[(\d{4}-\d\d-\d\d[^\]]*)\]\s*")
_RAW_LINE = LazyPattern(r"\[\d{4}-\d\d-\d\d[^\]]*\]\s+[A-Z][A-Z0-9_]*(?: \[tools: [^\]]*\])?:")
# Lines of an untouched MEMORY.md besides headings, which are no memory.
_TEMPLATE = frozenset(
    {
        "This file stores important information that should persist across sessions.",
        "(Important facts about the user)",
        "(User preferences learned over time)",
        "(Information about ongoing projects)",
        "(Things to remember)",
        "*This file is automatically updated by nanobot when important information should be "
        "remembered.*",
        "---",
        NOTICE,
    }
)


@dataclass(frozen=True, slots=True)
class _Record:
    """A session's raw data: its key, metadata, and messages with their file and line."""

    key: str
    source: str
    header: dict[str, Any]
    messages: list[tuple[str, Any]]
    changed: str


def read_nanobot(path: Path, timezone: tzinfo) -> ImportedData:
    """Read the sessions and memory at a path. Blocking."""
    imported_data, path = ImportedData(BOT), path.resolve()
    taken: dict[str, str] = {}
    for record in _records(path, imported_data):
        if not record.header and not any(map(_is_message, record.messages)):
            imported_data.problems.append(
                _("{source}: contains no session; skipped", source=record.source)
            )
            continue
        if record.key in taken:
            imported_data.problems.append(
                _(
                    "{source}: another copy of {key}, which is in {taken}; skipped",
                    source=record.source,
                    key=record.key,
                    taken=taken[record.key],
                )
            )
            continue
        taken[record.key] = record.source
        imported_data.conversations.append(_conversation(record, imported_data, timezone))
    imported_data.name_sessions(_OWN_CONSOLE)
    for folder in (path / "memory", path / "workspace" / "memory", path):
        if folder.is_dir() and (folder != path or _holds_memory(path)):
            _read_memory(folder, path, imported_data, timezone)
            break
    return imported_data


# Sessions.


def _records(path: Path, imported_data: ImportedData) -> Iterator[_Record]:
    """Yield the sessions at a path; of several copies the one that nanobot uses comes first."""
    if path.is_file():
        yield from (
            _of_database(path, path, imported_data)
            if path.name == _DATABASE
            else [_of_file(path, path.parent, imported_data)]
        )
        return
    folders = [
        folder for folder in (path / "sessions", path / "workspace" / "sessions") if folder.is_dir()
    ]
    for folder in folders or [path]:
        for database in sorted([*folder.glob(_DATABASE), *folder.glob(f"*/{_DATABASE}")]):
            if is_file(database, display_path(database, path), imported_data.problems.append):
                yield from _of_database(database, path, imported_data)
    for folder in folders or [path]:
        nested = folder.glob("*/*.jsonl") if folder.name == "sessions" else ()
        for file in sorted([*nested, *folder.glob("*.jsonl")]):
            if is_file(file, display_path(file, path), imported_data.problems.append):
                yield _of_file(file, path, imported_data)


def _of_file(file: Path, home: Path, imported_data: ImportedData) -> _Record:
    source = display_path(file, home)
    header: dict[str, Any] = {}
    messages: list[tuple[str, Any]] = []
    for number, value in read_json_lines(file, source, imported_data.problems.append):
        kind = value.get("_type") if isinstance(value, dict) else None
        if kind == "metadata":
            header = value
        elif kind != "provider_state":
            messages.append((_("{source}, line {number}", source=source, number=number), value))
    key = header.get("key")
    changed = format_time(datetime.fromtimestamp(file.stat().st_mtime, UTC))
    return _Record(
        key if isinstance(key, str) and key else _key_of(file.stem),
        source,
        header,
        messages,
        changed,
    )


def _key_of(stem: str) -> str:
    """Return the session's key from a file name, for files that do not contain it."""
    try:
        key = base64.urlsafe_b64decode(stem + "=" * (-len(stem) % 4)).decode()
        if ":" in key and base64.urlsafe_b64encode(key.encode()).decode().rstrip("=") == stem:
            return key
    except (binascii.Error, ValueError):
        pass
    return stem.replace("_", ":", 1)


def _of_database(file: Path, home: Path, imported_data: ImportedData) -> Iterator[_Record]:
    source = display_path(file, home)
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "SELECT key, created_at, updated_at, last_archived FROM sessions ORDER BY key"
            ).fetchall()
            for key, created, updated, settled in rows:
                header = {"created_at": created, "last_consolidated": settled}
                records = database.execute(
                    "SELECT position, record FROM messages WHERE session_key = ? ORDER BY position",
                    (key,),
                )
                messages = [
                    (
                        _(
                            "{source}, {key}, message {number}",
                            source=source,
                            key=key,
                            number=number,
                        ),
                        _loaded(text),
                    )
                    for number, text in records
                ]
                yield _Record(str(key), source, header, messages, str(updated))
    except sqlite3.Error as error:
        imported_data.problems.append(
            _("{source}: cannot be read ({error})", source=source, error=error)
        )


def _loaded(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _is_message(placed: tuple[str, Any]) -> bool:
    return isinstance(placed[1], dict) and isinstance(placed[1].get("role"), str)


def _conversation(
    record: _Record, imported_data: ImportedData, timezone: tzinfo
) -> ImportedSession:
    imported_session = ImportedSession(record.key, session_key(record.key, BOT), record.source)
    settled = record.header.get("last_archived", record.header.get("last_consolidated"))
    settled = settled if type(settled) is int else 0
    moment = parse_time(record.header.get("created_at"), timezone)
    moment = moment or parse_time(record.changed, timezone) or ""
    unanswered = PendingToolCalls()
    for place, (where, value) in enumerate(record.messages):
        if isinstance(value, dict):
            moment = parse_time(value.get("timestamp"), timezone) or moment
            entries = _entries(value, imported_session, moment, unanswered)
        else:
            entries = []
        for entry in entries:
            imported_data.add_entry(imported_session, entry, where)
        if not entries:
            imported_data.problems.append(_("{where}: is not a message; skipped", where=where))
        if place < settled:
            imported_session.consolidated_count = len(imported_session.entries)
    return imported_session


def _entries(
    value: dict[str, Any],
    imported_session: ImportedSession,
    moment: str,
    unanswered: PendingToolCalls,
) -> list[TapeEntry]:
    """Convert a message to entries; empty if it is no message."""
    role, content = value.get("role"), value.get("content")
    text, files = text_and_files(content)
    if role == "user":
        return [_heard(value, text, files, imported_session, moment)]
    if role == "assistant":
        calls = value.get("tool_calls")
        if isinstance(calls, list) and calls:
            return [call_entry(text, calls, unanswered, ts=moment)]
        used = value.get("tools_used")
        more = {"tools_used": [str(one) for one in used]} if isinstance(used, list) else {}
        return [message("assistant", text, ts=moment, **more)]
    if role == "tool":
        call_id, name = unanswered.take(value.get("tool_call_id"))
        return [result_entry(call_id, str(value.get("name") or name), content, ts=moment)]
    return [system(text, ts=moment)] if role == "system" and text else []


def _heard(
    value: dict[str, Any],
    text: str,
    files: list[dict[str, str]],
    imported_session: ImportedSession,
    moment: str,
) -> TapeEntry:
    media = value.get("media")
    for one in media if isinstance(media, list) else []:
        if isinstance(one, str):
            files = [*files, attachment(PurePath(one).name or one)]
    return user_message(
        text,
        imported_session.session,
        ts=moment,
        person=imported_session.key.partition(":")[2],
        sender_id=_first_text(value, "sender_id", "user_id"),
        sender_name=_first_text(value, "sender_name", "username", "name", "sender"),
        files=files,
    )


def _first_text(value: dict[str, Any], *names: str) -> str:
    found = (value.get(name) for name in names)
    return next((one for one in found if isinstance(one, str) and one), "")


# Memory.


def _holds_memory(folder: Path) -> bool:
    """Return whether a folder directly contains memory files."""
    return any((folder / name).is_file() for name in ("MEMORY.md", "HISTORY.md"))


def _read_memory(folder: Path, home: Path, imported_data: ImportedData, timezone: tzinfo) -> None:
    """Read a ``memory`` folder. Blocking."""
    memory = imported_data.memory
    text = read_text(
        folder / "MEMORY.md",
        display_path(folder / "MEMORY.md", home),
        imported_data.problems.append,
    )
    lines = [line for line in text.split("\n") if line.strip() not in _TEMPLATE]
    if any(line.strip() and not line.startswith("#") for line in lines):
        memory.long_term = _BLANKS.sub("\n\n", "\n".join(lines)).strip()
    memory.history = [
        *_history_lines(folder / "HISTORY.md", home, imported_data, timezone),
        *_history_records(folder / "history.jsonl", home, imported_data, timezone),
    ]
    for note in sorted([*folder.glob("*.md"), *folder.glob("notes/*.md")]):
        if _DAY.fullmatch(note.stem):
            body = read_text(note, display_path(note, home), imported_data.problems.append)
            body = body.removeprefix(f"# {note.stem}").strip()
            if body:
                memory.notes[note.stem] = body


def _history_lines(
    file: Path, home: Path, imported_data: ImportedData, timezone: tzinfo
) -> list[TapeEntry]:
    """Return the paragraphs of ``HISTORY.md``; each starts with its date in brackets."""
    name = display_path(file, home)
    parts: list[list[str]] = []
    raw = False
    for line in read_text(file, name, imported_data.problems.append).split("\n"):
        dated = _DATED.match(line)
        # A dump of messages has dated lines itself.
        if dated and not (raw and _RAW_LINE.match(line)):
            raw = line[dated.end() :].startswith("[RAW]")
            parts.append([line])
        elif parts:
            parts[-1].append(line)
        elif line.strip() and line.strip() != NOTICE:
            parts.append([line])
    moment = _changed(file)
    made = []
    for part in parts:
        text = "\n".join(part).strip()
        dated = _DATED.match(text)
        moment = (parse_time(dated.group(1), timezone) if dated else None) or moment
        made.append(_history_entry(text, moment, imported_data))
    return made


def _history_records(
    file: Path, home: Path, imported_data: ImportedData, timezone: tzinfo
) -> list[TapeEntry]:
    """Return the records of ``history.jsonl``: ``{"cursor", "timestamp", "content"}``.

    A record that names a session is added to that session only.
    """
    if not file.is_file():
        return []
    name = display_path(file, home)
    moment = _changed(file)
    sessions = {
        imported_session.key: imported_session.history
        for imported_session in imported_data.conversations
    }
    entries: list[TapeEntry] = []
    for number, value in read_json_lines(file, name, imported_data.problems.append):
        content = value.get("content") if isinstance(value, dict) else None
        if not isinstance(content, str):
            imported_data.problems.append(
                _("{name}, line {number}: is not history; skipped", name=name, number=number)
            )
            continue
        stamp = value.get("timestamp")
        moment = parse_time(stamp, timezone) or moment
        text = content.strip()
        if text:
            head = "" if _DATED.match(text) or not isinstance(stamp, str) else f"[{stamp}] "
            of_one = sessions.get(str(value.get("session_key")))
            (entries if of_one is None else of_one).append(
                _history_entry(head + text, moment, imported_data)
            )
    return entries


def _history_entry(text: str, moment: str, imported_data: ImportedData) -> TapeEntry:
    """Return a piece of history as an event."""
    data = {"entry": text, "from": moment, "to": moment}
    return event(HISTORY_EVENT, data, ts=moment, origin=imported_data.origin)


def _changed(file: Path) -> str:
    return format_time(datetime.fromtimestamp(file.stat().st_mtime, UTC)) if file.is_file() else ""
