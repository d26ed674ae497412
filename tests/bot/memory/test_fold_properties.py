"""Whatever a tape holds: opened from its tail it says what a fold over the whole of it says."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
from typing import Any

import anyio
import pytest
from folded_session import MESSAGES, TOKENS, Session
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.memory.records.conversation_entries import (
    replaced_entry_id,
)
from bot.memory.session.state.context_window import WindowFold, visible_entries
from bot.memory.session.state.fold_loader import load_fold, load_resumed_entries
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import (
    TapeEntry,
)
from bot.tape.search import problem_of

SETTINGS = settings(max_examples=examples(200))


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


def state(value: Any) -> Any:
    """All that a fold holds, as plain values; caches are left out."""
    if is_dataclass(value) and not isinstance(value, (type, TapeEntry)):
        return {
            f.name: state(getattr(value, f.name))
            for f in fields(value)
            if f.name not in ("_said", "_open", "_inside", "_conversation")
        }
    if isinstance(value, dict):
        return {key: state(one) for key, one in value.items()}
    if isinstance(value, list):
        return [state(one) for one in value]
    if isinstance(value, float):
        return round(value, 6)
    return value
