"""Whatever a tape holds: opened from its tail it says what a fold over the whole of it says."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.consolidation.policy import ConsolidationPolicy, EntryRange
from bot.agent.consolidation.runner import ConsolidationResult, _portion, record_result
from bot.agent.context import default_context
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
from bot.memory.records.transcript import render_transcript
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.context_window import WindowFold, visible_entries
from bot.memory.session.state.fold_loader import load_fold, load_resumed_entries
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT, SessionFold
from bot.memory.session.state.turn_fold import (
    DELIVERY,
    TURN_RESUME,
)
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import zone_entries
from bot.tape.entries import (
    CONTEXT_OVERFLOW,
    ENTRY_KINDS,
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
SETTINGS = settings(max_examples=examples(200))


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


ACTIONS = (
    "say",
    "say",
    "overhear",
    "overhear",
    "edit",
    "part",
    "next",
    "join",
    "tool",
    "answer",
    "answer",
    "stop",
    "command",
    "deliver",
    "save",
    "save",
    "undo",
    "pause",
    "note",
    "clear",
    "day",
    "consolidate",
    "fail",
    "overflow",
    "handoff",
    "new",
    "reopen",
    "problem",
    "problem",
    "aside",
    "working",
    "hours",
    "edit_elsewhere",
)
TEXTS = st.sampled_from(
    ["hi", "error", "orphan", "word " * 12, "word " * 40, "- a\n- b", "你好", "x " * 3]
)
TO_AND_FRO = (
    *("say", "join", "answer", "next", "answer", "problem") * 6,
    *("tool", "working", "consolidate", "command", "edit_elsewhere", "aside", "overflow", "reopen"),
)
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), TEXTS), max_size=60)


@given(STEPS)
@SETTINGS
def test_opened_from_its_tail_a_tape_says_what_a_fold_over_the_whole_says(steps):
    async def run() -> None:
        session = Session()
        await session.open()
        for action, text in steps:
            await session.do(action, text)
        await assert_folds_agree(session)

    anyio.run(run)


async def assert_folds_agree(session: Session) -> None:
    """See that the running state, that of the tape's tail and that of all of it are the same."""
    from_tail = await load_fold(session.tape, max_messages=MESSAGES, max_tokens=TOKENS)
    whole = SessionFold(WindowFold(MESSAGES, TOKENS))
    for entry in await session.tape.read_entries():
        whole.apply(entry)
    await load_resumed_entries(session.tape, whole.window)
    assert state(from_tail) == state(whole)
    assert state(session.fold) == state(whole)


@pytest.mark.slow
async def test_to_and_fro_between_problems_folds_agree_and_views_hold_one_problem():
    came_back = 0
    for seed in range(20):
        chance = random.Random(seed)
        session = Session()
        await session.open()
        for _ in range(100):
            text = chance.choice(["hi", "error", "orphan", "word " * 12, "你好", "x x x "])
            await session.do(chance.choice(TO_AND_FRO), text)
            window = session.fold.window
            assert {problem_of(one) for one in window.conversation()} <= {session.fold.problem}
            assert window.problem == session.fold.problem
            if window.resumed:
                came_back += 1
                await assert_folds_agree(session)
        await assert_folds_agree(session)
    assert came_back > 20


