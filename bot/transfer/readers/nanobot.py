"""Read nanobot's sessions (JSONL or SQLite) and its memory (Markdown and JSONL).

A session file has a line of metadata (``"_type": "metadata"`` with ``key`` and
``last_consolidated``), then one message per line in the provider's format with a ``timestamp``.
Releases from 0.3.6 on keep the same records in ``sessions.sqlite3``.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.memory.records.event_names import HISTORY_EVENT
from bot.tape.entries import TapeEntry, event, message, system, tool_call, tool_result
from bot.transfer.foreign import ForeignFile, find_files
from bot.transfer.imported import (
    ImportedSession,
    Reading,
    attachment,
    dicts_in,
    parse_time,
    text_and_files,
    user_message,
)
from bot.transfer.memory_files import NOTICE

_DATABASE = "sessions.sqlite3"
_NAMES = (_DATABASE, f"*/{_DATABASE}", "*/*.jsonl", "*.jsonl")
_MEMORY = ("MEMORY.md", "HISTORY.md", "history.jsonl", "*-*-*.md", "notes/*-*-*.md")
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
    file: ForeignFile
    header: dict[str, Any]
    messages: list[tuple[str, Any]]


def read_nanobot(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the sessions at a path, once all of them and the memory are read. Blocking."""
    sessions: dict[str, ImportedSession] = {}
    # Of several copies the one that nanobot uses comes first.
    places = [f"{home}sessions/{name}" for name in _NAMES for home in ("", "workspace/")]
    loose = _NAMES if path.resolve().name == "sessions" else _NAMES[:2] + _NAMES[3:]
    files = find_files(path, places, reading.report) or find_files(path, loose, reading.report)
    for file in files:
        is_database = file.place.name == _DATABASE
        for record in _of_database(file) if is_database else _of_file(file):
            if not record.header and not any("role" in one for _at, one in record.messages if one):
                file.tell(_("{source}: contains no session; skipped", source=file.shown))
            elif (session := reading.session(record.key, file.shown)) is not None:
                _convert(record, session, reading)
                sessions[record.key] = session
    _read_memory(path, reading, sessions)
    yield from sessions.values()


def _of_file(file: ForeignFile) -> Iterator[_Record]:
    header: dict[str, Any] = {}
    messages: list[tuple[str, Any]] = []
    for number, value in file.json_lines() if file.place.suffix == ".jsonl" else ():
        kind = value.get("_type") if isinstance(value, dict) else None
        if kind == "metadata":
            header = value
        elif kind != "provider_state":
            where = _("{source}, line {number}", source=file.shown, number=number)
            messages.append((where, value if isinstance(value, dict) else None))
    key = header.get("key")
    named = key if isinstance(key, str) and key else file.place.stem.replace("_", ":", 1)
    yield _Record(named, file, header, messages)


