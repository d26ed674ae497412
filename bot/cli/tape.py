"""``tapebot tape``: look at tapes, also while tapebot runs."""

from __future__ import annotations

import json
import sys
from typing import Any
from zoneinfo import ZoneInfo

import anyio

from bot.agent.context import View, records_tail
from bot.agent.views.exact import in_view
from bot.agent.views.registry import context_builder
from bot.app.tapes import open_tape_store
from bot.errors import TapeNotFound
from bot.llm.base import ChatMessage
from bot.memory.fold import SessionFold
from bot.memory.spoken import LOOP_STEP, TURN_END, TURN_START
from bot.memory.transcript import local_time, speaker
from bot.memory.turns import TURN_RESUME
from bot.memory.window import WindowFold
from bot.settings import Settings
from bot.tape.entries import TapeEntry

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
        "tape.repair",
    }
)


def list_tapes(settings: Settings) -> int:
    """Print the sessions with the number of their entries."""

    async def run() -> None:
        async with open_tape_store(settings, read_only=True) as store:
            for name in await store.list_tapes():
                print(f"{printable(name)}\t{await store.version(name)} entries")

    anyio.run(run)
    return 0


def show_tape(
    settings: Settings, session: str, *, last: int | None = None, everything: bool = False
) -> int:
    """Print one tape as a timeline: what was said, done and remembered.

    Args:
        settings: Say where the tapes are.
        session: The session's key.
        last: Only the newest entries.
        everything: Show the bookkeeping, too.

    Raises:
        TapeNotFound: There is no such tape.
    """
    zone = ZoneInfo(settings.timezone)
    entries = [e for e in _read(settings, session) if everything or _is_told(e)]
    shown = entries if last is None else entries[-last:]
    sys.stdout.write("".join(f"{printable(timeline_line(entry, zone))}\n" for entry in shown))
    return 0


def show_turn(settings: Settings, session: str, turn: str) -> int:
    """Print what the model saw in the last call of a turn.

    Raises:
        TapeNotFound: There is no such tape or turn.
    """
    lines = _seen(_read(settings, session), turn, ZoneInfo(settings.timezone))
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    return 0


def _read(settings: Settings, session: str) -> list[TapeEntry]:
    async def run() -> list[TapeEntry]:
        async with open_tape_store(settings, read_only=True) as store:
            return await store.read(session)

    return anyio.run(run)


def _is_told(entry: TapeEntry) -> bool:
    """True for what a person wants to read; the rest holds the tape together."""
    if entry.kind in ("message", "tool_call", "tool_result") or entry.is_boundary:
        return True
    if entry.name == TURN_END:
        return entry.data.get("status") not in ("ok", "command")
    return entry.name in _TOLD


def timeline_line(entry: TapeEntry, timezone: ZoneInfo) -> str:
    """Return an entry as one block of the timeline."""
    turn = entry.meta.get("turn")
    said = entry.kind == "message" and entry.payload.get("role") == "assistant"
    mark = f"   ({turn})" if turn and said else ""
    return f"#{entry.id:<5} {local_time(entry, timezone)}  {_what(entry)}{mark}"


def printable(text: str) -> str:
    """Return text that cannot steer a terminal: control characters but newline and tab left out."""
    return "".join(
        c for c in text if c in "\n\t" or (c.isprintable() and not "\ud800" <= c <= "\udfff")
    )


def _what(entry: TapeEntry) -> str:
    payload = entry.payload
    if entry.kind == "message":
        who = speaker(entry) if payload.get("role") == "user" else "tapebot"
        return f"{who}: {_text(payload.get('content'))}"
    if entry.kind == "tool_call":
        calls = [f"{c.get('name')}({c.get('arguments')})" for c in entry.calls]
        return f"calls {_text('; '.join(calls))}"
    if entry.kind == "tool_result":
        return f"{payload.get('name')} -> {payload.get('status')}: {_text(payload.get('content'))}"
    if entry.kind == "system":
        return f"system prompt {entry.meta.get('hash', '')} ({len(str(payload.get('content')))} characters)"
    mark = "──" if entry.is_boundary else " ·"
    data = {key: value for key, value in entry.data.items() if key != "pointers"}
    return f"{mark} {entry.name} {_text(json.dumps(data, ensure_ascii=False)) if data else ''}".rstrip()


def _text(value: Any) -> str:
    text = str(value)
    if len(text) > _WIDTH:
        text = f"{text[:_WIDTH]} … ({len(text) - _WIDTH} more characters)"
    return text.replace("\n", "\n" + " " * 9)


def _seen(entries: list[TapeEntry], turn: str, timezone: ZoneInfo) -> list[str]:
    """Return the messages of a turn's last model call: folded anew, they come out the same."""
    steps = [e.data for e in entries if e.name == LOOP_STEP and e.data.get("turn") == turn]
    asked = [step for step in steps if "at" in step]
    if not asked:
        raise TapeNotFound(f"there is no turn {turn} with a model's answer on this tape")
    fold = SessionFold(WindowFold(1 << 31, 1 << 62))
    prompt, builder = "", "default"
    seen = [entry for entry in entries if entry.id <= asked[-1]["at"]]
    for entry in seen:
        if entry.name == TURN_START and "bounds" in entry.data:
            fold.window.max_messages, fold.window.max_tokens = entry.data["bounds"]
        if entry.name in (TURN_START, TURN_RESUME) and entry.data.get("turn") == turn:
            # Whoever took the turn up again may have had another.
            builder = str(entry.data.get("builder", builder))
        fold.apply(entry)
        if entry.kind == "system":
            prompt = str(entry.payload.get("content"))
    tail = records_tail(fold, timezone, asked[-1].get("extra", []))
    render = context_builder(builder).render
    history = render(fold.window, {}, in_view(fold, seen))
    messages = View(prompt, tuple(history), tail).messages()
    return [f"--- {m['role']}\n{_said(m)}" for m in messages]


def _said(shown: ChatMessage) -> str:
    calls = [
        f"{c['function']['name']}({c['function']['arguments']})"
        for c in shown.get("tool_calls", [])
    ]
    return "\n".join([*([shown["content"]] if shown["content"] else []), *calls])
