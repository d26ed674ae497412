"""Import OpenClaw's transcripts and memory files.

``agents/<agent>/sessions/<id>.jsonl`` holds a header and then entries, each with its parent's id: the
conversation is the way from the last entry to the root. ``sessions.json`` beside it names the chat of
each transcript. A workspace holds ``MEMORY.md``, ``USER.md`` and notes by day.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.core.clock import format_time
from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.transfer.conversion import attachment, parse_time
from bot.transfer.imported import ImportedSession, display_path, is_file, read_text
from bot.transfer.reading import Reading, path_to

BOT = "openclaw"

_LONGEST_LINE = 8 * 1024 * 1024
_LONGEST_FILE = 256 * 1024 * 1024
_DATED = LazyPattern(r"\d{4}-\d\d-\d\d")
_CHAT_OF_OTHERS = LazyPattern(
    r":(group|channel|topic|thread|cron|subagent|hook|acp|heartbeat)(:|$)"
)
_GROUP_MARKS = ('"is_group_chat": true', '"group_subject"', '"group_channel"')  # for the parser
# Texts that OpenClaw sends in the person's name.
_NOT_THE_PERSON = (
    "[cron:",
    "[heartbeat",
    "Read HEARTBEAT.md",  # for the parser
    "A new session was started via",  # for the parser
    "Pre-compaction memory flush",  # for the parser
    "[Inter-session message]",  # for the parser
    "[Subagent",
)
_SILENT = frozenset({"HEARTBEAT_OK", "NO_REPLY"})
_BLOCKS = ("(untrusted metadata):", "(untrusted, for context):")  # for the parser
_SHOWN_ENVELOPE = 300


def read_openclaw(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the conversations at a path, then the notes by day. Blocking."""
    path = path.resolve()
    folders = [path] if path.is_dir() else [path.parent]
    for folder in sorted(path.glob("agents/*/sessions")) or folders:
        keys = _session_keys(folder, reading)
        files = sorted(folder.glob("*.jsonl")) if path.is_dir() else [path]
        for file in files:
            shown = display_path(file, path)
            if not is_file(file, shown, reading.report):
                continue
            key = keys.get(file.stem, "")
            if "-topic-" in file.stem or _CHAT_OF_OTHERS.search(key):
                reading.hide(N_("conversations in groups, of schedules or of sub-agents"))
                continue
            session = _conversation(file, shown, reading)
            if session is not None and session.entries:
                yield session
            elif session is not None:
                reading.skipped += 1
    for workspace in [path, *sorted(path.glob("workspace*"))]:
        if workspace.is_dir():
            yield from _read_workspace(workspace, path, reading)


def _session_keys(folder: Path, reading: Reading) -> dict[str, str]:
    """Return the key of the chat of each transcript that ``sessions.json`` names, by its id."""
    file = folder / "sessions.json"
    if not file.is_file():
        return {}
    try:
        found = json.loads(read_text(file, file.name, reading.report))
    except (ValueError, RecursionError):
        reading.report(
            _("{name}: cannot be read; chats are known by their transcripts alone", name=file.name)
        )
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {
        str(one["sessionId"]): key
        for key, one in entries
        if isinstance(one, dict) and isinstance(one.get("sessionId"), str)
    }


def _conversation(file: Path, shown: str, reading: Reading) -> ImportedSession | None:
    if file.stat().st_size > _LONGEST_FILE:
        reading.report(
            _(
                "{shown}: is longer than {mib} MiB; skipped",
                shown=shown,
                mib=_LONGEST_FILE // 1024 // 1024,
            )
        )
        return None
    key, entries = file.stem, _entries(file, shown, reading)
    moment = format_time(datetime.fromtimestamp(file.stat().st_mtime, UTC))
    session = reading.session(key, shown)
    if session is None:
        return None
    kept, others = _last_branch(entries)
    if others:
        reading.hide(N_("in branches that were left"), others)
    for value in kept:
        message = value.get("message")
        if not isinstance(message, dict) or value.get("type", "message") != "message":
            continue
        moment = parse_time(message.get("timestamp"), reading.timezone) or moment
        moment = parse_time(value.get("timestamp"), reading.timezone) or moment
        raw, files = _text_and_files(message.get("content"), reading)
        if any(mark in raw for mark in _GROUP_MARKS) and message.get("role") == "user":
            reading.hide(N_("conversations in groups, of schedules or of sub-agents"))
            session.entries.clear()
            return session
        why = _hidden_reason(message, text := _own_text(raw))
        if why is not None:
            reading.hide(why)
        elif text or files:
            reading.add_message(session, str(message["role"]), text, ts=moment, files=files)
        else:
            reading.hide("empty")
    return session