def _of_database(file: ForeignFile) -> Iterator[_Record]:
    try:
        with closing(sqlite3.connect(f"{file.path.as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "SELECT key, created_at, updated_at, last_archived FROM sessions ORDER BY key"
            )
            for key, created, updated, settled in rows.fetchall():
                header = {"created_at": created or updated, "last_consolidated": settled}
                records = database.execute(
                    "SELECT position, record FROM messages WHERE session_key = ? ORDER BY position",
                    (key,),
                )
                messages = []
                for number, text in records:
                    named = {"source": file.shown, "key": key, "number": number}
                    messages.append(
                        (_("{source}, {key}, message {number}", **named), _loaded(text))
                    )
                yield _Record(str(key), file, header, messages)
    except sqlite3.Error as error:
        file.report(_("cannot be read ({error})", error=error))


def _loaded(text: object) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _convert(record: _Record, session: ImportedSession, reading: Reading) -> None:
    """Add a record's messages to its session."""
    settled = record.header.get("last_archived", record.header.get("last_consolidated"))
    moment = parse_time(record.header.get("created_at"), reading.timezone) or record.file.changed
    pending: dict[str, str] = {}
    for place, (where, value) in enumerate(record.messages):
        moment = parse_time((value or {}).get("timestamp"), reading.timezone) or moment
        entry = _entry(value or {}, session, moment, pending)
        if entry is None:
            reading.report(_("{where}: is not a message; skipped", where=where))
        else:
            reading.add(session, entry, where)
        if type(settled) is int and place < settled:
            session.consolidated_count = len(session.entries)


def _entry(
    value: dict[str, Any], session: ImportedSession, moment: str, pending: dict[str, str]
) -> TapeEntry | None:
    """Convert a message to an entry; None if it is no message.

    ``pending`` has the calls of the last request that have no result yet, in order: names by ids.
    """
    role, content = value.get("role"), value.get("content")
    content = _json(content) if isinstance(content, dict) else content
    texts, files = text_and_files(content, Counter())
    text = "\n".join(texts)
    if role == "user":
        media = value.get("media")
        paths = [one for one in media if isinstance(one, str)] if isinstance(media, list) else []
        return user_message(
            text,
            session.session,
            ts=moment,
            person=session.key.partition(":")[2],
            sender_id=_first_text(value, "sender_id", "user_id"),
            sender_name=_first_text(value, "sender_name", "username", "name", "sender"),
            files=[*files, *(attachment(PurePath(one).name or one) for one in paths)],
        )
    if role == "assistant":
        if calls := [_call(*one) for one in enumerate(dicts_in(value.get("tool_calls")), start=1)]:
            pending.clear()
            pending |= {call["id"]: call["name"] for call in calls}
            return tool_call(text, calls, ts=moment)
        used = value.get("tools_used")
        more = {"tools_used": [str(one) for one in used]} if isinstance(used, list) else {}
        return message("assistant", text, ts=moment, **more)
    if role == "tool":
        call_id = _first_text(value, "tool_call_id") or next(iter(pending), "call-0")
        name = pending.pop(call_id, "tool")
        told = "".join(f"\n({file['kind']}: {file['note']})" for file in files)
        return tool_result(call_id, str(value.get("name") or name), text + told, ts=moment)
    return system(text, ts=moment) if role == "system" and text else None


def _call(place: int, call: dict[str, Any]) -> dict[str, str]:
    """Return a call from any provider's format."""
    function = call.get("function")
    function = function if isinstance(function, dict) else call
    arguments = function.get("arguments", {})
    return {
        "id": str(call.get("id") or f"call-{place}"),
        "name": str(function.get("name") or "unknown"),
        "arguments": arguments if isinstance(arguments, str) else _json(arguments),
    }


def _first_text(value: dict[str, Any], *names: str) -> str:
    found = (value.get(name) for name in names)
    return next((one for one in found if isinstance(one, str) and one), "")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# Memory.


def _read_memory(path: Path, reading: Reading, sessions: dict[str, ImportedSession]) -> None:
    """Read the first folder of memory at a path."""
    has_more = path.is_dir() or zipfile.is_zipfile(path)
    folders = ("memory/", "workspace/memory/", "") if has_more else ()
    found = (find_files(path, [f"{at}{one}" for one in _MEMORY], reading.report) for at in folders)
    memory = reading.shared
    for file in next(filter(None, found), ()):
        if file.place.name == "history.jsonl":
            for entry, session in _history_records(file, reading, sessions):
                (memory if session is None else session).history.append(entry)
            continue
        text, stem = file.text(), file.place.stem
        if stem == "MEMORY":
            lines = [line for line in text.split("\n") if line.strip() not in _TEMPLATE]
            if any(line.strip() and not line.startswith("#") for line in lines):
                memory.text = _BLANKS.sub("\n\n", "\n".join(lines)).strip()
        elif stem == "HISTORY":
            memory.history += _history_paragraphs(text, file.changed, reading)
        elif _DAY.fullmatch(stem) and (body := text.removeprefix(f"# {stem}").strip()):
            memory.notes[stem] = body


def _history_paragraphs(text: str, moment: str, reading: Reading) -> Iterator[TapeEntry]:
    """Yield the paragraphs of ``HISTORY.md``; each starts with its date in brackets."""
    parts: list[list[str]] = []
    raw = False
    for line in text.split("\n"):
        dated = _DATED.match(line)
        # A dump of messages has dated lines itself.
        if dated and not (raw and _RAW_LINE.match(line)):
            raw = line[dated.end() :].startswith("[RAW]")
            parts.append([line])
        elif parts:
            parts[-1].append(line)
        elif line.strip() and line.strip() != NOTICE:
            parts.append([line])
    for told in ("\n".join(part).strip() for part in parts):
        dated = _DATED.match(told)
        moment = (parse_time(dated.group(1), reading.timezone) if dated else None) or moment
        yield _history_entry(told, moment, reading)


def _history_records(
    file: ForeignFile, reading: Reading, sessions: dict[str, ImportedSession]
) -> Iterator[tuple[TapeEntry, ImportedSession | None]]:
    """Yield the records ``{"cursor", "timestamp", "content"}``, each with the session that it names."""
    moment = file.changed
    for number, value in file.json_lines():
        content = value.get("content") if isinstance(value, dict) else None
        if not isinstance(content, str):
            named = {"name": file.shown, "number": number}
            reading.report(_("{name}, line {number}: is not history; skipped", **named))
        elif text := content.strip():
            stamp = value.get("timestamp")
            moment = parse_time(stamp, reading.timezone) or moment
            head = "" if _DATED.match(text) or not isinstance(stamp, str) else f"[{stamp}] "
            entry = _history_entry(head + text, moment, reading)
            yield entry, sessions.get(str(value.get("session_key")))


def _history_entry(text: str, moment: str, reading: Reading) -> TapeEntry:
    """Return a piece of history as an event."""
    data = {"entry": text, "from": moment, "to": moment}
    return event(HISTORY_EVENT, data, ts=moment, origin=reading.origin)
