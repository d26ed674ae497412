"""What the episodic trace answers, against a plain filter over all entries of the tape."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.clock import format_time
from bot.memory.session.bus.episodic_trace import EpisodicTraceStore
from bot.tape.entries import TapeEntry, anchor, event, message, tool_call, tool_result
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.manual_clock import ManualClock

TAPE = "fake:1"
BEGIN = datetime(2026, 2, 9, tzinfo=UTC)
PROBLEMS = ("general", "p1", "p2")
TAGS = ("db", "tax")
LAYERS = ("focus", "learning")
TYPES: dict[str, TapeEntry] = {
    "turn": message("user", "tea"),
    "tool": tool_call("", [{"id": "1", "name": "clock", "arguments": "{}"}]),
    "retrieval": tool_result("1", "memory_recall", "- tea"),
    "summary": event("memory.history", {"entry": "They had tea."}),
    "decision": event("episode", {"type": "decision", "content": {"d": "tea"}}),
    "delta": event("episode", {"type": "delta", "content": {"from": "tea", "to": "milk"}}),
}
NONE = {"start": event("turn.start", {"turn": "t"}), "anchor": anchor("memory/seal", {})}

hours = st.integers(0, 72)
marks = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([*TYPES, *NONE]),
        "problem": st.sampled_from(PROBLEMS),
        "layer": st.sampled_from(("", *LAYERS)),
        "tags": st.lists(st.sampled_from(TAGS), unique=True),
        "hour": hours,
    }
)
steps = st.one_of(marks, marks, marks, st.just("archive"), st.just("reopen"))
queries = st.fixed_dictionaries(
    {},
    optional={
        "start": hours,
        "end": hours,
        "problem_id": st.sampled_from(PROBLEMS),
        "hrm_layer": st.sampled_from(("", *LAYERS)),
        "entry_type": st.sampled_from(list(TYPES)),
        "tags": st.lists(st.sampled_from(TAGS), unique=True),
        "limit": st.integers(1, 5),
    },
)

Mark = dict[str, Any]


def entry_of(mark: Mark) -> TapeEntry:
    meta: dict[str, Any] = {"sent": format_time(BEGIN + timedelta(hours=mark["hour"]))}
    meta |= {"problem": mark["problem"]} if mark["problem"] != "general" else {}
    meta |= {"layer": mark["layer"]} if mark["layer"] else {}
    meta |= {"tags": mark["tags"]} if mark["tags"] else {}
    return (TYPES | NONE)[mark["kind"]].with_meta(**meta)


def plainly(marks: dict[int, Mark], asked: dict[str, Any]) -> list[str]:
    found = [
        f"{TAPE}#{number}"
        for number, mark in marks.items()
        if mark["kind"] in TYPES
        and mark["hour"] >= asked.get("start", 0)
        and mark["hour"] < asked.get("end", 99)
        and mark["problem"] == asked.get("problem_id", mark["problem"])
        and mark["layer"] == asked.get("hrm_layer", mark["layer"])
        and mark["kind"] == asked.get("entry_type", mark["kind"])
        and set(asked.get("tags", ())) <= set(mark["tags"])
    ]
    return found[-asked["limit"] :] if "limit" in asked else found


async def _compare(folder: Path, made: list[Any], asked: list[dict[str, Any]]) -> None:
    clock = ManualClock()
    store = FileTapeStore(folder, sync=False, clock=clock)
    try:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        marks: dict[int, Mark] = {}
        for step in made:
            if step == "archive":
                await tape.archive()
            elif step == "reopen":
                await store.close()
                store = FileTapeStore(folder, sync=False, clock=clock)
                tape = TapeService(store, TAPE)
            else:
                marks[(await tape.append(entry_of(step))).id] = step
        trace = EpisodicTraceStore(tape, clock)
        for query in asked:
            times = {
                name: BEGIN + timedelta(hours=query[name])
                for name in ("start", "end")
                if name in query
            }
            found = await trace.query(**{**query, **times})
            assert [one.id for one in found] == plainly(marks, query), query
            by_words = {name: value for name, value in query.items() if name != "limit"}
            words = await trace.query(**{**by_words, **times}, text="tea")
            # What was recalled, and calls, have no words of their own.
            told = {"turn", "summary", "decision", "delta"}
            numbered = [number for number, mark in marks.items() if mark["kind"] in told]
            wanted = set(plainly({number: marks[number] for number in numbered}, by_words))
            assert {one.id for one in words} == wanted, query
    finally:
        await store.close()


@settings(max_examples=examples(40))
@given(st.lists(steps, max_size=25), st.lists(queries, min_size=1, max_size=4))
def test_a_query_gives_what_a_plain_filter_over_all_entries_gives(made, asked):
    with TemporaryDirectory() as folder:
        anyio.run(_compare, Path(folder), made, asked)
