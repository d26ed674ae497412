"""``tapebot tape``: look at tapes, also while tapebot runs."""

from __future__ import annotations

import json
import sys
from typing import Any
from zoneinfo import ZoneInfo

import anyio

from bot.agent.context import View, default_context, records_tail
from bot.errors import TapeNotFound
from bot.memory.fold import SessionFold
from bot.memory.transcript import local_time, speaker
from bot.memory.window import LOOP_STEP, TURN_START, WindowFold
from bot.settings import Settings
from bot.tape.entries import TapeEntry
from bot.tape.stores.file import FileTapeStore

_WIDTH = 2_000


def list_tapes(settings: Settings) -> int:
    """Print the sessions with the number of their entries."""

    async def run() -> None:
        store = _store(settings)
        for name in await store.list_tapes():
            print(f"{name}\t{await store.version(name)} entries")
        await store.close()

    anyio.run(run)
    return 0


def show_tape(settings: Settings, session: str, *, last: int | None, turn: str | None) -> int:
    """Print one tape, its newest entries, or what the model saw in one turn.

    Raises:
        TapeNotFound: There is no such tape or turn.
    """

    async def run() -> list[TapeEntry]:
        store = _store(settings)
        try:
            newest = await store.version(session)
            first = max(1, newest - last + 1) if last is not None else None
            return await store.read(session, first)
        finally:
            await store.close()

    entries = anyio.run(run)
    zone = ZoneInfo(settings.timezone)
    lines = (
        [timeline_line(entry, zone) for entry in entries]
        if turn is None
        else _seen(entries, turn, zone)
    )
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
    return 0


def timeline_line(entry: TapeEntry, timezone: ZoneInfo) -> str:
    """Return an entry as one block of the timeline."""
    return f"#{entry.id:<5} {local_time(entry, timezone)}  {_what(entry)}"


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
        calls = [f"{c.get('name')}({c.get('arguments')})" for c in payload.get("calls", [])]
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
    prompt = ""
    for entry in entries:
        if entry.id > asked[-1]["at"]:
            break
        if entry.name == TURN_START and "bounds" in entry.data:
            fold.window.max_messages, fold.window.max_tokens = entry.data["bounds"]
        fold.apply(entry)
        if entry.kind == "system":
            prompt = str(entry.payload.get("content"))
    tail = records_tail(fold, timezone, asked[-1].get("extra", []))
    messages = View(prompt, tuple(default_context(fold.window)), tail).messages()
    return [f"--- {m['role']}\n{m.get('content') or m.get('tool_calls')}" for m in messages]


def _store(settings: Settings) -> FileTapeStore:
    return FileTapeStore(
        settings.home / "tapes", workspace=settings.workspace_id or "", read_only=True
    )
