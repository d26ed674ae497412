"""Import Claude's data export: ``conversations.json`` and ``memories.json``, in an archive or a folder.

Newer exports come in several archives with ``memories/<account>.json`` and ``projects/<id>.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.core.clock import parse_time as parse_iso
from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.transfer.conversion import attachment, parse_time
from bot.transfer.export_files import ExportFile, find_files
from bot.transfer.imported import ImportedSession
from bot.transfer.json_stream import read_objects
from bot.transfer.reading import Reading, newest_leaf, path_to

BOT = "claude"

_FILES = LazyPattern(r"(conversations(-\d{1,9})?|memories|projects|users)\.json")
_FOLDERS = ("memories", "projects")
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_UNTOLD = {
    "projects": N_("instructions and documents of projects are not read"),
    "users": N_("an account is no conversation; not read"),
}
_BLOCKED = "This block is not supported on your current device yet."  # for the parser


def read_claude(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the conversations of an export, in the order of its files. Blocking."""
    for file in find_files(path, _is_wanted, reading.report):
        kind = _kind(file)
        if kind in _UNTOLD:
            reading.report(f"{file.shown}: {_(_UNTOLD[kind])}")
            continue

        def report(problem: str, file: ExportFile = file) -> None:
            reading.report(f"{file.shown}: {problem}")

        found = 0
        with file.open(report) as stream:
            for number, value in read_objects(stream, report):
                if isinstance(value.get("chat_messages"), list):
                    found += 1
                    yield from _conversation(value, reading, file, number)
                elif _note_memory(value, reading, file.changed):
                    found += 1
                else:
                    report(
                        _("object {number} is no conversation of Claude; skipped", number=number)
                    )
        if not found:
            report(_("holds no conversation and no memory; nothing of it is imported"))


def _is_wanted(folder: str, name: str) -> bool:
    return _FILES.fullmatch(name) is not None or (folder in _FOLDERS and name.endswith(".json"))


def _kind(file: ExportFile) -> str:
    stem = file.name.lower().removesuffix(".json")
    folder = file.folder.lower()
    return folder if folder in _FOLDERS and stem not in ("conversations", "users") else stem


def _conversation(
    value: dict[str, Any], reading: Reading, file: ExportFile, number: int
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
            reading.hide(N_("system messages"))
        elif text or files:
            reading.add_message(session, role, text, ts=moment, files=files)
        else:
            reading.hide("empty")
    if session.entries:
        yield session
    else:
        reading.skipped += 1


def _shown_messages(value: dict[str, Any], reading: Reading) -> list[dict[str, Any]]:
    """Return the messages on the branch that Claude shows; all if they form no tree."""
    messages = [one for one in value["chat_messages"] if isinstance(one, dict)]
    by_id = {one["uuid"]: one for one in messages if isinstance(one.get("uuid"), str)}
    parents = {
        one: parent if isinstance(parent := message.get("parent_message_uuid"), str) else ""
        for one, message in by_id.items()
    }
    if len(by_id) < len(messages) or not any(parent in by_id for parent in parents.values()):
        return messages
    times = {one: _seconds(message) for one, message in by_id.items()}
    leaf = value.get("current_leaf_message_uuid")
    leaf = leaf if isinstance(leaf, str) and leaf in by_id else newest_leaf(parents, times)
    shown = path_to(leaf, parents)
    if len(shown) < len(messages):
        reading.hide(N_("in branches that were left"), len(messages) - len(shown))
    return [by_id[one] for one in shown]


def _seconds(message: dict[str, Any]) -> float:
    moment = parse_iso(message.get("created_at"))
    return moment.timestamp() if moment is not None else 0.0


def _text_and_files(message: dict[str, Any], reading: Reading) -> tuple[str, list[dict[str, str]]]:
    blocks = message.get("content")
    texts: list[str] = []
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif kind in ("thinking", "redacted_thinking"):
            reading.hide("thoughts")
        elif kind is not None:
            reading.hide(N_("to and from tools"))
    if not isinstance(blocks, list) or not blocks:
        told = message.get("text")
        texts = [told] if isinstance(told, str) else []
    text = "\n\n".join(part.strip() for part in texts if part.strip() and _BLOCKED not in part)
    files: list[dict[str, str]] = []
    for one in _dicts(message.get("attachments")):
        record = attachment(str(one.get("file_name") or "pasted text"))  # for the tape
        if isinstance(content := one.get("extracted_content"), str) and content.strip():
            # A person sent it, but it need not be their own words.
            record = {**record, "text": content}
            del record["note"]
        files.append(record)
    known = {record["name"] for record in files}
    for one in [*_dicts(message.get("files")), *_dicts(message.get("files_v2"))]:
        name = str(one.get("file_name") or "file")
        if name not in known:
            known.add(name)
            files.append(attachment(name))
    return text, files


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


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
