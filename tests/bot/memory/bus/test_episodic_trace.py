"""The episodic trace: what a session's tape holds, as episodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.core.errors import InvalidSearch, MemoryRefused
from bot.memory.records.compartment_records import EpisodeEntry
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.episodes import ERASED_CONTENT, episode_from_entry
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.records.tombstones import tombstone
from bot.memory.session.bus import episodic_trace as episodic
from bot.memory.session.bus.episodic_trace import LONGEST_CONTENT, EpisodicTraceStore
from bot.tape.entries import TapeEntry, anchor, event, message, system, tool_call, tool_result
from bot.tape.search import MAX_HITS
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.manual_clock import ManualClock

TAPE = "fake:1"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def tape(tmp_path, clock):
    store = FileTapeStore(tmp_path / "tapes", sync=False, clock=clock)
    service = TapeService(store, TAPE)
    await service.ensure_bootstrap_anchor()
    yield service
    await store.close()


@pytest.fixture
def trace(tape, clock):
    return EpisodicTraceStore(tape, clock)


def episode(clock: ManualClock, text: str = "use PostgreSQL", **more: object) -> EpisodeEntry:
    made = EpisodeEntry("", clock.now(), None, "", "decision", {"d": text})
    return replace(made, **more)


def told(entry: TapeEntry) -> tuple[str, dict[str, object]] | None:
    found = episode_from_entry(TAPE, replace(entry, id=7))
    return (found.entry_type, found.content) if found is not None else None


async def test_what_is_appended_reads_back_as_it_was(trace, clock):
    given = episode(
        clock,
        content={"d": "ü\ud800", "n": [1, {"x": None}]},
        problem_id="p1",
        hrm_layer="focus",
        tags=["db", "infra"],
        supersedes="other:2#4",
        timestamp=clock.now() - timedelta(hours=3),
    )
    number = await trace.append(given)
    assert await trace.get(number) == replace(given, id=number)
    assert await trace.query() == [replace(given, id=number)]


async def test_an_episode_of_the_general_problem_stays_so_whatever_is_worked_on(trace, tape, clock):
    tape.stamp = lambda entry: entry if "problem" in entry.meta else entry.with_meta(problem="p1")
    await tape.append(message("user", "of taxes"))
    general = await trace.append(episode(clock))
    assert [one.id for one in await trace.query(problem_id="general")][-1] == general
    assert [one.content["content"] for one in await trace.query(problem_id="p1")] == ["of taxes"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"content": {"d": "x" * LONGEST_CONTENT}}, "8,000 bytes"),
        ({"content": {"d": "ü" * (LONGEST_CONTENT // 2)}}, "8,000 bytes"),
        ({"content": {"d": float("nan")}}, "plain JSON"),
        ({"content": {"d": {1, 2}}}, "plain JSON"),
        ({"content": {1: "x"}}, "plain JSON"),
        ({"content": {"d": (1, 2)}}, "plain JSON"),
        ({"entry_type": "dream"}, "no episode of the type 'dream'"),
        ({"tags": ["x"] * 21}, "20 tags"),
        ({"tags": ["x" * 65]}, "64 characters"),
        ({"hrm_layer": "x" * 65}, "64 characters"),
        ({"timestamp": datetime(2026, 2, 10)}, "with its zone"),  # noqa: DTZ001 (the mistake)
        ({"timestamp": datetime(2099, 1, 1, tzinfo=UTC)}, "has happened"),
        ({"supersedes": "yesterday"}, "no episode's id"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_not_written(trace, tape, clock, wrong, why):
    before = await tape.version()
    with pytest.raises(MemoryRefused, match=why):
        await trace.append(episode(clock, **wrong))
    assert await tape.version() == before


async def test_the_longest_content_is_kept(trace, clock):
    room = LONGEST_CONTENT - len('{"d": ""}')
    assert await trace.append(episode(clock, "x" * room))


async def test_a_superseded_episode_stays_and_is_left_out_of_what_is_synthesised(trace, clock):
    old = await trace.append(episode(clock, "use MySQL", problem_id="p1"))
    new = await trace.supersede(old, episode(clock, "use PostgreSQL"))
    newest = await trace.supersede(new, episode(clock, "use SQLite"))
    assert (await trace.get(old)).content == {"d": "use MySQL"}
    assert [(one.id, one.supersedes) for one in await trace.query(problem_id="p1")] == [
        (old, None),
        (new, old),
        (newest, new),
    ]
    assert [one.id for one in await trace.export_for_synthesis("p1")] == [newest]


@pytest.mark.parametrize("unknown", ["fake:1#999", "nobody#1", "x", "fake:1#1"])
async def test_only_an_episode_can_be_superseded(trace, tape, clock, unknown):
    before = await tape.version()
    with pytest.raises(MemoryRefused, match="no episode"):
        await trace.supersede(unknown, episode(clock))
    assert await tape.version() == before


async def test_an_edit_supersedes_the_message_in_whose_place_it_stands(trace, tape):
    first = await tape.append(message("user", "meet at five", problem="p1"))
    edit = await tape.append(message("user", "meet at six", replaces=first.id, problem="p1"))
    [one] = await trace.export_for_synthesis("p1")
    assert (one.id, one.supersedes) == (f"{TAPE}#{edit.id}", f"{TAPE}#{first.id}")


async def test_any_tapes_episode_is_found_by_its_id(trace, tape, clock):
    other = TapeService(tape.store, "fake:2")
    await other.ensure_bootstrap_anchor()
    said = await other.append(message("user", "elsewhere"))
    await other.archive()
    assert (await trace.get(f"fake:2#{said.id}")).content == {
        "role": "user",
        "content": "elsewhere",
    }
    assert await trace.query() == []
    assert await trace.get("fake:3#1") is None
    assert await trace.get("nothing") is None


async def test_a_day_ends_where_the_next_begins(trace, tape):
    stamps = ["2026-02-09T23:59:59.999", "2026-02-10T00:00", "2026-02-10T23:59", "2026-02-11T00:00"]
    for stamp in stamps:
        await tape.append(message("user", stamp, sent=f"{stamp}+00:00"))

    async def of(day: int, **zone: ZoneInfo) -> list[str]:
        return [one.content["content"] for one in await trace.get_chunk(date(2026, 2, day), **zone)]

    assert await of(10) == stamps[1:3]
    assert await of(11) == stamps[3:]
    assert await of(12) == []
    assert await of(10, timezone=ZoneInfo("Asia/Tokyo")) == stamps[:2]


async def test_the_day_on_which_the_clocks_change_has_all_its_hours(trace, tape):
    for hour in ("2026-03-28T23:30", "2026-03-29T21:30", "2026-03-29T22:30"):
        await tape.append(message("user", hour, sent=f"{hour}+00:00"))
    found = await trace.get_chunk(date(2026, 3, 29), ZoneInfo("Europe/Berlin"))
    assert [one.content["content"] for one in found] == ["2026-03-28T23:30", "2026-03-29T21:30"]


async def test_a_limit_gives_the_newest_in_order(trace, tape):
    for number in range(30):
        await tape.append(message("user", f"tea {number}"))
        await tape.append(message("assistant", "ok", problem="p1"))
    await tape.archive()
    found = await trace.query(limit=3, problem_id="general")
    assert [one.content["content"] for one in found] == ["tea 27", "tea 28", "tea 29"]
    assert await trace.query(text="tea", limit=3) == found


@pytest.mark.parametrize(
    "bound", [50, pytest.param(MAX_HITS, marks=[pytest.mark.slow, pytest.mark.night])]
)
async def test_a_search_by_words_loses_nothing_beyond_the_bound_of_hits(
    trace, tape, clock, monkeypatch, bound
):
    monkeypatch.setattr(episodic, "MAX_HITS", bound)
    said = [message("user", f"zebra {number}") for number in range(bound + 20)]
    written = await tape.append_many(said)
    await tape.archive()
    number = await trace.append(episode(clock, "no zebra here", problem_id="p1", tags=["zoo"]))
    found = await trace.query(text="zebra")
    assert [one.id for one in found] == [*(f"{TAPE}#{one.id}" for one in written), number]
    assert [one.id for one in await trace.query(text="zebra", tags=["zoo"])] == [number]
    assert await trace.query(text="zebra", problem_id="p2") == []
    assert await trace.query(text="zebra", entry_type="tool") == []


async def test_what_cannot_be_asked_is_said_so(trace):
    with pytest.raises(InvalidSearch, match="its zone"):
        await trace.query(datetime(2026, 2, 10))  # noqa: DTZ001 (the mistake)
    with pytest.raises(InvalidSearch, match="no episode of the type"):
        await trace.query(entry_type="dream")
    with pytest.raises(InvalidSearch, match="at least one"):
        await trace.query(limit=0)


async def test_an_erased_entry_is_an_episode_that_says_so(trace, tape, clock):
    await tape.append(message("user", "my pin is xyzzy", problem="p1"))
    await trace.append(episode(clock, "pin xyzzy", problem_id="p1", tags=["xyzzy"]))
    entries = (await tape.read_entries())[-2:]
    await tape.store.erase(TAPE, [tombstone(one) for one in entries])
    found = await trace.query(problem_id="p1")
    assert [(one.entry_type, one.content) for one in found] == [
        ("turn", ERASED_CONTENT),
        ("decision", ERASED_CONTENT),
    ]
    assert "xyzzy" not in str(found)


def test_entries_are_episodes_by_what_they_say():
    facts = {"ops": [{"op": "add", "text": "Likes tea", "verdict": "approved", "fact": {"id": 3}}]}
    closing = {"op": "supersede", "text": "Lives in Rome", "verdict": "approved"}
    closing |= {"fact": {"id": 4, "text": "Lives in Rome"}, "closed": {"id": 2, "text": "in Oslo"}}
    assert told(message("assistant", "Hello")) == (
        "turn",
        {"role": "assistant", "content": "Hello"},
    )
    assert told(tool_call("", [{"id": "1", "name": "clock", "arguments": "{}"}])) == (
        "tool",
        {"tool": "clock", "calls": [{"tool": "clock", "arguments": "{}"}]},
    )
    assert told(tool_result("1", "clock", "noon")) == ("tool", {"tool": "clock", "result": "noon"})
    assert told(tool_result("1", "clock", "no", status="error")) == (
        "tool",
        {"tool": "clock", "result": "no", "status": "error"},
    )
    for name in ("memory_recall", "memory.recall", "tape_search", "tape.search"):
        assert told(tool_result("1", name, "- a\n- b")) == (
            "retrieval",
            {"tool": name, "results": ["- a", "- b"]},
        )
    assert told(event(HISTORY_EVENT, {"entry": "They met.", "range": [1, 9]})) == (
        "summary",
        {"summary": "They met.", "range": [1, 9]},
    )
    assert told(anchor("trip", {"summary": "Booked."})) == (
        "summary",
        {"summary": "Booked.", "phase": "trip"},
    )
    kind, content = told(event(FACTS_EVENT, {**facts, "author": "consolidation"}))
    assert kind == "decision"
    assert content["decisions"] == [
        {"op": "add", "text": "Likes tea", "verdict": "approved", "fact": 3}
    ]
    kind, content = told(event(FACTS_EVENT, {"ops": [*facts["ops"], closing]}))
    assert (kind, content["from"], content["to"]) == ("delta", ["in Oslo"], ["Lives in Rome"])
    decided = {"decision": {"approved": True}, "signals": {}, "previous": 3, "state": {}}
    assert told(event(BUS_EVENT, decided)) == (
        "decision",
        {"decision": {"approved": True}, "signals": {}},
    )


@pytest.mark.parametrize(
    "entry",
    [
        system("You are tapebot"),
        event("turn.start", {"turn": "t"}),
        event("turn.end", {"turn": "t"}),
        event("loop.step", {"turn": "t", "extra": ["x"]}),
        event("command", {"name": "memory"}),
        event("memory.long_term", {"content": "x"}),
        event(BUS_EVENT, {"active": "p1"}),
        anchor("memory/seal", {"version": 1, "summary": "x"}),
        anchor("session/start", {"owner": "human"}),
    ],
)
def test_bookkeeping_is_no_episode(entry):
    assert told(entry) is None


@pytest.mark.parametrize(
    "entry",
    [
        message("user", "x", sent="soon", ts=5, tags="a", layer=["b"], supersedes=3, problem=4),
        event("episode", {"type": 3, "content": "x"}),
        event("episode"),
        event(
            FACTS_EVENT, {"ops": [1, {"op": "supersede", "closed": 4}, {"closed": {"text": None}}]}
        ),
        TapeEntry(0, "tool_call", {"calls": [{}, 4]}),
        TapeEntry(0, "tool_result", {}),
        TapeEntry(0, "message", {}),
    ],
)
def test_an_entry_of_any_shape_is_read_without_an_error(entry):
    found = episode_from_entry(TAPE, replace(entry, id=7))
    assert found is not None
    assert (found.tags, found.hrm_layer, found.problem_id) == ([], "", None)
