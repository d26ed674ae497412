"""Times, keys, contents and tool calls of other assistants, in our terms. Pure."""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from bot.bus import Address
from bot.core.clock import format_time
from bot.core.errors import InvalidInbound
from bot.tape.entries import TapeEntry, tool_call, tool_result

_NOT_IN_CHANNELS = re.compile(r"[^a-z0-9_-]+")
_NOT_IN_IDS = re.compile(r"[:\s]+")
_LATEST_SECOND = 32_503_680_000  # the year 3000: what is greater counts milliseconds


def parse_time(value: object, timezone: tzinfo) -> str | None:
    """Return a time as ISO 8601 in UTC: a text, or seconds since 1970; None where it is none.

    Args:
        value: What the other wrote.
        timezone: Of texts that do not name theirs.
    """
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            return format_time(found if found.tzinfo else found.replace(tzinfo=timezone))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            seconds = value if value < _LATEST_SECOND else value / 1_000
            return format_time(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        pass
    return None


def session_key(key: str, bot: str) -> str:
    """Return our key for another's ``channel:chat``, whatever it holds."""
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
    # No tape has a name that UTF-8 cannot write.
    text = text.encode("utf-8", "replace").decode()
    return _NOT_IN_IDS.sub("_", text.strip())[:256]


def is_private(session: str) -> bool | None:
    """Say whether only one person is in a chat, where its key tells; None where it does not."""
    channel, _, chat = session.partition(":")
    if channel == "telegram":
        return not chat.startswith("-")
    return True if channel in ("console", "cli") else None


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


def attachment(name: str, kind: str | None = None) -> dict[str, str]:
    """Return a file that was not brought over, as a message names it."""
    mime = mimetypes.guess_type(name)[0] or ""
    found = kind or mime.partition("/")[0]
    known = found if found in ("image", "audio", "video", "voice") else "document"
    return {"kind": known, "name": name, "mime": mime, "note": "not brought over"}


class PendingToolCalls:
    """The calls of the last request that no result has come for, in order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def expect(self, calls: Sequence[dict[str, str]]) -> None:
        """Forget the calls before; wait for these."""
        self._names = {call["id"]: call["name"] for call in calls}

    def take(self, call_id: object = None) -> tuple[str, str]:
        """Return the id and the name of the call that a result is of, by default the next."""
        if not isinstance(call_id, str) or not call_id:
            call_id = next(iter(self._names), "call-0")
        return call_id, self._names.pop(call_id, "tool")


def call_entry(
    content: str, calls: list[Any], unanswered: PendingToolCalls, **meta: Any
) -> TapeEntry:
    """Return a request to run tools, in the shape of any provider.

    Args:
        content: What was said beside it.
        calls: As the provider gave them.
        unanswered: Is told of them.
        **meta: The entry's.
    """
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
    """Return what a tool answered, as text."""
    text, files = text_and_files(content)
    named = "".join(f"\n({file['kind']}: {file['note']})" for file in files)
    return tool_result(call_id, name, text + named, **meta)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
