"""One turn: from the user's message to the answer, every step on the tape before the next begins.

On a kill the turn is open on the tape and is resumed: calls whose results are there are not run
again, changes of memory are in the same append as the results that report them. A provider's error
ends the turn with a plain word to the user; the message stays in context.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

import anyio

from bot.agent.agent import Agent
from bot.agent.handoff import make_handoff
from bot.agent.requests import Requests, digest_of
from bot.errors import ContextOverflow, MemoryRefused, ModelError, TransientModelError
from bot.ids import new_id
from bot.llm.base import ModelReply, ToolCall, Usage
from bot.memory.fold import SessionFold
from bot.memory.snapshot import MemorySnapshot
from bot.memory.turns import REPLY, TURN_RESUME, OpenTurn
from bot.memory.versions import zone_at
from bot.memory.window import LOOP_STEP, TURN_END, TURN_START
from bot.memory.zone import Edit, MemoryZone
from bot.tape.entries import (
    CONTEXT_OVERFLOW,
    TapeEntry,
    anchor,
    event,
    message,
    tool_call,
    tool_result,
)
from bot.tape.service import TapeService
from bot.tools.registry import ToolContext, ToolOutcome

logger = logging.getLogger(__name__)

_CUT_OFF = "\n\n… (cut off: the model reached its limit for one answer)"


@dataclass(slots=True)
class Turn:
    """A running turn of one session.

    Attributes:
        agent: What turns share.
        tape: The session's.
        fold: Its state.
        zone: Its memory.
        on_tool: Told which tool runs.
        id: The turn's id.
        inbound: Platform ids of the messages it answers, oldest first.
        partial: The text streamed so far by the running call.
    """

    agent: Agent
    tape: TapeService
    fold: SessionFold
    zone: MemoryZone
    on_tool: Callable[[str], Awaitable[None]]
    id: str = field(default_factory=lambda: new_id("turn"))
    inbound: list[str] = field(default_factory=list)
    partial: str = ""
    _steps: int = 0
    _usage: Usage = field(default_factory=Usage)
    _prompt_tokens: int = 0
    _extra: list[str] = field(default_factory=list)
    _seen: MemorySnapshot = field(default_factory=MemorySnapshot)
    _handed_off: bool = False
    _began: float = 0.0
    _grown: anyio.Event = field(default_factory=anyio.Event)

    @property
    def ended(self) -> bool:
        """True where the tape holds its end."""
        opened = self.fold.turns.open
        return opened is None or opened.id != self.id

    @property
    def _requests(self) -> Requests:
        return Requests(self.agent, self.tape, self.fold, self.zone)

    async def start(
        self,
        arrived: Sequence[TapeEntry],
        inbound: Sequence[str],
        *,
        learn: Edit | None = None,
        joined: Sequence[int] = (),
    ) -> None:
        """Put the messages, what code learned from them, and the turn's beginning on the tape.

        Args:
            arrived: Messages that are not on the tape yet.
            inbound: Platform ids of all messages answered.
            learn: An edit of memory that goes with them.
            joined: Entry ids of queued messages that this turn takes in.
        """
        self._began = self.agent.clock.monotonic()
        self.inbound = list(inbound)
        prompt = await self._requests.system_prompt()
        data = {
            "turn": self.id,
            "inbound": self.inbound,
            "joined": list(joined),
            "builder": self.agent.builder_name,
            "bounds": [self.fold.window.max_messages, self.fold.window.max_tokens],
            "prefix": digest_of(prompt),
        }
        await self.zone.edit(
            learn or (lambda snapshot: snapshot),
            lambda _, zone, __: [
                *arrived,
                *zone,
                *self._requests.prompt_entry(prompt),
                event(TURN_START, data),
            ],
        )

    async def resume(self, opened: OpenTurn) -> None:
        """Take up a turn that a kill left open."""
        self._began = self.agent.clock.monotonic()
        self.id, self.inbound, self._steps = opened.id, list(opened.inbound), opened.steps
        self._usage = opened.spent
        prompt = await self._requests.system_prompt()
        note = event(TURN_RESUME, {"turn": self.id, "prefix": digest_of(prompt)})
        await self.tape.append_many([*self._requests.prompt_entry(prompt), note])
        await self._finish_calls()

    async def run(self) -> None:
        """Call the model and its tools until there is an answer, and put that on the tape."""
        try:
            while True:
                await self._join_waiting()
                reply = await self._call()
                if reply.tool_calls and self._steps < self.agent.max_steps:
                    await self._step(reply)
                    await self._finish_calls()
                else:
                    await self._answer(reply)
                    return
        except ModelError as error:
            logger.warning("turn %s of %s failed: %s", self.id, self.tape.name, error)
            await self.end("error", _apology(error), error=str(error))

    async def end(
        self,
        status: str,
        text: str,
        *,
        error: str | None = None,
        heard: Sequence[TapeEntry] = (),
        joined: Sequence[int] = (),
    ) -> None:
        """End the turn with a reply that is not the assistant's.

        Args:
            status: How it ended.
            text: The reply.
            error: What went wrong.
            heard: Entries of what ended it.
            joined: Ids of queued messages that it takes in at last.
        """
        before = list(heard)
        if self.partial:
            before.append(message("assistant", self.partial, turn=self.id, status=status))
        reply = event(REPLY, {"text": text}, turn=self.id)
        await self._end([*before, reply], status, error=error, joined=joined)

    # Model calls.

    async def _call(self) -> ModelReply:
        try:
            return await self._complete()
        except ContextOverflow as error:
            if self._handed_off:
                raise
            self._handed_off = True
            if not await self._hand_off(error):
                raise
            return await self._complete()

    async def _complete(self) -> ModelReply:
        closing = self._steps >= self.agent.max_steps
        request, self._extra = await self._requests.build(closing=closing)
        self._seen = self.zone.read()
        self.partial = ""
        for last in (False, True):
            reply = await self.agent.model.complete(request, self._stream)
            self._usage += reply.usage
            self._prompt_tokens = reply.usage.prompt_tokens
            if reply.content.strip() or reply.tool_calls:
                return reply
            if last:
                break
        raise TransientModelError("the model gave an empty answer, twice")

    async def next_partial(self) -> str:
        """Wait until the answer has grown; return its text so far."""
        await self._grown.wait()
        self._grown = anyio.Event()
        return self.partial

    def _stream(self, text: str) -> None:
        self.partial = text
        self._grown.set()

    async def _hand_off(self, error: ContextOverflow) -> bool:
        handoff = await make_handoff(
            self.agent.model,
            self.fold.window,
            context_tokens=self.agent.context_tokens,
            reason="context_length_exceeded",
            error=str(error),
        )
        if handoff is None:
            return False
        self._usage += handoff.usage
        await self.tape.append_many(
            [
                anchor(CONTEXT_OVERFLOW, handoff.state, turn=self.id),
                event(LOOP_STEP, {"turn": self.id, "step": self._steps, "status": "auto_handoff"}),
            ]
        )
        return True

    # Steps.

    async def _step(self, reply: ModelReply) -> None:
        """Put a reply that calls tools on the tape."""
        self._steps += 1
        calls = self._with_unique_ids(reply.tool_calls)
        await self.tape.append_many(
            [
                tool_call(reply.content, calls, turn=self.id, memory=self._seen.version),
                self._step_event(reply, "tool_calls"),
            ]
        )
        self.partial = ""

    def _with_unique_ids(self, calls: Sequence[ToolCall]) -> list[dict[str, str]]:
        """Return calls as they stand on the tape; some servers number anew in each reply."""
        taken = {
            str(call.get("id"))
            for entry in self.fold.window.entries
            if entry.kind == "tool_call"
            for call in entry.payload["calls"]
        }
        written = []
        for call in calls:
            # Nine letters and digits are an id to every provider.
            unique = call.id if call.id and call.id not in taken else token_hex(5)[:9]
            taken.add(unique)
            written.append({"id": unique, "name": call.name, "arguments": call.arguments})
        return written

    def _step_event(self, reply: ModelReply, status: str) -> TapeEntry:
        data = {
            "turn": self.id,
            "step": self._steps,
            "status": status,
            "model": reply.model,
            "spent": reply.usage.as_json(),
        }
        return event(LOOP_STEP, {**data, "extra": self._extra} if self._extra else data)

    async def _finish_calls(self) -> None:
        """Run the calls of the newest step that have no result yet, in order."""
        entries = self.fold.window.entries
        done = {entry.payload.get("call_id") for entry in entries if entry.kind == "tool_result"}
        pending = next((e for e in reversed(entries) if e.kind == "tool_call"), None)
        if pending is None or pending.meta.get("turn") != self.id:
            return
        seen = pending.meta.get("memory", 0)
        if seen != self._seen.version:
            self._seen = await zone_at(self.tape, seen) or self.zone.read()
        for call in pending.payload["calls"]:
            if call["id"] not in done:
                await self._run_tool(ToolCall(call["id"], call["name"], call["arguments"]))

    async def _run_tool(self, call: ToolCall) -> None:
        await self.on_tool(call.name)
        context = ToolContext(self.tape, self.zone, self._seen)
        outcome = await self.agent.tools.answer(call, context)
        if outcome.change is not None:
            try:
                await self.zone.edit(
                    outcome.change,
                    lambda fresh, zone, _: [*zone, self._result(call, outcome, fresh)],
                )
            except MemoryRefused as error:
                outcome = ToolOutcome(f"Not saved: {error}.", "error")
            else:
                return
        await self.tape.append(self._result(call, outcome, self.zone.read()))

    def _result(self, call: ToolCall, outcome: ToolOutcome, snapshot: MemorySnapshot) -> TapeEntry:
        return tool_result(
            call.id, call.name, outcome.text(snapshot), status=outcome.status, turn=self.id
        )

    async def _join_waiting(self) -> None:
        """Take in messages that arrived meanwhile."""
        waiting = self.fold.window.waiting()
        if waiting:
            arrived = [str(e.meta["inbound"]) for e in waiting if "inbound" in e.meta]
            data = {
                "turn": self.id,
                "step": self._steps,
                "status": "joined",
                "joined": [entry.id for entry in waiting],
                "inbound": arrived,
            }
            await self.tape.append(event(LOOP_STEP, data))
            self.inbound += arrived

    async def _answer(self, reply: ModelReply) -> None:
        self._steps += 1
        text = reply.content.strip()
        if not text:
            text = "I could not finish this within the steps allowed for one turn."
        if reply.finish_reason == "length":
            text += _CUT_OFF
        self.partial = ""
        said = message("assistant", text, turn=self.id)
        await self._end([said, self._step_event(reply, "answer")], "ok")

    async def _end(
        self,
        before: Sequence[TapeEntry],
        status: str,
        *,
        error: str | None = None,
        joined: Sequence[int] = (),
    ) -> None:
        """Append the answer and the end of the turn as one write."""
        self.partial = ""
        elapsed = round((self.agent.clock.monotonic() - self._began) * 1000, 1)
        data: dict[str, Any] = {
            "turn": self.id,
            "status": status,
            "answered": True,
            "inbound": self.inbound,
            "reply_to": self.inbound[-1] if self.inbound else None,
            "usage": self._usage.as_json(),
            "prompt_tokens": self._prompt_tokens,
            "ms": elapsed,
            "steps": self._steps,
        }
        if error is not None:
            data["error"] = error
        if joined:
            data["joined"] = list(joined)
        await self.tape.append_composed(
            lambda _: [*before, event(TURN_END, {**data, "pointers": self.fold.pointers()})]
        )


def _apology(error: ModelError) -> str:
    if isinstance(error, ContextOverflow):
        return (
            "This is too long for the model, even after I set older messages aside. Your message "
            "is kept; please send a shorter one, or begin anew with /new."
        )
    return (
        f"I could not get an answer from the model: {error}. Your message is kept, and I will "
        "see it with your next one."
    )
