"""Convert other assistants' times, session keys, files and messages. Pure."""

from __future__ import annotations

import mimetypes
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from bot.bus import Address
from bot.core.clock import format_time
from bot.core.errors import InvalidInbound
from bot.core.i18n import N_
from bot.core.patterns import LazyPattern
from bot.memory.records.imports import ASSISTANTS
from bot.tape.entries import TapeEntry, message

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
    person: str,
    sender_id: str = "",
    sender_name: str = "",
    files: Sequence[dict[str, Any]] = (),
) -> TapeEntry:
    """Convert a person's message."""
    private = is_private(session)
    known = sender_id or (person if private else "unknown")
    meta: dict[str, Any] = {"sender": {"id": known, "name": sender_name or "user"}}
    meta |= {} if private is None else {"private": private}
    meta |= {"attachments": [*files]} if files else {}
    return message("user", text, ts=ts, sent=ts, **meta)


def attachment(name: str, kind: str | None = None) -> dict[str, Any]:
    """Return an attachment that stands for a file that was not imported."""
    mime = mimetypes.guess_type(name)[0] or ""
    found = kind or mime.partition("/")[0]
    known = found if found in ("image", "audio", "video", "voice") else "document"
    return {"kind": known, "name": name, "mime": mime, "note": {"code": "file_elsewhere"}}


def text_and_files(content: object, hidden: Counter[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts of a message's parts, and what stands for its files; count thoughts and tools."""
    texts: list[str] = []
    files: list[dict[str, Any]] = []
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        kind = str(part.get("type") or part.get("content_type")) if isinstance(part, dict) else ""
        if "thinking" in kind:
            hidden["thoughts"] += 1
        elif "tool" in kind:
            hidden[N_("to and from tools")] += 1
        elif isinstance(text, str):
            texts.append(text)
        elif isinstance(part, dict):
            kind = kind.removeprefix("input_").partition("_")[0]
            files.append(attachment(kind, kind))
    return texts, files


def dict_of(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object under a name; an empty one if there is none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def dicts_in(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list; none if it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def path_to(leaf: str, parents: dict[str, str]) -> list[str]:
    """Return the ids on the way from a root to a leaf; a cycle or a missing parent ends it."""
    found: dict[str, None] = {}
    while leaf in parents and leaf not in found:
        found[leaf] = None
        leaf = parents[leaf]
    return list(found)[::-1]


def newest_leaf(parents: dict[str, str], times: dict[str, float]) -> str:
    """Return the newest id that is nobody's parent; the newest of all if there is none."""
    inner = {parent for one, parent in parents.items() if parent != one}
    leaves = [one for one in parents if one not in inner] or list(parents)
    return max(leaves, key=lambda one: (times.get(one, 0.0), one), default="")
