"""Import nanobot's sessions (JSONL or SQLite), and its memory by ``nanobot_memory``.

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
from bot.tape.entries import TapeEntry, message, system
from bot.transfer.conversion import (
    PendingToolCalls,
    attachment,
    call_entry,
    is_private,
    parse_time,
    result_entry,
    session_key,
    text_and_files,
)
from bot.transfer.imported import (
    ImportedData,
    ImportedSession,
    display_path,
    is_file,
    name_sessions,
    read_json_lines,
)
from bot.transfer.nanobot_memory import holds_memory, read_memory

BOT = "nanobot"

_DATABASE = "sessions.sqlite3"
_OWN_CONSOLE = ("cli:direct", "cli:default")


@dataclass(frozen=True, slots=True)
class _Record:
    """A session's raw data: its key, metadata, and messages with their file and line."""

    key: str
    source: str
    header: dict[str, Any]
    messages: list[tuple[str, Any]]
    changed: str


def read_nanobot(path: Path, timezone: tzinfo) -> ImportedData:
    """Read the sessions and memory at a path. Blocking.

    Args:
        path: nanobot's home (``~/.nanobot``), its workspace, one session file, or a folder that
            contains ``MEMORY.md`` or ``HISTORY.md``.
        timezone: Timezone of its times, which nanobot writes without one.
    """
    found = ImportedData(BOT)
    taken: dict[str, str] = {}
    for record in _records(path, found):
        if not record.header and not any(map(_is_message, record.messages)):
            found.problems.append(f"{record.source}: holds no session; passed over")
            continue
        if record.key in taken:
            found.problems.append(
                f"{record.source}: another copy of {record.key}, which is in "
                f"{taken[record.key]}; passed over"
            )
            continue
        taken[record.key] = record.source
        found.conversations.append(_conversation(record, found, timezone))
    found.conversations.sort(key=lambda one: one.last_timestamp, reverse=True)
    name_sessions(found, _OWN_CONSOLE)
    for folder in (path / "memory", path / "workspace" / "memory", path):
        if folder.is_dir() and (folder != path or holds_memory(path)):
            read_memory(folder, path, found, timezone)
            break
    return found


# Sessions.


def _records(path: Path, found: ImportedData) -> Iterator[_Record]:
    """Yield the sessions at a path; of several copies the one that nanobot uses comes first."""
    if path.is_file():
        yield from (
            _of_database(path, path, found)
            if path.name == _DATABASE
            else [_of_file(path, path.parent, found)]
        )
        return
    folders = [one for one in (path / "sessions", path / "workspace" / "sessions") if one.is_dir()]
    for folder in folders or [path]:
        for database in sorted([*folder.glob(_DATABASE), *folder.glob(f"*/{_DATABASE}")]):
            yield from _of_database(database, path, found)
    for folder in folders or [path]:
        nested = folder.glob("*/*.jsonl") if folder.name == "sessions" else ()
        for file in sorted([*nested, *folder.glob("*.jsonl")]):
            if is_file(file, display_path(file, path), found.problems):
                yield _of_file(file, path, found)


def _of_file(file: Path, home: Path, found: ImportedData) -> _Record:
    source = display_path(file, home)
    header: dict[str, Any] = {}
    messages: list[tuple[str, Any]] = []
    for number, value in read_json_lines(file, source, found.problems):
        kind = value.get("_type") if isinstance(value, dict) else None
        if kind == "metadata":
            header = value
        elif kind != "provider_state":
            messages.append((f"{source}, line {number}", value))
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


def _of_database(file: Path, home: Path, found: ImportedData) -> Iterator[_Record]:
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
                    (f"{source}, {key}, message {number}", _loaded(text))
                    for number, text in records
                ]
                yield _Record(str(key), source, header, messages, str(updated))
    except sqlite3.Error as error:
        found.problems.append(f"{source}: cannot be read ({error})")


def _loaded(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _is_message(placed: tuple[str, Any]) -> bool:
    return isinstance(placed[1], dict) and isinstance(placed[1].get("role"), str)


def _conversation(record: _Record, found: ImportedData, timezone: tzinfo) -> ImportedSession:
    made = ImportedSession(record.key, session_key(record.key, BOT), record.source)
    settled = record.header.get("last_archived", record.header.get("last_consolidated"))
    settled = settled if type(settled) is int else 0
    moment = parse_time(record.header.get("created_at"), timezone)
    moment = moment or parse_time(record.changed, timezone) or ""
    unanswered = PendingToolCalls()
    for place, (where, value) in enumerate(record.messages):
        if isinstance(value, dict):
            moment = parse_time(value.get("timestamp"), timezone) or moment
            entries = _entries(value, made, moment, unanswered)
        else:
            entries = []
        for entry in entries:
            found.add_entry(made, entry, where)
        if not entries:
            found.problems.append(f"{where}: is no message; passed over")
        if place < settled:
            made.consolidated_count = len(made.entries)
    return made


def _entries(
    value: dict[str, Any], made: ImportedSession, moment: str, unanswered: PendingToolCalls
) -> list[TapeEntry]:
    """Convert a message to entries; empty if it is no message."""
    role, content = value.get("role"), value.get("content")
    text, files = text_and_files(content)
    if role == "user":
        return [_heard(value, text, files, made, moment)]
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
    made: ImportedSession,
    moment: str,
) -> TapeEntry:
    media = value.get("media")
    for one in media if isinstance(media, list) else []:
        if isinstance(one, str):
            files = [*files, attachment(PurePath(one).name or one)]
    private = is_private(made.session)
    # Only in a private chat does the chat id identify the person.
    person = made.key.partition(":")[2] if private else "unknown"
    sender = {
        "id": _first_text(value, "sender_id", "user_id") or person,
        "name": _first_text(value, "sender_name", "username", "name", "sender") or "user",
    }
    meta: dict[str, Any] = {"ts": moment, "sent": moment, "sender": sender}
    if private is not None:
        meta["private"] = private
    if files:
        meta["attachments"] = files
    return message("user", text, **meta)


def _first_text(value: dict[str, Any], *names: str) -> str:
    found = (value.get(name) for name in names)
    return next((one for one in found if isinstance(one, str) and one), "")
