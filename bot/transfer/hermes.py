"""Import Hermes Agent's conversations (``state.db``, SQLite) and its memory files.

The columns of the tables grow from release to release; what is not there is not asked for. Memory
files hold entries with a line ``§`` between them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.core.clock import format_time
from bot.core.i18n import N_, _
from bot.transfer.conversion import parse_time, text_and_files
from bot.transfer.imported import ImportedSession, display_path, is_file, read_text
from bot.transfer.reading import Reading

BOT = "hermes"

_LONGEST = 32 * 1024 * 1024
_OF_OTHERS = frozenset({"cron", "tool", "subagent", "webhook", "batch"})
_GROUPS = frozenset({"group", "channel", "supergroup", "thread"})
_ENCODED = "\0json:"
_NOT_THE_PERSON = (
    "Review the conversation above and",  # for the parser
    "[CONTEXT COMPACTION",  # for the parser
    "[CONTEXT SUMMARY]",  # for the parser
    "[IMPORTANT: The user has invoked",  # for the parser
    "[SYSTEM:",
    "[System note:",  # for the parser
)
_OPTIONAL = frozenset(
    {"timestamp", "active", "compacted", "display_kind", "observed", "_compressed_summary"}
)
_DELIMITER = "\n§\n"


def read_hermes(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the conversations at a path, oldest first. Blocking.

    Args:
        path: Hermes' home (``~/.hermes``), with its profiles, or its ``state.db``.
        reading: Receives what is found besides.
    """
    path = path.resolve()
    if path.is_file():
        yield from _of_database(path, path.parent, reading)
        return
    for home in (path, *sorted(path.glob("profiles/*"))):
        database = home / "state.db"
        if is_file(database, display_path(database, path), reading.report):
            yield from _of_database(database, path, reading)
        for name in ("MEMORY.md", "USER.md"):
            file = home / "memories" / name
            if file.is_file():
                moment = format_time(datetime.fromtimestamp(file.stat().st_mtime, UTC))
                text = read_text(file, display_path(file, path), reading.report)
                for entry in text.split(_DELIMITER):
                    reading.add_memory(" ".join(entry.split()), when=moment)


def _of_database(file: Path, home: Path, reading: Reading) -> Iterator[ImportedSession]:
    shown = display_path(file, home)
    address = f"{file.resolve().as_uri()}?mode=ro"
    try:
        # The rows are read in whatever thread asks for the next conversation.
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            database.row_factory = sqlite3.Row
            has = _columns(database, "sessions")
            said = _columns(database, "messages")
            if not {"id", "started_at"} <= has or not {"session_id", "role", "content"} <= said:
                reading.report(_("{shown}: has no tables of Hermes; skipped", shown=shown))
                return
            chosen = ", ".join(has & {"id", "source", "chat_type", "model_config", "started_at"})
            sessions = database.execute(
                f"SELECT {chosen} FROM sessions ORDER BY started_at, id"  # noqa: S608 (own names)
            )
            for row in sessions:
                session = _conversation(database, dict(row), said, shown, reading)
                if session is not None and session.entries:
                    yield session
                elif session is not None:
                    reading.skipped += 1
    except sqlite3.Error as error:
        reading.report(_("{shown}: cannot be read to its end ({error})", shown=shown, error=error))


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row["name"]) for row in database.execute(f"PRAGMA table_info({table})")}


def _conversation(
    database: sqlite3.Connection,
    row: dict[str, Any],
    columns: set[str],
    shown: str,
    reading: Reading,
) -> ImportedSession | None:
    key = str(row["id"])
    of_others = (
        row.get("source") in _OF_OTHERS
        or row.get("chat_type") in _GROUPS
        or "_delegate_from" in str(row.get("model_config") or "")
    )
    if of_others:
        reading.hide(N_("conversations in groups, of schedules or of sub-agents"))
        return None
    session = reading.session(key, f"{shown}, session {key}")  # for the tape
    if session is None:
        return None
    moment = parse_time(row.get("started_at"), reading.timezone)
    moment = moment or format_time(datetime.fromtimestamp(0, UTC))
    held = 0
    for message in _messages(database, row["id"], columns):
        moment = parse_time(message.get("timestamp"), reading.timezone) or moment
        text, files = text_and_files(_decoded(message["content"]))
        text = _without_thoughts(text)
        held += len(text)
        if held > _LONGEST:
            reading.report(
                _("{source}: is longer than 32 MiB; its end is not read", source=session.source)
            )
            break
        why = _hidden_reason(message, text)
        if why is None and not text and not files:
            why = "empty"
        if why is not None:
            reading.hide(why)
        else:
            reading.add_message(session, str(message["role"]), text, ts=moment, files=files)
    return session


def _messages(
    database: sqlite3.Connection, session: object, columns: set[str]
) -> Iterator[dict[str, Any]]:
    chosen = ", ".join(["role", "content", *sorted(columns & _OPTIONAL)])
    rows = database.execute(
        f"SELECT {chosen} FROM messages WHERE session_id = ? ORDER BY id",  # noqa: S608 (own names)
        (session,),
    )
    yield from map(dict, rows)


def _decoded(content: object) -> object:
    """Return a message's content; parts other than text are stored as JSON behind a mark."""
    if isinstance(content, str) and content.startswith(_ENCODED):
        try:
            parts = json.loads(content.removeprefix(_ENCODED))
        except (ValueError, RecursionError):
            return None
        if isinstance(parts, list):
            parts = [part for part in parts if not _is_internal(part)]
        return parts
    return content if isinstance(content, str) else None


def _is_internal(part: object) -> bool:
    """Return whether a part of a message is a thought, or goes to or comes from a tool."""
    kind = str(part.get("type")) if isinstance(part, dict) else ""
    return kind in ("thinking", "reasoning") or kind.startswith("tool")


def _without_thoughts(text: str) -> str:
    """Return an answer without the thoughts that some models write before it."""
    before, opened, rest = text.partition("<think>")
    _unused, closed, answer = rest.partition("</think>")
    return answer.strip() if opened and closed and not before.strip() else text.strip()


def _hidden_reason(message: dict[str, Any], text: str) -> str | None:
    role = message["role"]
    if role not in ("user", "assistant"):
        return N_("system messages") if role == "system" else N_("to and from tools")
    if message.get("active", 1) == 0 and message.get("compacted", 0) == 0:
        return N_("in branches that were left")
    made = message.get("display_kind") == "hidden" or message.get("_compressed_summary", 0)
    if made or (role == "user" and text.startswith(_NOT_THE_PERSON)):
        return N_("written by Hermes itself")
    return N_("overheard in groups") if message.get("observed", 0) else None
