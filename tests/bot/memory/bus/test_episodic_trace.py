"""The episodic trace: what a session's tape holds, as episodes; how it is asked is a property elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from bot.core.errors import MemoryRefused
from bot.memory.records.compartment_records import EpisodeEntry
from bot.memory.records.episodes import ERASED_CONTENT, episode_from_entry
from bot.memory.records.tombstones import tombstone
from bot.memory.session.bus.episodic_trace import LONGEST_CONTENT, EpisodicTraceStore
from bot.tape.entries import TapeEntry, event, message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.testing.manual_clock import ManualClock

TAPE = "fake:1"


@pytest.fixture
async def tape(tmp_path):
    store = FileTapeStore(tmp_path / "tapes", sync=False, clock=ManualClock())
    service = TapeService(store, TAPE)
    await service.ensure_bootstrap_anchor()
    yield service
    await store.close()


@pytest.fixture
def trace(tape):
    return EpisodicTraceStore(tape, ManualClock())


def episode(text: str = "use PostgreSQL", **more: object) -> EpisodeEntry:
    made = EpisodeEntry("", ManualClock().now(), None, "", "decision", {"d": text})
    return replace(made, **more)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [({"content": {"d": "ü" * (LONGEST_CONTENT // 2)}}, "8,000 bytes"),
     ({"content": {"d": float("nan")}}, "plain JSON"), ({"content": {1: "x"}}, "plain JSON"),
     ({"entry_type": "dream"}, "no episode of the type 'dream'"), ({"tags": ["x"] * 21}, "20 tags"),
     ({"hrm_layer": "x" * 65}, "64 characters"),
     ({"timestamp": datetime(2099, 1, 1, tzinfo=UTC)}, "has happened"),
     ({"supersedes": "yesterday"}, "no episode's id")],
)  # fmt: skip
async def test_what_cannot_be_kept_is_refused_and_not_written(trace, tape, wrong, why):
    before = await tape.version()
    with pytest.raises(MemoryRefused, match=why):
        await trace.append(episode(**wrong))
    with pytest.raises(MemoryRefused, match="no episode"):
        await trace.supersede("fake:1#999", episode())
    assert await tape.version() == before


async def test_a_day_ends_where_the_next_begins_and_has_all_its_hours(trace, tape):
    stamps = ["2026-03-28T22:59", "2026-03-28T23:30", "2026-03-29T21:30", "2026-03-29T22:30"]
    for stamp in stamps:
        await tape.append(message("user", stamp, sent=f"{stamp}+00:00"))
    for zone, found in (("Europe/Berlin", stamps[1:3]), ("UTC", stamps[2:])):
        chunk = await trace.get_chunk(date(2026, 3, 29), ZoneInfo(zone))
        assert [one.content["content"] for one in chunk] == found


async def test_an_erased_entry_is_an_episode_that_says_so(trace, tape):
    await tape.append(message("user", "my pin is xyzzy", problem="p1"))
    await trace.append(episode("pin xyzzy", problem_id="p1", tags=["xyzzy"]))
    entries = (await tape.read_entries())[-2:]
    await tape.store.erase(TAPE, [tombstone(one) for one in entries])
    found = await trace.query(problem_id="p1")
    assert [one.content for one in found] == [ERASED_CONTENT, ERASED_CONTENT]
    assert "xyzzy" not in str(found)


@pytest.mark.parametrize(
    "entry",
    [message("user", "x", sent="soon", ts=5, tags="a", layer=["b"], supersedes=3, problem=4),
     event("episode", {"type": 3, "content": "x"}), event("episode"),
     event("memory.facts", {"ops": [1, {"op": "supersede", "closed": 4}, {"closed": {"text": None}}]}),
     TapeEntry(0, "tool_call", {"calls": [{}, 4]}), TapeEntry(0, "tool_result", {})],
)  # fmt: skip
def test_an_entry_of_any_shape_is_read_without_an_error(entry):
    found = episode_from_entry(TAPE, replace(entry, id=7))
    assert found is not None
    assert (found.tags, found.hrm_layer, found.problem_id) == ([], "", None)
