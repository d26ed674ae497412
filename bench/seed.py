"""Writes tapes that look as if long conversations had been held on them."""

from __future__ import annotations

from datetime import UTC, datetime

from bench.program import CHANNEL
from bench.workload import LONG_TERM, question, reply
from bot.bus import Address, DeliveryReport, Inbound, Sender
from bot.core.clock import format_time
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END, TURN_START
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone_snapshot import (
    MemorySnapshot,
    zone_entries,
)
from bot.runtime.sessions.entries import delivery_entry, message_entry
from bot.tape.entries import (
    MEMORY_CONSOLIDATED,
    SESSION_NEW,
    SESSION_START,
    TapeEntry,
    anchor,
    event,
    message,
)
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

_BATCH = 50
_UNBOUNDED = 10**9


class Seeder:
    """Writes one tape, with so many messages in view."""

    def __init__(self, store: FileTapeStore, chat_id: str, *, view: int = _UNBOUNDED) -> None:
        self._address = Address(CHANNEL, chat_id)
        self._tape = TapeService(store, self._address.session)
        self._fold = SessionFold(WindowFold(view, _UNBOUNDED))
        self._turn = 0

    async def begin(self) -> None:
        """Make the tape, with a memory."""
        await self._tape.store.create_tape(self._tape.name)
        for entry in await self._tape.read_entries():
            self._fold.apply(entry)
        self._tape.observe(self._fold.apply)
        zone = zone_entries(MemorySnapshot(1, LONG_TERM), format_time(datetime.now(UTC)))
        await self._tape.append_many([*zone, anchor(SESSION_START, {"owner": "human"})])

    async def turns(self, wanted: int) -> None:
        """Append so many turns."""
        for first in range(0, wanted, _BATCH):
            entries: list[TapeEntry] = []
            for _ in range(min(_BATCH, wanted - first)):
                entries += self._one_turn()
            await self._tape.append_many(entries)

    async def hand_off(self) -> None:
        """Consolidate what was said, and begin anew."""
        version, window = self._fold.version, self._fold.window
        state = {
            "through": version,
            "history": version + 1,
            "version": 1,
            "messages": window.unconsolidated,
            "tokens": window.unconsolidated_tokens,
        }
        await self._tape.append_many(
            [
                event(
                    HISTORY_EVENT,
                    {"entry": "[2026-01-02 10:00] Much was said.", "range": [1, version]},
                ),
                anchor(MEMORY_CONSOLIDATED, state),
                anchor(SESSION_NEW, {"summary": "Much was said.", "owner": "human"}),
            ]
        )

    def _one_turn(self) -> list[TapeEntry]:
        self._turn += 1
        turn, inbound = f"turn-{self._turn:016x}", f"old-{self._turn}"
        said = Inbound(
            self._address, inbound, Sender("1", "Ada"), question(self._turn), datetime.now(UTC)
        )
        end = {
            "turn": turn,
            "status": "ok",
            "answered": True,
            "inbound": [inbound],
            "reply_to": inbound,
            "usage": {"prompt_tokens": 100, "cached_tokens": 0, "completion_tokens": 40},
            "prompt_tokens": 100,
            "ms": 1000.0,
            "steps": 1,
        }
        start = {"turn": turn, "inbound": [inbound], "joined": [], "builder": "default"}
        start["bounds"] = [self._fold.window.max_messages, _UNBOUNDED]
        step = {"turn": turn, "step": 1, "status": "answer", "model": "instant"}
        return [
            message_entry(said, "UTC"),
            event(TURN_START, start),
            message("assistant", reply(self._turn), turn=turn),
            event(LOOP_STEP, step),
            event(TURN_END, end),
            delivery_entry(DeliveryReport(self._address.session, turn)),
        ]
