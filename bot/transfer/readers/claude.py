"""Read Claude's data export: ``conversations.json`` and ``memories.json``, in an archive or a folder.

Newer exports come in several archives with ``memories/<account>.json`` and ``projects/<id>.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.core.clock import parse_time as parse_iso
from bot.core.i18n import N_, _
from bot.transfer.foreign import ForeignFile, find_files, read_objects
from bot.transfer.imported import (
    ImportedSession,
    Reading,
    attachment,
    dicts_in,
    newest_leaf,
    parse_time,
    path_to,
    text_and_files,
)

_UNTOLD = {
    "projects": N_("instructions and documents of projects are not read"),
    "users": N_("an account is no conversation; not read"),
}
_NAMES = (
    "conversations.json",
    "conversations-*.json",
    "memories.json",
    "projects.json",
    "users.json",
)
_PATTERNS = [*_NAMES, "memories/*.json", "projects/*.json", "*.zip"]
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_BLOCKED = "This block is not supported on your current device yet."  # for the parser


def read_claude(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the conversations of an export, in the order of its files. Blocking."""
    patterns = [*_PATTERNS, *(f"*/{pattern}" for pattern in _PATTERNS)]
    for file in find_files(path, patterns, reading.report):
        kind = file.place.stem.partition("-")[0]
        if kind not in ("conversations", "memories", *_UNTOLD):
            kind = file.place.parent.name
        if (untold := _UNTOLD.get(kind)) is not None:
            file.report(_(untold))
            continue
        found = 0
        for number, value in read_objects(file):
            if isinstance(value.get("chat_messages"), list):
                found += 1
                yield from _conversation(value, reading, file, number)
            elif _note_memory(value, reading, file.changed):
                found += 1
            else:
                file.report(
                    _("object {number} is no conversation of Claude; skipped", number=number)
                )
        if not found:
            file.report(_("holds no conversation and no memory; nothing of it is imported"))


def _conversation(
    value: dict[str, Any], reading: Reading, file: ForeignFile, number: int
) -> Iterator[ImportedSession]:
    key = value.get("uuid")
    where = f"{file.shown}, conversation {number}"  # for the tape
    session = reading.session(key if isinstance(key, str) and key else f"unnamed-{number}", where)
    if session is None:
        return
    moment = parse_time(value.get("created_at"), reading.timezone) or file.changed
    for message in _shown_messages(value, reading):
        moment = parse_time(message.get("created_at"), reading.timezone) or moment
        role = _ROLES.get(str(message.get("sender")))
        text, files = _text_and_files(message, reading)
        if role is None:
            reading.hidden[N_("system messages")] += 1
        else:
            reading.add_message(session, role, text, ts=moment, files=files)
    yield from reading.finished(session)


def _shown_messages(value: dict[str, Any], reading: Reading) -> list[dict[str, Any]]:
    """Return the messages on the branch that Claude shows; all if they form no tree."""
    messages = dicts_in(value["chat_messages"])
    by_id = {one["uuid"]: one for one in messages if isinstance(one.get("uuid"), str)}
    parents = {
        one: parent if isinstance(parent := message.get("parent_message_uuid"), str) else ""
        for one, message in by_id.items()
    }
    if len(by_id) < len(messages) or not any(parent in by_id for parent in parents.values()):
        return messages
    leaf = value.get("current_leaf_message_uuid")
    if not isinstance(leaf, str) or leaf not in by_id:
        moments = {one: parse_iso(message.get("created_at")) for one, message in by_id.items()}
        leaf = newest_leaf(
            parents, {one: at.timestamp() for one, at in moments.items() if at is not None}
        )
    shown = path_to(leaf, parents)
    if len(shown) < len(messages):
        reading.hidden[N_("in branches that were left")] += len(messages) - len(shown)
    return [by_id[one] for one in shown]


def _text_and_files(message: dict[str, Any], reading: Reading) -> tuple[str, list[dict[str, Any]]]:
    blocks = message.get("content")
    texts, others = text_and_files(blocks if isinstance(blocks, list) else [], reading.hidden)
    if others:
        reading.hidden[N_("to and from tools")] += len(others)
    if not isinstance(blocks, list) or not blocks:
        texts, _unused = text_and_files(message.get("text"), reading.hidden)
    text = "\n\n".join(part.strip() for part in texts if part.strip() and _BLOCKED not in part)
    files: dict[str, dict[str, Any]] = {}
    for place, one in enumerate(dicts_in(message.get("attachments"))):
        record = attachment(str(one.get("file_name") or "pasted text"))  # for the tape
        if isinstance(content := one.get("extracted_content"), str) and content.strip():
            # A person sent it, but it need not be their own words.
            record = {**record, "text": content}
            del record["note"]
        files[record["name"] if record["name"] not in files else f"{place}"] = record
    for one in [*dicts_in(message.get("files")), *dicts_in(message.get("files_v2"))]:
        name = str(one.get("file_name") or "file")
        files.setdefault(name, attachment(name))
    return text, list(files.values())


def _note_memory(value: dict[str, Any], reading: Reading, changed: str) -> bool:
    """Add the memory of an account; return whether the value is one."""
    told, projects = value.get("conversations_memory"), value.get("project_memories")
    if not isinstance(told, str) and not isinstance(projects, dict):
        return False
    if isinstance(told, str):
        reading.add_memory(told, when=changed)
    for text in projects.values() if isinstance(projects, dict) else ():
        if isinstance(text, str):
            reading.add_memory(text, when=changed, subject="A project")
    return True
