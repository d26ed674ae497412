"""Convert other assistants' times, session keys, message contents and tool calls. Pure."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from bot.bus import Address
from bot.core.clock import format_time
from bot.core.errors import InvalidInbound
from bot.core.patterns import LazyPattern
from bot.memory.records.imports import ASSISTANTS
from bot.tape.entries import TapeEntry, message, tool_call, tool_result

_NOT_IN_CHANNELS = LazyPattern(r"[^a-z0-9_-]+")
_NOT_IN_IDS = LazyPattern(r"[:\s]+")
_LATEST_SECOND = 32_503_680_000  # the year 3000: what is greater counts milliseconds


def parse_time(value: object, timezone: tzinfo) -> str | None:
    """Convert a time, ISO 8601 text or Unix time, to ISO 8601 in UTC; None if it is invalid."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            return format_time(moment if moment.tzinfo else moment.replace(tzinfo=timezone))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            seconds = value if value < _LATEST_SECOND else value / 1_000
            return format_time(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        pass
    return None


def session_key(key: str, bot: str) -> str:
    """Convert another assistant's key ``channel:chat``, whatever it contains, to a session key."""
    channel, colon, rest = key.partition(":")
    if not colon:
        channel, rest = bot, key
    chat, _, topic = rest.partition(":")
    for marker in ("topic:", "thread:"):
        topic = topic.removeprefix(marker)
    channel = _NOT_IN_CHANNELS.sub("-", channel.lower()).lstrip("-_0123456789")[:32] or bot
    try:
        return Address(channel, _id(chat) or "unnamed", _id(topic) or None).session
    except InvalidInbound:
        return Address(bot, "unnamed").session


def _id(text: str) -> str:
    # A tape's name must be encodable as UTF-8.
    text = text.encode("utf-8", "replace").decode()
    return _NOT_IN_IDS.sub("_", text.strip())[:256]


def is_private(session: str) -> bool | None:
    """Return whether a chat has only one person, judging by its key; None if unknown."""
    channel, _, chat = session.partition(":")
    if channel == "telegram":
        return not chat.startswith("-")
    return True if channel in ("console", "cli", *ASSISTANTS) else None


def user_message(
    text: str,
    session: str,
    *,
    ts: str,
    sent: str | None = None,
    person: str,
    sender_id: str = "",
    sender_name: str = "",
    files: Sequence[dict[str, str]] = (),
) -> TapeEntry:
    """Convert a person's message."""
    private = is_private(session)
    sender = {
        "id": sender_id or (person if private else "unknown"),
        "name": sender_name or "user",
    }
    meta: dict[str, Any] = {"ts": ts, "sent": sent or ts, "sender": sender}
    if private is not None:
        meta["private"] = private
    if files:
        meta["attachments"] = [*files]
    return message("user", text, **meta)


def text_and_files(content: object) -> tuple[str, list[dict[str, str]]]:
    """Return the text of a message's content, and its other parts as attachments."""
    if content is None:
        return "", []
    if not isinstance(content, list):
        return content if isinstance(content, str) else _json(content), []
    texts: list[str] = []
    files: list[dict[str, str]] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, dict):
            kind = str(part.get("type") or "file").removesuffix("_url").removeprefix("input_")
            files.append(attachment(kind, kind))
    return "\n".join(texts), files


def attachment(name: str, kind: str | None = None) -> dict[str, Any]:
    """Return an attachment that stands for a file that was not imported."""
    mime = mimetypes.guess_type(name)[0] or ""
    found = kind or mime.partition("/")[0]
    known = found if found in ("image", "audio", "video", "voice") else "document"
    return {"kind": known, "name": name, "mime": mime, "note": {"code": "file_elsewhere"}}


class PendingToolCalls:
    """The calls of the last tool_call entry that have no result yet, in order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def expect(self, calls: Sequence[dict[str, str]]) -> None:
        """Replace the pending calls."""
        self._names = {call["id"]: call["name"] for call in calls}

    def take(self, call_id: object = None) -> tuple[str, str]:
        """Return the id and name of the call that a result belongs to, by default the next."""
        if not isinstance(call_id, str) or not call_id:
            call_id = next(iter(self._names), "call-0")
        return call_id, self._names.pop(call_id, "tool")


def call_entry(
    content: str, calls: list[Any], unanswered: PendingToolCalls, **meta: Any
) -> TapeEntry:
    """Convert a request to run tools from any provider's format."""
    known: list[dict[str, str]] = []
    for place, call in enumerate(calls):
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        arguments = function.get("arguments", {})
        known.append(
            {
                "id": str(call.get("id") or f"call-{place + 1}"),
                "name": str(function.get("name") or "unknown"),
                "arguments": arguments if isinstance(arguments, str) else _json(arguments),
            }
        )
    unanswered.expect(known)
    return tool_call(content, known, **meta)


def result_entry(call_id: str, name: str, content: object, **meta: Any) -> TapeEntry:
    """Convert the result of a tool to an entry with text."""
    text, files = text_and_files(content)
    named = "".join(f"\n({file['kind']}: {file['note']})" for file in files)
    return tool_result(call_id, name, text + named, **meta)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
