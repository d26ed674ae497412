"""Run a turn's tool calls: each is on the tape before it runs, and gets exactly one result."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from secrets import token_hex

from bot.agent.request_builder import RequestBuilder
from bot.agent.tools.registry import ToolContext, ToolOutcome, question_results
from bot.core.errors import MemoryRefused
from bot.core.telemetry.metrics import TOOL_SECONDS
from bot.core.telemetry.tracing import span
from bot.llm.base import ModelReply, ToolCall, Usage
from bot.memory.records.transcript import is_automation, is_owner
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.memory.session.state.zone_versions import find_zone_version
from bot.tape.entries import TapeEntry, tool_call, tool_result


class ToolCallRunner:
    """Records and runs the tool calls of one turn.

    Args:
        session: The session's state and tools.
        on_tool: Called with the name of each tool before it runs.

    Attributes:
        memory_seen: Memory as it was when the model was asked.
        spent: Usage of tools that call a model themselves.
    """

    def __init__(self, session: RequestBuilder, on_tool: Callable[[str], Awaitable[None]]) -> None:
        self.memory_seen = MemorySnapshot()
        self.spent = Usage()
        self._session = session
        self._on_tool = on_tool

    def call_entry(self, turn: str, reply: ModelReply) -> TapeEntry:
        """Return a reply's calls as an entry; make ids unique, as some servers repeat them."""
        taken = {
            str(call.get("id"))
            for entry in self._session.fold.window.entries
            for call in entry.calls
        }
        calls = []
        for call in reply.tool_calls:
            # Every provider accepts nine letters and digits as an id.
            unique = call.id if call.id and call.id not in taken else token_hex(5)[:9]
            taken.add(unique)
            calls.append({"id": unique, "name": call.name, "arguments": call.arguments})
        return tool_call(reply.content, calls, turn=turn, memory=self.memory_seen.version)

    async def run_pending(self, turn: str) -> None:
        """Run the calls of the turn's newest step that have no result yet, in order."""
        entries = self._session.fold.window.entries
        done = {entry.payload.get("call_id") for entry in entries if entry.kind == "tool_result"}
        pending = next((e for e in reversed(entries) if e.kind == "tool_call"), None)
        if pending is None or pending.meta.get("turn") != turn:
            return
        seen = pending.meta.get("memory", 0)
        if seen != self.memory_seen.version:
            former = await find_zone_version(self._session.tape, seen)
            self.memory_seen = former or self._session.zone.read()
        for call in pending.calls:
            if call["id"] not in done:
                await self._run(turn, ToolCall(call["id"], call["name"], call["arguments"]))

    def _may_change_memory(self) -> bool:
        """Return whether every sender that the turn answers may clear memory shared by the chat."""
        asking = self._asking()
        return bool(asking) and all(
            not is_automation(entry) and (entry.meta.get("private", True) or is_owner(entry))
            for entry in asking
        )

    def _asking(self) -> list[TapeEntry]:
        """Return the messages that the turn answers or took in: any may have caused the call."""
        opened = self._session.fold.turns.open_turn
        if opened is None:
            return []
        window = self._session.fold.window
        entries = [
            *window.messages_by_platform_id(opened.inbound),
            *window.joined_since(opened.start),
        ]
        return list({entry.id: entry for entry in entries}.values())

    async def _run(self, turn: str, call: ToolCall) -> None:
        await self._on_tool(call.name)
        began, outcome = time.perf_counter(), "failed"
        name = self._session.agent.tools.find_wire_name(call.name) or "unknown"
        with span("tool", tool=name) as here:
            try:
                outcome = await self._run_and_record(turn, call)
                here.set(outcome=outcome)
            finally:
                TOOL_SECONDS.observe(time.perf_counter() - began, name, outcome)

    async def _run_and_record(self, turn: str, call: ToolCall) -> str:
        """Run a call and write its result to the tape; return its status."""
        session = self._session
        outcome = await session.agent.tools.run(call, self._context(turn, call))
        if outcome.zone_edit is not None:
            try:
                await session.zone.edit(
                    outcome.zone_edit,
                    lambda fresh, zone, _: [
                        *outcome.extra_entries,
                        *zone,
                        _result(turn, call, outcome, fresh),
                    ],
                )
            except MemoryRefused as error:
                outcome = ToolOutcome(f"Not saved: {error}.", "error")
            else:
                return outcome.status
        result = _result(turn, call, outcome, session.zone.read())
        await session.tape.append_many([*outcome.extra_entries, result])
        return outcome.status

    def _context(self, turn: str, call: ToolCall) -> ToolContext:
        session, window = self._session, self._session.fold.window
        return ToolContext(
            session.tape,
            session.zone,
            session.memory,
            self.memory_seen,
            may_change_memory=self._may_change_memory(),
            turn=turn,
            view_start=window.first_id,
            turn_start=next(iter(window.turn_starts()[-1:]), window.first_id),
            call_key=f"{session.tape.name}:{turn}:{call.id}",
            answered_messages=self._asking(),
            vectors=session.agent.vectors,
            has_judge=session.agent.judge is not None,
            problem=session.fold.problem,
            record_usage=self._spend,
        )

    def _spend(self, usage: Usage) -> None:
        self.spent += usage


def _result(turn: str, call: ToolCall, outcome: ToolOutcome, snapshot: MemorySnapshot) -> TapeEntry:
    entry = tool_result(
        call.id, call.name, outcome.text(snapshot), status=outcome.status, turn=turn
    )
    if not outcome.buttons:
        return entry
    return replace(
        entry, payload={**entry.payload, "buttons": [list(button) for button in outcome.buttons]}
    )


def pending_question(entries: Sequence[TapeEntry], turn: str) -> tuple[str, list[list[str]]]:
    """Return the question that a turn's tools ask the user, and its buttons; may be empty."""
    asking = question_results(entries, turn)
    if not asking:
        return "", []
    # A newer question replaces the older one.
    newest = asking[-1].payload
    return str(newest["content"]).partition("\n\n")[2], newest["buttons"]
