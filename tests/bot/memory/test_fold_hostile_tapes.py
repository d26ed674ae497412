"""Whatever nonsense a tape holds: it can be shown to a model, and each call has its result."""

from __future__ import annotations

import pytest
from folded_session import MESSAGES, TOKENS
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.agent.consolidation.policy import ConsolidationPolicy
from bot.agent.context import default_context
from bot.memory.records.conversation_entries import (
    LOOP_STEP,
    TURN_END,
    TURN_START,
)
from bot.memory.records.event_names import (
    REPLY,
)
from bot.memory.records.transcript import render_transcript
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.turn_fold import (
    DELIVERY,
    TURN_RESUME,
)
from bot.tape.entries import (
    ENTRY_KINDS,
    TapeEntry,
    message,
    tool_call,
)

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
