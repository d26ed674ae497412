"""Import nanobot's memory: ``MEMORY.md``, its history and daily notes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from bot.core.clock import format_time
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.tape.entries import TapeEntry, event
from bot.transfer.conversion import parse_time
from bot.transfer.imported import ImportedData, display_path, read_json_lines, read_text
from bot.transfer.memory_markdown import NOTICE

_BLANKS = re.compile(r"\n\s*\n")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DATED = re.compile(r"\[(\d{4}-\d\d-\d\d[^\]]*)\]\s*")
_RAW_LINE = re.compile(r"\[\d{4}-\d\d-\d\d[^\]]*\]\s+[A-Z][A-Z0-9_]*(?: \[tools: [^\]]*\])?:")
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


def holds_memory(folder: Path) -> bool:
    """Return whether a folder directly contains memory files."""
    return any((folder / name).is_file() for name in ("MEMORY.md", "HISTORY.md"))


def read_memory(folder: Path, home: Path, found: ImportedData, timezone: tzinfo) -> None:
    """Read a ``memory`` folder. Blocking.

    Args:
        folder: The folder.
        home: The folder that displayed paths are relative to.
        found: Receives the memory; its conversations receive history that names their session.
        timezone: Timezone of its times, which nanobot writes without one.
    """
    memory = found.memory
    text = read_text(folder / "MEMORY.md", display_path(folder / "MEMORY.md", home), found.problems)
    lines = [line for line in text.split("\n") if line.strip() not in _TEMPLATE]
    if any(line.strip() and not line.startswith("#") for line in lines):
        memory.long_term = _BLANKS.sub("\n\n", "\n".join(lines)).strip()
    memory.history = [
        *_history_lines(folder / "HISTORY.md", home, found, timezone),
        *_history_records(folder / "history.jsonl", home, found, timezone),
    ]
    for note in sorted([*folder.glob("*.md"), *folder.glob("notes/*.md")]):
        if _DAY.fullmatch(note.stem):
            body = read_text(note, display_path(note, home), found.problems)
            body = body.removeprefix(f"# {note.stem}").strip()
            if body:
                memory.notes[note.stem] = body


def _history_lines(
    file: Path, home: Path, found: ImportedData, timezone: tzinfo
) -> list[TapeEntry]:
    """Return the paragraphs of ``HISTORY.md``; each starts with its date in brackets."""
    name = display_path(file, home)
    parts: list[list[str]] = []
    raw = False
    for line in read_text(file, name, found.problems).split("\n"):
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
        made.append(_history_entry(text, moment, found))
    return made


def _history_records(
    file: Path, home: Path, found: ImportedData, timezone: tzinfo
) -> list[TapeEntry]:
    """Return the records of ``history.jsonl``: ``{"cursor", "timestamp", "content"}``.

    A record that names a session is added to that session only.
    """
    if not file.is_file():
        return []
    name = display_path(file, home)
    moment = _changed(file)
    sessions = {one.key: one.history for one in found.conversations}
    made: list[TapeEntry] = []
    for number, value in read_json_lines(file, name, found.problems):
        content = value.get("content") if isinstance(value, dict) else None
        if not isinstance(content, str):
            found.problems.append(f"{name}, line {number}: is no history; passed over")
            continue
        stamp = value.get("timestamp")
        moment = parse_time(stamp, timezone) or moment
        text = content.strip()
        if text:
            head = "" if _DATED.match(text) or not isinstance(stamp, str) else f"[{stamp}] "
            of_one = sessions.get(str(value.get("session_key")))
            (made if of_one is None else of_one).append(_history_entry(head + text, moment, found))
    return made


def _history_entry(text: str, moment: str, found: ImportedData) -> TapeEntry:
    """Return a piece of history as an event."""
    data = {"entry": text, "from": moment, "to": moment}
    return event(HISTORY_EVENT, data, ts=moment, origin=found.origin)


def _changed(file: Path) -> str:
    return format_time(datetime.fromtimestamp(file.stat().st_mtime, UTC)) if file.is_file() else ""
