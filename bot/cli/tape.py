"""``tapebot tape list`` and ``show``: print tapes, also while tapebot runs."""

from __future__ import annotations

import json
import sys
from typing import Any
from zoneinfo import ZoneInfo

import anyio

from bot.agent.request_reconstruction import (
    ReconstructedRequest,
    no_calls_reason,
    reconstruct_request,
)
from bot.agent.schedules.wording import event_text
from bot.agent.turn_history import past_turn
from bot.core.errors import TapeNotFound
from bot.core.i18n import _, ngettext
from bot.inspector.reading.entry_text import full_text
from bot.llm.base import ChatMessage
from bot.memory.records.conversation_entries import NO_TURNS, TURN_END
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.records.pending_calls import (
    TOOL_DECIDED,
    TOOL_PENDING,
    TOOL_RESULT,
    describe_call_event,
)
from bot.memory.records.schedules import SCHEDULE_EVENTS
from bot.memory.records.transcript import format_entry_time, message_author
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

_WIDTH = 2_000
_TOLD = frozenset(
    {
        "command",
        "reply",
        "memory.history",
        "memory.undone",
        "memory/seal",
        "memory/consolidated",
        "consolidation.failed",
        TOOL_PENDING,
        TOOL_DECIDED,
        TOOL_RESULT,
    }
    | SCHEDULE_EVENTS
)


def list_tapes(settings: Settings) -> int:
    """Print the names of the tapes with the number of their entries."""

    async def run() -> None:
        async with open_tape_store(settings, read_only=True) as store:
            for name in await store.list_tapes():
                count = ngettext("{n} entry", "{n} entries", await store.version(name))
                print(f"{printable(name)}\t{count}")

    anyio.run(run)
    return 0


def show(
    settings: Settings, session: str, *, last: int | None, everything: bool, turn: str | None
) -> int:
    """Print one tape as a timeline, or the prompt of a turn."""
    if turn is not None:
        return show_turn(settings, session, turn)
    return show_tape(settings, session, last=last, everything=everything)


def show_tape(
    settings: Settings, session: str, *, last: int | None = None, everything: bool = False
) -> int:
    """Print one tape as a timeline: messages, tool calls and changes of memory."""
    zone = ZoneInfo(settings.timezone)
    entries = [e for e in _read(settings, session) if everything or _is_told(e)]
    shown = entries if last is None else entries[-last:]
    sys.stdout.write("".join(f"{printable(timeline_line(entry, zone))}\n" for entry in shown))
    return 0


def show_turn(settings: Settings, session: str, turn: str) -> int:
    """Print the prompt of a turn's last model call."""

    async def run() -> ReconstructedRequest:
        async with open_tape_store(settings, read_only=True) as store:
            tape = TapeService(store, session)
            past = await past_turn(tape, turn)
            if (call := past.call()) is None:
                why = no_calls_reason(past)
                raise TapeNotFound(
                    _("turn {turn}: {no_calls_reason}", turn=turn, no_calls_reason=why)
                )
            return await reconstruct_request(tape, past, call, ZoneInfo(settings.timezone))

    request = anyio.run(run)
    sys.stdout.write("".join(f"{printable(_message(one))}\n" for one in request.messages()))
    erased = (
        _("The words of #{entry} have been erased since.", entry=one) for one in request.erased
    )
    sys.stderr.write("".join(f"{note}\n" for note in (*request.notes, *erased)))
    return 0


def _read(settings: Settings, session: str) -> list[TapeEntry]:
    async def run() -> list[TapeEntry]:
        async with open_tape_store(settings, read_only=True) as store:
            return await store.read(session)

    return anyio.run(run)


def _is_told(entry: TapeEntry) -> bool:
    """Return whether an entry is for people, not bookkeeping."""
    if entry.kind in ("message", "tool_call", "tool_result") or entry.is_boundary:
        return True
    if entry.name == TURN_END:
        return entry.data.get("status") not in ("ok", *NO_TURNS)
    return entry.name in _TOLD


def timeline_line(entry: TapeEntry, timezone: ZoneInfo) -> str:
    """Format an entry as one block of the timeline."""
    turn = entry.meta.get("turn")
    said = entry.kind == "message" and entry.payload.get("role") == "assistant"
    mark = f"   ({turn})" if turn and said else ""
    return f"#{entry.id:<5} {format_entry_time(entry, timezone)}  {_what(entry)}{mark}"


def printable(text: str) -> str:
    """Remove control characters except newline and tab, which could steer a terminal."""
    return "".join(
        c for c in text if c in "\n\t" or (c.isprintable() and not "\ud800" <= c <= "\udfff")
    )


def _what(entry: TapeEntry) -> str:
    payload = entry.payload
    if entry.kind == "message":
        moved = " → ".join(entry.meta.get("moved", ()))  # the chat's first and present id
        author = message_author(entry) + (f" ({moved})" if moved else "")
        return f"{author}: {_text(payload.get('content'))}"
    if entry.kind == "tool_call":
        calls = [f"{c.get('name')}({c.get('arguments')})" for c in entry.calls]
        return _("calls {calls}", calls=_text("; ".join(calls)))
    if entry.kind == "tool_result":
        return f"{payload.get('name')} -> {payload.get('status')}: {_text(payload.get('content'))}"
    if entry.kind == "system":
        return _(
            "system prompt {hash} ({count} characters)",
            hash=entry.meta.get("hash", ""),
            count=len(str(payload.get("content"))),
        )
    if entry.name in SCHEDULE_EVENTS:
        return f" · {_text(event_text(entry))}"
    mark = "──" if entry.is_boundary else " ·"
    if entry.name == FACTS_EVENT:
        return f"{mark} {entry.name} {_text(full_text(entry))}"
    if (told := describe_call_event(entry)) is not None:
        return f"{mark} {_text(told)}"
    data = entry.data
    return f"{mark} {entry.name} {_text(json.dumps(data, ensure_ascii=False)) if data else ''}".rstrip()


def _text(value: Any) -> str:
    text = str(value)
    if len(text) > _WIDTH:
        more = ngettext("{n} more character", "{n} more characters", len(text) - _WIDTH)
        text = f"{text[:_WIDTH]} … ({more})"
    return text.replace("\n", "\n" + " " * 9)


def _message(chat_message: ChatMessage) -> str:
    return f"--- {chat_message['role']}\n{_said(chat_message)}"


def _said(chat_message: ChatMessage) -> str:
    calls = [
        f"{c['function']['name']}({c['function']['arguments']})"
        for c in chat_message.get("tool_calls", [])
    ]
    return "\n".join([*([text_of(chat_message)] if chat_message["content"] else []), *calls])


def text_of(chat_message: ChatMessage) -> str:
    """Return a message's content as text, with each image's name in brackets."""
    content = chat_message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(
        str(part.get("text") or f"[{part.get('image_url', {}).get('url')}]") for part in content
    )
