"""When consolidation is due, and that it never is for ever."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import MEMORY_CONSOLIDATED, anchor, event, message

POLICY = ConsolidationPolicy(window=10, tokens=1_000, prompt_tokens=2_000)


def _fold(*entries):
    fold = SessionFold(WindowFold(1_000, 1_000_000))
    for entry_id, entry in enumerate(entries, start=1):
        fold.apply(entry.__class__(entry_id, entry.kind, entry.payload, entry.meta))
    return fold


def _talk(turns, words="hello"):
    return [message(role, words) for _ in range(turns) for role in ("user", "assistant")]


def test_it_is_due_at_the_window_and_leaves_the_newest_quarter_in_view():
    assert POLICY.due(_fold(*_talk(4))) is None
    due = POLICY.due(_fold(*_talk(5)))
    assert due is not None
    assert (due.first, due.last) == (1, 8)


def test_few_long_messages_are_due_by_their_tokens():
    due = POLICY.due(_fold(*_talk(3, "word " * 300)))
    assert due is not None
    assert due.last < 6


def test_one_turn_alone_is_never_torn():
    assert POLICY.due(_fold(*_talk(1, "word " * 2_000))) is None


def test_a_boundary_that_left_messages_behind_is_due_at_once_up_to_itself():
    fold = _fold(*_talk(2), anchor("session/new", {}), *_talk(1))
    due = POLICY.due(fold)
    assert due is not None
    assert (due.first, due.last) == (1, 4)


def test_a_prompt_that_is_large_by_what_is_fixed_is_not_consolidated_for_it():
    heavy = event("turn.end", {"turn": "t", "inbound": [], "prompt_tokens": 9_000})
    assert POLICY.due(_fold(*_talk(4, "word " * 60), heavy)) is None


@settings(max_examples=examples(60))
@given(st.lists(st.integers(1, 2_000), max_size=30), st.integers(10, 30))
def test_consolidating_what_is_due_comes_to_an_end(sizes, window):
    """Each range lies after the one before and moves the cursor, until nothing is due."""
    policy = ConsolidationPolicy(window=window, tokens=1_000, prompt_tokens=2_000)
    entries = [part for size in sizes for part in _talk(1, "w" * size)]
    fold = _fold(*entries)
    rounds = 0
    while (due := policy.due(fold)) is not None:
        assert due.first == fold.window.consolidated_through + 1
        assert due.last >= due.first
        state = {"through": due.last, "history": 0, "version": 1, "messages": 0, "tokens": 0}
        mark = anchor(MEMORY_CONSOLIDATED, state)
        fold.apply(mark.__class__(fold.version + 1, mark.kind, mark.payload, mark.meta))
        rounds += 1
        assert rounds <= len(entries)
