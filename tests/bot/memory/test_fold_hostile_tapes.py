"""Whatever nonsense a tape holds: it can be shown to a model, and each call has its result."""

from __future__ import annotations

from dataclasses import replace

import pytest
from folded import kept
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.agent.context import default_context
from bot.agent.views.exact import anchors_in_view, exact_context
from bot.memory.records.transcript import render_transcript
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import ENTRY_KINDS, TapeEntry, event, message, tool_call

WORDS = (
    *("", "user", "c1", "c2", "\ud800", "你", "[", '{"a": 1}', "UTC", "Asia/Tokyo", "../x"),
    *("2026-02-10T10:00:00+00:00", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00"),
    *(
        "memory/open",
        "memory/seal",
        "session/new",
        "turn.start",
        "turn.end",
        "loop.step",
        "general",
    ),
)
NAMES = (
    *("turn.start", "turn.end", "loop.step", "turn.resume", "delivery", "reply", "memory.bus"),
    *("memory/open", "memory/seal", "memory/consolidated", "session/new", "problem/p1"),
    *("auto_handoff/context_overflow", "model.refused", "memory.facts", "memory.scope"),
    *("tool.pending", "tool.decided", "schedule.set", "schedule.fired", "quiet.set"),
)
KEYS = (
    "id name arguments turn joined inbound version content through keep_from messages tokens date"
    " usage cost answered problem returns ids problems working references patterns uses active"
    " parts entries kinds ops fact state key previous number decision schedule rule next from to"
).split()
META = (
    "ts sent tz sender private queued quote inbound turn hash overheard replaces edits attachments"
    " problem"
).split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 25) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.integers(-1, 21), max_size=4)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=4,
)
STATES = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6) | JSON
IDS = st.sampled_from(["c1", "c2", "c3"]) | JSON
CALLS = st.lists(st.fixed_dictionaries({"id": IDS, "name": JSON, "arguments": JSON}))
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant"]) | JSON,
        "content": JSON,
        "calls": CALLS | JSON,
        "call_id": IDS,
        "name": st.sampled_from(NAMES) | JSON,
        "data": STATES,
        "state": STATES,
    },
)
METAS = st.dictionaries(st.sampled_from(META), JSON, max_size=4)
ENTRIES = st.lists(st.tuples(st.sampled_from(sorted(ENTRY_KINDS)), PAYLOADS, METAS), max_size=20)


@pytest.mark.slow
@given(ENTRIES)
@settings(max_examples=examples(100))
def test_no_tape_can_make_the_view_fail_or_leave_a_call_without_its_result(parts):
    fold = SessionFold(WindowFold(8, 120))
    entries = [TapeEntry(number, *part) for number, part in enumerate(parts, start=1)]
    for entry in entries:
        fold.apply(entry)
    exact = exact_context(fold.window, {}, anchors_in_view(fold, entries))
    for view in (default_context(fold.window), exact):
        open_calls: list[str] = []
        for shown in view:
            if shown["role"] == "tool":
                assert open_calls.pop(0) == shown["tool_call_id"]
            else:
                assert open_calls == []
                open_calls = [call["id"] for call in shown.get("tool_calls", [])]
        assert open_calls == []
    render_transcript(fold.window.entries)
    ConsolidationPolicy(4, 100, 100).due(fold)
    kept(fold)


@pytest.mark.parametrize("data", [{"parts": 3}, {"parts": [[1]]}, {"entries": [{}, "1", 2, None]}])
def test_nonsense_about_what_was_refused_stops_no_session(data):
    fold = SessionFold(WindowFold(8, 120))
    fold.apply(replace(event("model.refused", data), id=1))
    assert fold.refused.entries == ({2} if "entries" in data else set())


@pytest.mark.parametrize("arguments", ["[" * 100_000, "1" * 5_000, '{"a":' * 50_000])
def test_arguments_that_no_parser_takes_do_not_wedge_the_session(arguments):
    window = WindowFold(8, 10**9)
    window.apply(message("user", "hi"))
    window.apply(tool_call("", [{"id": "c", "name": "t", "arguments": arguments}]))
    [_, call, result] = default_context(window)
    assert call["tool_calls"][0]["function"]["arguments"].startswith('{"malformed"')
    assert result["role"] == "tool"
