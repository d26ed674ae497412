"""Import tapes of bub: JSONL with ``{"id", "kind", "payload", "meta", "date"}`` per line.

A tape's name is a hash of the workspace and a hash of the session (in older ones the session
itself, quoted). So the session is found from the chat that its messages mention, or from a given
key, and either is checked against the hash. An archive (``.jsonl.<time>.bak``) is an earlier part
of its tape.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from hashlib import md5, sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.memory.records.conversation_entries import PROBLEM_ANCHOR_PREFIX
from bot.tape.entries import (
    NON_BOUNDARY_ANCHORS,
    SESSION_START,
    TapeEntry,
    anchor,
    event,
    message,
    system,
)
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
    is_file,
    read_json_lines,
)

BOT = "bub"

_OWN_CONSOLE = ("cli_session", "cli:default", "cli:local", "cli:cli_chat", "cli", "bub", "default")
_CONTEXT = LazyPattern(r"channel=\$?([\w-]+)\|chat_id=([^|\n]+)")
_PREFIX = LazyPattern(r"\A(?=[^\n]*channel=\$?[\w-]+\|chat_id=)[^\n]*\n---\s*Date: ([^\n]*?)---\n")
_HASH = LazyPattern(r"[0-9a-f]{16}|[0-9a-f]{32}")
# Keys that have a meaning in our anchors' state, but had none in bub's.
_OUR_STATE = frozenset({"keep_from", "parent"})


def read_bub(path: Path, timezone: tzinfo, sessions: Sequence[str] = ()) -> ImportedData:
    """Read the sessions at a path. Blocking.

    Args:
        path: bub's home (``~/.bub``), its folder of tapes, or one tape's file.
        timezone: Timezone of times without one.
        sessions: bub's keys of sessions whose files do not reveal them. If only one tape is read,
            its key.
    """
    imported_data = ImportedData(BOT)
    tapes = _tapes(path.resolve(), imported_data)
    for name, files in sorted(tapes.items()):
        records = list(_records(files, imported_data))
        given = sessions[0] if len(sessions) == 1 and len(tapes) == 1 else None
        key = _key(name, records, sessions) or given
        if key is None:
            imported_data.problems.append(
                _(
                    "{name}: does not name its session; give the session's name in bub, for example: "
                    "--session telegram:42",
                    name=files[-1].name,
                )
            )
            continue
        imported_data.conversations.append(
            _conversation(key, files[-1], records, imported_data, timezone)
        )
    imported_data.name_sessions(_OWN_CONSOLE)
    return imported_data


def _tapes(path: Path, imported_data: ImportedData) -> dict[str, list[Path]]:
    """Return the files of each tape by its name, archives first, oldest first."""
    if path.is_file():
        return {path.name.partition(".")[0]: [path]}
    folders = [folder for folder in (path / "tapes", path / ".tape", path) if folder.is_dir()]
    tapes: dict[str, list[Path]] = {}
    for folder in folders[:1]:
        archives = sorted([*folder.glob("*.jsonl.*.bak"), *folder.glob("*/*.jsonl.*.bak")])
        for file in [*archives, *sorted(folder.glob("*.jsonl"))]:
            name = file.name.partition(".jsonl")[0]
            if not is_file(file, file.name, imported_data.problems.append):
                continue
            if name.count("__") > 1:
                imported_data.problems.append(
                    _("{name}: a fork that was not merged; skipped", name=file.name)
                )
            else:
                tapes.setdefault(name, []).append(file)
    return tapes


def _records(
    files: Sequence[Path], imported_data: ImportedData
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each entry with its file and line; a duplicate line is reported and skipped."""
    for file in files:
        seen: set[str] = set()
        for number, value in read_json_lines(file, file.name, imported_data.problems.append):
            where = _("{name}, line {number}", name=file.name, number=number)
            if (
                not isinstance(value, dict)
                or not isinstance(value.get("kind"), str)
                or not isinstance(value.get("payload"), dict)
            ):
                imported_data.problems.append(
                    _("{where}: is not an entry of a tape; skipped", where=where)
                )
                continue
            same = sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
            if same in seen and "id" in value:
                imported_data.problems.append(_("{where}: is a duplicate; skipped", where=where))
                continue
            seen.add(same)
            yield where, value


def _key(
    name: str, records: Sequence[tuple[str, dict[str, Any]]], sessions: Sequence[str]
) -> str | None:
    """Return bub's key of the session; None if it is unknown."""
    stem = name.partition("__")[2] or name
    if not _HASH.fullmatch(stem):
        return unquote(stem)
    candidates = [*sessions, *_OWN_CONSOLE]
    for _unused, value in records:
        text = _content(value["payload"])
        candidates += [f"{channel}:{chat}" for channel, chat in _CONTEXT.findall(text[:2_000])]
    return next(
        (
            candidate
            for candidate in dict.fromkeys(candidates)
            if _digest(candidate, len(stem)) == stem
        ),
        None,
    )


def _digest(key: str, length: int) -> str:
    return md5(key.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:length]


def _content(payload: dict[str, Any]) -> str:
    return text_and_files(payload.get("content"))[0]