@given(STEPS)
@SETTINGS
def test_what_is_in_view_is_bounded_and_nothing_unconsolidated_is_forgotten(steps):
    """After each turn's beginning the view holds its bounds; the count of the rest is exact."""

    async def run() -> None:
        session = Session()
        await session.open()
        for action, text in steps:
            await session.do(action, text)
            window = session.fold.window
            if action == "say" and session.steps == 0 and len(window.turn_starts()) > 1:
                newest = [e for e in window.entries if e.id >= window.turn_starts()[-1]]
                assert window.messages <= MESSAGES or len(newest) * 2 > MESSAGES
        heard = visible_entries(await session.tape.read_entries(), session.fold.window)
        ids = [replaced_entry_id(e) or e.id for e in heard if e.kind == "message"]
        after = [number for number in ids if number > session.fold.window.consolidated_through]
        assert session.fold.window.unconsolidated == len(after)

    anyio.run(run)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.sampled_from(
        [
            "",
            "user",
            "c1",
            "c2",
            "\ud800",
            "你",
            "[",
            '{"a": 1}',
            "2026-02-10T10:00:00+00:00",
            "0001-01-01T00:00:00+00:00",
            "9999-12-31T23:59:59-12:00",
            "UTC",
            "Asia/Tokyo",
            "../x",
            "memory/open",
            "memory/seal",
            "session/new",
            TURN_START,
            TURN_END,
            LOOP_STEP,
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "name",
                    "arguments",
                    "turn",
                    "joined",
                    "inbound",
                    "version",
                    "content",
                    "through",
                    "keep_from",
                    "messages",
                    "tokens",
                    "date",
                    "usage",
                    "cost",
                    "answered",
                    "problem",
                    "returns",
                    "ids",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=4,
)
IDS = st.sampled_from(["c1", "c2", "c3"])
CALLS = st.lists(st.fixed_dictionaries({"id": IDS | JSON, "name": JSON, "arguments": JSON}))
STATES = st.fixed_dictionaries(
    {},
    optional={
        "joined": st.lists(st.integers(-1, 21), max_size=4) | JSON,
        "through": st.integers(-2, 25) | JSON,
        "keep_from": st.integers(-2, 25) | JSON,
        "messages": st.integers(-3, 9) | JSON,
        "tokens": JSON,
        "turn": JSON,
        "inbound": st.lists(JSON, max_size=2) | JSON,
        "usage": JSON,
        "version": st.integers(-1, 3) | JSON,
        "answered": JSON,
        "problem": JSON | st.sampled_from(["p1", "general"]),
        "returns": st.fixed_dictionaries(
            {"ids": st.lists(st.integers(-1, 21)) | JSON, "messages": JSON, "tokens": JSON}
        ),
        "problems": JSON,
        "working": JSON,
        "references": JSON,
        "patterns": JSON,
        "ranks": JSON,
        "active": JSON,
    },
)
NAMES = st.sampled_from(
    [
        TURN_START,
        TURN_END,
        LOOP_STEP,
        "memory/open",
        "memory/seal",
        "memory/consolidated",
        "session/new",
        "problem/p1",
        "memory.bus",
        "auto_handoff/context_overflow",
        DELIVERY,
        REPLY,
        TURN_RESUME,
    ]
)
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant"]) | JSON,
        "content": JSON,
        "calls": CALLS | JSON,
        "call_id": IDS | JSON,
        "name": NAMES | JSON,
        "data": STATES | JSON,
        "state": STATES | JSON,
    },
)
METAS = st.dictionaries(
    st.sampled_from(
        [
            "ts",
            "sent",
            "tz",
            "sender",
            "private",
            "queued",
            "quote",
            "inbound",
            "turn",
            "hash",
            "overheard",
            "replaces",
            "edits",
            "attachments",
            "problem",
        ]
    ),
    JSON,
    max_size=4,
)
ENTRIES = st.lists(st.tuples(st.sampled_from(sorted(ENTRY_KINDS)), PAYLOADS, METAS), max_size=20)


@pytest.mark.slow
@given(ENTRIES)
@settings(max_examples=examples(100))
def test_no_tape_can_make_the_view_fail_or_leave_a_call_without_its_result(parts):
    fold = SessionFold(WindowFold(MESSAGES, TOKENS))
    for number, (kind, payload, meta) in enumerate(parts, start=1):
        fold.apply(TapeEntry(number, kind, payload, meta))
    open_calls: list[str] = []
    for shown in default_context(fold.window):
        if shown["role"] == "tool":
            assert open_calls.pop(0) == shown["tool_call_id"]
        else:
            assert open_calls == []
            open_calls = [call["id"] for call in shown.get("tool_calls", [])]
    assert open_calls == []
    render_transcript(fold.window.entries)
    ConsolidationPolicy(4, 100, 100).due(fold)
    fold.pointers()


@pytest.mark.parametrize("arguments", ["[" * 100_000, "1" * 5_000, '{"a":' * 50_000])
def test_arguments_that_no_parser_takes_do_not_wedge_the_session(arguments):
    window = WindowFold(MESSAGES, 10**9)
    window.apply(message("user", "hi"))
    window.apply(tool_call("", [{"id": "c", "name": "t", "arguments": arguments}]))
    [_, call, result] = default_context(window)
    assert call["tool_calls"][0]["function"]["arguments"].startswith('{"malformed"')
    assert result["role"] == "tool"


@pytest.mark.parametrize(
    ("sent", "tz"),
    [
        ("0001-01-01T00:00:00+10:00", "UTC"),
        ("9999-12-31T23:59:59-12:00", "Asia/Tokyo"),
        ("2026-02-10T10:00:00+00:00", "Europe"),
        ("2026-02-10T10:00:00+00:00", "a\0b"),
        ("2026-02-10T10:00:00+00:00", "\ud800"),
        ("yesterday", "../x"),
    ],
)
def test_times_and_zones_that_cannot_be_shown_do_not_wedge_the_session(sent, tz):
    window = WindowFold(MESSAGES, TOKENS)
    window.apply(message("user", "hi", sent=sent, tz=tz))
    [shown] = default_context(window)
    assert shown["content"].endswith("hi")
    assert len(render_transcript(window.entries)) == 1


def state(value: Any) -> Any:
    """All that a fold holds, as plain values; caches of the last thing said are left out."""
    if is_dataclass(value) and not isinstance(value, (type, TapeEntry)):
        return {
            f.name: state(getattr(value, f.name))
            for f in fields(value)
            if f.name not in ("_said", "_open", "_inside")
        }
    if isinstance(value, dict):
        return {key: state(one) for key, one in value.items()}
    if isinstance(value, list):
        return [state(one) for one in value]
    if isinstance(value, float):
        return round(value, 6)
    return value
