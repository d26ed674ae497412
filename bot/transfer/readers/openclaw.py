"""Read OpenClaw's transcripts and memory files.

``agents/<agent>/sessions/<id>.jsonl`` holds a header and then entries, each with its parent's id: the
conversation is the way from the last entry to the root. ``sessions.json`` beside it names the chat of
each transcript. A workspace holds ``MEMORY.md``, ``USER.md`` and notes by day.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.transfer.foreign import ForeignFile, find_files
from bot.transfer.imported import ImportedSession, Reading, parse_time, path_to, text_and_files

_TRANSCRIPTS = ("agents/*/sessions/sessions.json", "agents/*/sessions/*.jsonl")
_LOOSE = ("sessions.json", "*.jsonl")
_MEMORY = ("MEMORY.md", "USER.md", "memory/*.md")
_LONGEST_FILE = 256 * 1024 * 1024
_DATED = LazyPattern(r"\d{4}-\d\d-\d\d")
_CHAT_OF_OTHERS = LazyPattern(
    r":(group|channel|topic|thread|cron|subagent|hook|acp|heartbeat)(:|$)"
)
_OF_OTHERS = N_("conversations in groups, of schedules or of sub-agents")
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
_BLOCKS = ("(untrusted metadata):", "(untrusted, for context):")  # for the parser
_SHOWN_ENVELOPE = 300


def read_openclaw(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the conversations at a path, then the notes by day. Blocking."""
    files = find_files(path, _TRANSCRIPTS, reading.report)
    files = files or find_files(path, _LOOSE, reading.report)
    if path.suffix == ".jsonl":
        files = [*find_files(path.resolve().parent, ["sessions.json"], reading.report), *files]
    keys: dict[tuple[PurePosixPath, str], str] = {}
    # In an archive they need not stand before their transcripts.
    for file in (one for one in files if one.place.name == "sessions.json"):
        keys |= {(file.place.parent, one): key for one, key in _session_keys(file).items()}
    for file in files:
        folder, name = file.place.parent, file.place.stem
        if file.place.suffix != ".jsonl":
            continue
        elif "-topic-" in name or _CHAT_OF_OTHERS.search(keys.get((folder, name), "")):
            reading.hidden[_OF_OTHERS] += 1
        else:
            yield from _conversation(file, reading)
    for file in find_files(
        path, [*_MEMORY, *(f"workspace*/{name}" for name in _MEMORY)], reading.report
    ):
        if file.place.suffix == ".md":
            yield from _read_memory(file, reading)


def _session_keys(file: ForeignFile) -> dict[str, str]:
    """Return the key of the chat of each transcript that ``sessions.json`` names, by its id."""
    try:
        found = json.loads(file.text())
    except (ValueError, RecursionError):
        file.report(_("cannot be read; chats are known by their transcripts alone"))
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {
        str(one["sessionId"]): key
        for key, one in entries
        if isinstance(one, dict) and isinstance(one.get("sessionId"), str)
    }


def _conversation(file: ForeignFile, reading: Reading) -> Iterator[ImportedSession]:
    size = file.member.file_size if file.member else file.path.stat().st_size
    if size > _LONGEST_FILE:
        file.report(_("is longer than {mib} MiB; skipped", mib=_LONGEST_FILE >> 20))
        return
    session = reading.session(file.place.stem, file.shown)
    if session is None:
        return
    moment = file.changed
    kept, others = _last_branch([one for _, one in file.json_lines() if isinstance(one, dict)])
    if others:
        reading.hidden[N_("in branches that were left")] += others
    for value in kept:
        message = value.get("message")
        if not isinstance(message, dict) or value.get("type", "message") != "message":
            continue
        for one in (message, value):
            moment = parse_time(one.get("timestamp"), reading.timezone) or moment
        texts, files = text_and_files(message.get("content"), reading.hidden)
        raw = "\n".join(texts)
        if any(mark in raw for mark in _GROUP_MARKS) and message.get("role") == "user":
            reading.hidden[_OF_OTHERS] += 1
            session.entries.clear()
            break
        if (why := _hidden_reason(message, text := _own_text(raw))) is not None:
            reading.hidden[why] += 1
        else:
            reading.add_message(session, str(message["role"]), text, ts=moment, files=files)
    yield from reading.finished(session)


def _last_branch(entries: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return the entries on the way to the last one, and the number of messages on other ways."""
    parents: dict[str, str] = {}
    by_id: dict[str, dict[str, Any]] = {}
    before = ""
    entries = [value for value in entries if value.get("type") != "session"]
    for value in entries:
        one, parent = value.get("id"), value.get("parentId")
        if isinstance(one, str):
            # What followed a line that is lost goes on with the line before it.
            known = not isinstance(parent, str) or parent in parents
            parents[one] = (parent if isinstance(parent, str) else "") if known else before
            by_id[one], before = value, one
    if not by_id:
        return entries, 0
    shown = path_to(before, parents)
    others = sum("message" in by_id[one] for one in by_id.keys() - set(shown))
    return [by_id[one] for one in shown], others


def _hidden_reason(message: dict[str, Any], text: str) -> str | None:
    role, provenance = message.get("role"), message.get("provenance")
    if role not in ("user", "assistant"):
        return N_("to and from tools")
    kind = provenance.get("kind") if isinstance(provenance, dict) else None
    if role == "user" and (text.startswith(_NOT_THE_PERSON) or kind not in (None, "external_user")):
        return N_("written by OpenClaw itself")
    is_silent = role == "assistant" and text in ("HEARTBEAT_OK", "NO_REPLY")
    return N_("silent answers") if is_silent else None


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


def _read_memory(file: ForeignFile, reading: Reading) -> Iterator[ImportedSession]:
    """Add the memory of a workspace's file; yield a note by day, which is kept as it is."""
    text, moment = file.text(), file.changed
    day = _DATED.match(file.place.stem) if file.place.parent.name == "memory" else None
    if day is None:
        reading.add_memory(_without_template(text), when=moment)
    elif text and (session := reading.session(f"note-{file.place.stem}", file.shown)) is not None:
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
