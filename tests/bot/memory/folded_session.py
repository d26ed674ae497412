"""A session that writes its tape step by step, as its worker does, in any order that it may."""

from __future__ import annotations

from bot.agent.consolidation.policy import ConsolidationPolicy, EntryRange
from bot.agent.consolidation.runner import ConsolidationResult, _portion, record_result
from bot.core.clock import format_time
from bot.llm.base import Usage
from bot.memory.records.conversation_entries import (
    LOOP_STEP,
    TURN_END,
    TURN_START,
    entry_tokens,
    replaced_entry_id,
)
from bot.memory.records.episodes import with_problem
from bot.memory.records.event_names import (
    REPLY,
)
from bot.memory.records.evidence import cite
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.context_window import visible_entries
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.memory.session.state.turn_fold import (
    DELIVERY,
    TURN_RESUME,
)
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import zone_entries
from bot.tape.entries import (
    CONTEXT_OVERFLOW,
    SESSION_NEW,
    TapeEntry,
    anchor,
    event,
    message,
    system,
    tool_call,
    tool_result,
)
from bot.tape.search import problem_of
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

MESSAGES, TOKENS = 8, 120


class Session:
    """Writes a tape as a session's worker does, step by step, in any order that it may."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.tape = TapeService(InMemoryTapeStore(clock=self.clock), "fake:1")
        self.numbers = iter(range(1, 10_000))
        self.turn: str | None = None
        self.steps = 0
        self.inbound: list[str] = []

    async def open(self) -> None:
        await self.tape.ensure_bootstrap_anchor()
        self.fold = await load_fold(self.tape, max_messages=MESSAGES, max_tokens=TOKENS)
        fresh = TapeService(self.tape.store, "fake:1")
        self.tape = fresh
        fresh.observe(self.fold.apply)
        fresh.stamp = lambda entry: with_problem(entry, self.fold.problem)
        self.zone = MemoryZone(fresh, fold=self.fold.zone, clock=self.clock, retention_days=3)
        await self.zone.load_or_create()
        scopes = ScopeRegistry(fresh.store, self.clock)
        self.memory = LongTermMemory(fresh, self.fold, self.zone, scopes)
        await self.memory.open()

    async def do(self, action: str, text: str) -> None:
        await getattr(self, f"_{action}")(text)

    async def _say(self, text: str) -> None:
        """A message: begins a turn, or waits for the running one."""
        number = f"m{next(self.numbers)}"
        if self.turn is not None:
            await self.tape.append(message("user", text, inbound=number, queued=True))
            return
        if self._taken_in():
            await self.tape.append(message("user", text, inbound=number, queued=True))
            await self._next(text)
            return
        await self._start([message("user", text, inbound=number)], [number], [])

    async def _overhear(self, text: str) -> None:
        """A message in a group that asks for nothing."""
        number = f"m{next(self.numbers)}"
        meta = {"inbound": number, "queued": True, "overheard": True}
        await self.tape.append(message("user", text, **meta))

    async def _edit(self, text: str) -> None:
        """An edit of a message that is not answered yet."""
        unsettled = list(self.fold.turns.unanswered.values())
        if unsettled:
            meta = {"inbound": f"e{next(self.numbers)}", "edits": "?", "replaces": unsettled[-1]}
            await self.tape.append(message("user", text, **meta))

    async def _part(self, text: str) -> None:
        """A platform shows a part of what streams, or of an answer."""
        for turn in [self.turn, *list(self.fold.turns.undelivered)[:1]]:
            if turn is not None:
                data = {"turn": turn, "final": False, "platform_ids": [text]}
                await self.tape.append(event(DELIVERY, data))

    def _taken_in(self) -> list[int]:
        return [entry.id for entry in self.fold.window.overheard_messages()][-2:]

    async def _start(self, arrived: list[TapeEntry], inbound: list[str], joined: list[int]) -> None:
        self.turn, self.steps, self.inbound = f"turn-{next(self.numbers)}", 0, inbound
        data = {"turn": self.turn, "inbound": inbound, "joined": joined}
        prompt = [system("prompt", hash=f"h{self.fold.prompt_snapshot.version}")]
        await self.tape.append_many([*arrived, *prompt, event(TURN_START, data)])

    async def _next(self, _: str) -> None:
        """Take up what waits, as after a turn."""
        waiting = self.fold.window.waiting_messages()
        if self.turn is None and waiting:
            joined = [*self._taken_in(), *(e.id for e in waiting)]
            await self._start([], [e.meta["inbound"] for e in waiting], joined)

    async def _join(self, _: str) -> None:
        waiting = self.fold.window.waiting_messages()
        if self.turn is not None and waiting:
            arrived = [e.meta["inbound"] for e in waiting]
            self.inbound += arrived
            data = {
                "turn": self.turn,
                "step": self.steps,
                "status": "joined",
                "joined": [e.id for e in waiting],
                "inbound": arrived,
            }
            await self.tape.append(event(LOOP_STEP, data))

    async def _tool(self, text: str) -> None:
        if self.turn is None:
            return
        self.steps += 1
        call = f"c{next(self.numbers)}"
        step = {"turn": self.turn, "step": self.steps, "spent": Usage(3, 1, 2, 0.5, 1).as_json()}
        await self.tape.append_many(
            [
                tool_call("", [{"id": call, "name": "t", "arguments": "{}"}], turn=self.turn),
                event(LOOP_STEP, step),
            ]
        )
        if text != "orphan":
            await self.tape.append(tool_result(call, "t", text, turn=self.turn))

    async def _answer(self, text: str) -> None:
        if self.turn is None:
            return
        said = event(REPLY, {"text": text}) if text == "error" else message("assistant", text)
        await self._end(said, [])

    async def _stop(self, text: str) -> None:
        if self.turn is not None:
            waiting = self.fold.window.waiting_messages()
            self.inbound += [e.meta["inbound"] for e in waiting]
            await self._end(event(REPLY, {"text": "Stopped."}), [e.id for e in waiting])

    async def _end(self, said: TapeEntry, joined: list[int]) -> None:
        data = {
            "turn": self.turn,
            "answered": True,
            "inbound": self.inbound,
            "reply_to": self.inbound[-1],
            "usage": Usage(5, 0, 1, None, 1).as_json(),
            "prompt_tokens": len(self.inbound) * 7,
            "pointers": self.fold.pointers(),
        }
        if joined:
            data["joined"] = joined
        await self.tape.append_many([said, event(TURN_END, data)])
        self.turn = None

    async def _command(self, text: str) -> None:
        turn = f"turn-{next(self.numbers)}"
        await self.tape.append_many(
            [
                event("command", {"name": "x"}, inbound="c"),
                event(REPLY, {"text": text}, turn=turn),
                event(
                    TURN_END,
                    {
                        "turn": turn,
                        "answered": True,
                        "inbound": [f"c-{turn}"],
                        "pointers": self.fold.pointers(),
                    },
                ),
            ]
        )

    async def _deliver(self, _: str) -> None:
        for turn in list(self.fold.turns.undelivered)[:1]:
            await self.tape.append(event(DELIVERY, {"turn": turn, "delivered": True}))

    async def _save(self, text: str) -> None:
        proposal = Proposal("add", f"{text} {next(self.numbers)}")
        await self.memory.write(ProposalBatch(f"save{next(self.numbers)}", "person", (proposal,)))

    async def _undo(self, _: str) -> None:
        batch = await self.memory.home.undo_batch()
        if batch is not None:
            await self.memory.write(batch)

    async def _pause(self, _: str) -> None:
        await self.memory.home.pause(paused=not self.memory.paused)

    async def _note(self, text: str) -> None:
        await self.zone.append_daily(text)

    async def _clear(self, _: str) -> None:
        await self.memory.apply(self.memory.clear_batch(f"clear{next(self.numbers)}"))
        await self.zone.clear()

    async def _day(self, _: str) -> None:
        self.clock.advance(86_400)

    async def _consolidate(self, text: str) -> None:
        due = ConsolidationPolicy(window=4, tokens=10_000, prompt_tokens=10_000).due(self.fold)
        if due is None:
            return
        entries = await self.tape.read_entries(due.first, due.last)
        portion = _portion(entries, 10_000, self.fold.window)
        await self._recorded(EntryRange(due.first, portion[-1].id), text)

    async def _recorded(self, due: EntryRange, text: str) -> None:
        entries = await self.tape.read_entries(due.first, due.last)
        heard = visible_entries(entries, self.fold.window)
        spoken = [e for e in heard if e.kind in ("message", "tool_call", "tool_result")]
        result = ConsolidationResult(
            due,
            f"history {text}",
            tuple(Proposal("add", text, evidence=(cite("fake:1", e),)) for e in spoken[:1]),
            sum(e.kind == "message" for e in spoken),
            sum(entry_tokens(e) for e in spoken),
            "?",
            "?",
            Usage(1, 0, 1, 0.1, 1),
            self.fold.zone.cleared,
            self.memory.home.name,
            self.memory.home.fold.cleared_at,
        )
        assert await record_result(self.memory, result)

    async def _problem(self, text: str) -> None:
        """Work on another problem, perhaps a new one."""
        problems = self.memory.bus.problems
        if self.turn is not None or self.fold.window.waiting_messages():
            return
        known = await problems.list_by_state()
        if len(known) < 4:
            known.append(await problems.create(f"problem {next(self.numbers)}"))
        wanted = known[len(text) % len(known)]
        if wanted.state != "completed":
            await problems.switch_to(wanted.problem_id)

    async def _aside(self, text: str) -> None:
        """Put a problem aside, in one of the ways that there are."""
        if self.turn is not None or self.fold.window.waiting_messages():
            return
        problems = self.memory.bus.problems
        known = await problems.list_by_state()
        one = known[len(text) % len(known)].problem_id
        ways = (problems.pause, problems.background, problems.complete)
        await ways[len(text) % 3](one)

    async def _working(self, text: str) -> None:
        sets = self.memory.bus.working_sets
        await sets.add(self.fold.problem, "open_questions", text)

    async def _hours(self, _: str) -> None:
        self.clock.advance(3_000)
        await self.memory.bus.working_sets.expire_stale()

    async def _edit_elsewhere(self, text: str) -> None:
        """An edit of a message that belongs to a problem which was left."""
        entries = await self.tape.read_entries()
        said = [e for e in entries if e.kind == "message" and e.payload.get("role") == "user"]
        other = [
            e for e in said if problem_of(e) != self.fold.problem and replaced_entry_id(e) is None
        ]
        if other:
            meta = {"inbound": f"e{next(self.numbers)}", "edits": "?", "replaces": other[-1].id}
            edit = message("user", text, queued=True, overheard=True, **meta)
            await self.tape.append(edit.with_meta(problem=problem_of(other[-1])))

    async def _fail(self, text: str) -> None:
        await self.tape.append_event(CONSOLIDATION_FAILED_EVENT, {"error": text, "attempt": 1})

    async def _overflow(self, text: str) -> None:
        starts = self.fold.window.turn_starts()
        if self.turn is not None and len(starts) > 1:
            state = {"summary": text, "keep_from": starts[-1]}
            await self.tape.append(anchor(CONTEXT_OVERFLOW, state))

    async def _handoff(self, text: str) -> None:
        if self.turn is None:
            await self.tape.handoff("phase/other", {"summary": text})

    async def _new(self, text: str) -> None:
        if self.turn is None and not self.fold.window.waiting_messages():
            carry = zone_entries(self.zone.read(), format_time(self.clock.now()))
            boundary = anchor(SESSION_NEW, {"summary": text})
            await self.tape.archive([*carry, boundary])

    async def _reopen(self, _: str) -> None:
        await self.open()
        opened = self.fold.turns.open_turn
        assert (opened.id if opened else None) == self.turn
        if opened is not None:
            assert (opened.steps, opened.inbound) == (self.steps, self.inbound)
            await self.tape.append(event(TURN_RESUME, {"turn": self.turn}))