def _entries(file: Path, shown: str, reading: Reading) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with file.open("rb") as stream:
        number = 0
        while line := stream.readline(_LONGEST_LINE):
            number += 1
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                if line.strip():
                    reading.report(
                        _("{shown}, line {number}: cannot be read", shown=shown, number=number)
                    )
                continue
            if isinstance(value, dict):
                found.append(value)
    return found


def _last_branch(entries: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return the entries on the way to the last one, and the number of messages on other ways."""
    parents: dict[str, str] = {}
    by_id: dict[str, dict[str, Any]] = {}
    before = ""
    for value in entries:
        one, parent = value.get("id"), value.get("parentId")
        if value.get("type") == "session" or not isinstance(one, str):
            continue
        # What followed a line that is lost goes on with the line before it.
        known = not isinstance(parent, str) or parent in parents
        parents[one] = (parent if isinstance(parent, str) else "") if known else before
        by_id[one] = value
        before = one
    if not by_id:
        return [value for value in entries if value.get("type") != "session"], 0
    kept = path_to(before, parents)
    shown = set(kept)
    others = sum("message" in value for one, value in by_id.items() if one not in shown)
    return [by_id[one] for one in kept], others


def _hidden_reason(message: dict[str, Any], text: str) -> str | None:
    role, provenance = message.get("role"), message.get("provenance")
    if role not in ("user", "assistant"):
        return N_("to and from tools")
    kind = provenance.get("kind") if isinstance(provenance, dict) else None
    if role == "user" and (text.startswith(_NOT_THE_PERSON) or kind not in (None, "external_user")):
        return N_("written by OpenClaw itself")
    return N_("silent answers") if role == "assistant" and text in _SILENT else None


def _text_and_files(content: object, reading: Reading) -> tuple[str, list[dict[str, str]]]:
    if isinstance(content, str):
        return content, []
    texts: list[str] = []
    files: list[dict[str, str]] = []
    for part in content if isinstance(content, list) else []:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "thinking":
            reading.hide("thoughts")
        elif kind in ("toolCall", "tool_use", "toolResult"):
            reading.hide(N_("to and from tools"))
        elif kind is not None:
            files.append(attachment(str(kind), str(kind)))
    return "\n".join(texts), files


def _own_text(text: str) -> str:
    """Return a message without what OpenClaw puts before the person's words."""
    text = text.removeprefix("[[reply_to_current]]").strip()
    while True:
        first, _unused, rest = text.partition("\n")
        first = first.rstrip()
        if first.endswith(_BLOCKS) and rest.startswith("```"):
            _unused, fence, after = rest[3:].partition("\n```")
            if not fence:
                return text
            text = after.strip()
        elif first.startswith(("System: [", "[message_id:")):
            text = rest.strip()
        else:
            break
    envelope, bracket, said = text[:_SHOWN_ENVELOPE].partition("]")
    if bracket and envelope.startswith("[") and _DATED.search(envelope):
        text = said + text[_SHOWN_ENVELOPE:]
    lines = (line for line in text.split("\n") if not line.startswith("[message_id:"))
    return "\n".join(lines).strip()


def _read_workspace(folder: Path, home: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Add the memory of a workspace, and yield its notes by day."""
    notes = folder / "memory"
    for file in (folder / "MEMORY.md", folder / "USER.md", *sorted(notes.glob("*.md"))):
        if not file.is_file():
            continue
        shown = display_path(file, home)
        text = read_text(file, shown, reading.report)
        moment = format_time(datetime.fromtimestamp(file.stat().st_mtime, UTC))
        day = _DATED.match(file.stem)
        if day is None or file.parent != notes:
            reading.add_memory(_without_template(text), when=moment)
        elif text and (session := reading.session(f"note-{file.stem}", shown)) is not None:
            moment = parse_time(day.group(), reading.timezone) or moment
            reading.add_message(session, "assistant", text, ts=moment)
            session.consolidated_count = 1
            yield session


def _without_template(text: str) -> str:
    """Return a memory file without the lines of its template that nobody filled in."""
    kept = []
    for line in text.split("\n"):
        bare = line.strip().strip("-*_ ")
        italic = line.strip().startswith("_") and line.strip().endswith("_")
        if not (bare.endswith(":") or bare == "" or italic):
            kept.append(line)
    return "\n".join(kept)