def _conversation(
    key: str,
    file: Path,
    records: Sequence[tuple[str, dict[str, Any]]],
    imported_data: ImportedData,
    timezone: tzinfo,
) -> ImportedSession:
    session = session_key(key, BOT)
    imported_session = ImportedSession(key, session, file.name)
    # Entries of the oldest tapes have no time.
    moment = parse_time(file.stat().st_mtime, timezone) or ""
    prompt = ""
    unanswered = PendingToolCalls()
    for where, value in records:
        moment = parse_time(value.get("date", value.get("timestamp")), timezone) or moment
        kind, payload = value["kind"], value["payload"]
        entries = _entries(kind, payload, session, moment, unanswered)
        if entries is None:
            imported_data.problems.append(
                _("{where}: is of the unknown kind {kind!r}; skipped", where=where, kind=kind[:40])
            )
            continue
        for entry in entries:
            if entry.kind == "system":
                # bub repeats the same prompt before each turn.
                if entry.payload["content"] == prompt:
                    continue
                prompt = entry.payload["content"]
            imported_data.add_entry(imported_session, entry, where)
        if entries and entries[0].is_boundary and entries[0].name != SESSION_START:
            imported_session.consolidated_count = len(imported_session.entries)
    return imported_session


def _entries(
    kind: str, payload: dict[str, Any], session: str, moment: str, unanswered: PendingToolCalls
) -> list[TapeEntry] | None:
    """Convert an entry of bub; several messages in one become several entries.

    Returns:
        The entries; None for an unknown kind.
    """
    if kind == "message":
        return _messages(payload, session, moment, unanswered)
    if kind == "system":
        return [system(_content(payload), ts=moment)]
    if kind == "anchor":
        name, state = str(payload.get("name") or "anchor"), payload.get("state")
        kept = state if isinstance(state, dict) else {}
        kept = {key: value for key, value in kept.items() if key not in _OUR_STATE}
        ours = name in NON_BOUNDARY_ANCHORS or name.startswith(PROBLEM_ANCHOR_PREFIX)
        return [anchor(f"bub/{name}" if ours else name, kept, ts=moment)]
    if kind == "tool_call":
        calls = payload.get("calls")
        known = calls if isinstance(calls, list) else []
        return [call_entry(_content(payload), known, unanswered, ts=moment)]
    if kind == "tool_result":
        return _results(payload, moment, unanswered)
    if kind == "event" and payload.get("name") == "handoff":
        # It repeats the anchor before it.
        return []
    if kind in ("event", "error"):
        return [event(f"bub.{kind}", {"bub": payload}, ts=moment)]
    return None


def _results(payload: dict[str, Any], moment: str, unanswered: PendingToolCalls) -> list[TapeEntry]:
    """Return the results of a call, which are in the order of its parts."""
    results = payload.get("results")
    given = results if isinstance(results, list) else [payload.get("content")]
    return [result_entry(*unanswered.take(), result, ts=moment) for result in given]


def _messages(
    payload: dict[str, Any], session: str, moment: str, unanswered: PendingToolCalls
) -> list[TapeEntry]:
    text, files = text_and_files(payload.get("content"))
    if payload.get("role") != "user":
        calls = payload.get("tool_calls")
        if isinstance(calls, list) and calls:
            return [call_entry(text, calls, unanswered, ts=moment)]
        if payload.get("role") == "tool":
            return [result_entry(*unanswered.take(payload.get("tool_call_id")), text, ts=moment)]
        if payload.get("role") == "system":
            return [system(text, ts=moment)]
        return [message("assistant", text, ts=moment)]
    plain = _PREFIX.sub("", text)
    wrapped = [_wrapped(line) for line in plain.split("\n")]
    if wrapped and all(one is not None for one in wrapped):
        entries = [_heard(one["message"], one, session, moment) for one in wrapped if one]
    else:
        entries = [_heard(plain, {}, session, moment)]
    if files:
        entries[-1] = entries[-1].with_meta(
            attachments=[*entries[-1].meta.get("attachments", []), *files]
        )
    return entries


def _wrapped(line: str) -> dict[str, Any] | None:
    """Parse a platform's message that bub passes on as JSON; None for plain text."""
    try:
        value = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("message"), str):
        return None
    return value if "sender_id" in value or "message_id" in value else None


def _heard(text: str, about: dict[str, Any], session: str, moment: str) -> TapeEntry:
    media, replied = about.get("media"), about.get("reply_to_message")
    files = []
    if isinstance(media, dict):
        name = str(media.get("file_name") or about.get("type") or "file")
        files = [attachment(name, _kind(about.get("type")))]
    entry = user_message(
        text,
        session,
        ts=moment,
        # These times have a timezone, or are Unix times in seconds.
        sent=parse_time(about.get("date"), UTC),
        person=session.partition(":")[2],
        sender_id=str(about.get("sender_id") or ""),
        sender_name=str(about.get("full_name") or about.get("username") or ""),
        files=files,
    )
    quoted = replied.get("message") if isinstance(replied, dict) else None
    return entry.with_meta(quote=quoted) if isinstance(quoted, str) else entry


def _kind(given: object) -> str:
    return {"photo": "image", "sticker": "image", "video_note": "video"}.get(str(given), str(given))
