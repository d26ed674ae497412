"""The view that grows with each message is the one that is put together from all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.memory.records.conversation_entries import TURN_START
from bot.memory.session.state.context_window import WindowFold
from bot.tape.entries import (
    MEMORY_CONSOLIDATED,
    SESSION_NEW,
    SESSION_START,
    TapeEntry,
    anchor,
    event,
    message,
)
from tests.sampling import examples

BACK = st.integers(1, 6)
"""How far back an entry refers to another."""


def built(number: int, kind: str, back: int) -> TapeEntry:
    """Return an entry of a tape; what it refers to is so many entries before."""
    other = max(1, number - back)
    said: dict[str, Any] = {"inbound": f"m{number}"}
    entry = {
        "user": lambda: message("user", "hi", **said),
        "queued": lambda: message("user", "wait", queued=True, **said),
        "overheard": lambda: message("user", "noise", queued=True, overheard=True, **said),
        "edit": lambda: message("user", "hello", replaces=other, edits=f"m{other}", **said),
        "answer": lambda: message("assistant", "ha", turn="t"),
        "start": lambda: event(TURN_START, {"turn": "t", "inbound": [], "joined": [other]}),
        "plain start": lambda: event(TURN_START, {"turn": "t", "inbound": []}),
        "boundary": lambda: anchor(SESSION_NEW, {"keep_from": other}),
        "consolidated": lambda: anchor(MEMORY_CONSOLIDATED, {"through": other}),
        "reset": lambda: anchor(SESSION_START, {"reset": True}),
    }[kind]()
    return TapeEntry(number, entry.kind, entry.payload, entry.meta)


SAID = ["user", "user", "queued", "overheard", "edit", "answer", "answer"]
MARKS = ["start", "plain start", "boundary", "consolidated", "reset"]
KINDS = st.sampled_from([*SAID, *MARKS])


@settings(max_examples=examples(600))
@given(st.lists(st.tuples(KINDS, BACK), max_size=30), st.integers(2, 12))
def test_a_view_that_was_asked_for_after_each_entry_is_the_one_asked_for_at_the_end(steps, most):
    tape = [built(number, kind, back) for number, (kind, back) in enumerate(steps, start=1)]
    asked = WindowFold(most, 10_000)
    for place, entry in enumerate(tape):
        asked.apply(entry)
        whole = WindowFold(most, 10_000)
        for one in tape[: place + 1]:
            whole.apply(one)
        assert asked.conversation() == whole.conversation()
        ids = [f"m{entry.id}", f"m{max(1, entry.id - 2)}"]
        assert asked.messages_by_platform_id(ids) == whole.messages_by_platform_id(ids)
        assert asked.entries_since(entry.id - 3) == [
            one for one in whole.entries if one.id >= entry.id - 3
        ]
