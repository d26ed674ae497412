"""Versions of the memory zone: where they are, what made them, and what differs between two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_rig import open_web

from bot.inspector.reading.diffs import diff_lines, zone_part_diffs
from bot.memory.session.state.zone_snapshot import DailyNote, MemorySnapshot
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL


@pytest.fixture
async def rig():
    async with open_web() as rig:
        yield rig


async def test_each_change_is_a_version_with_what_made_it_newest_first(rig):
    await rig.talk("fake:1", "hello", "/memory add I live in Bonn", "/memory add I like tea")
    await rig.talk("fake:1", "/memory undo", "/memory clear yes")
    found = await rig.get("/zones", tape="fake:1")
    numbers = [one["version"] for one in found["versions"]]
    assert numbers == sorted(numbers, reverse=True)
    assert found["newest"] == numbers[0]
    causes = [one["cause"] for one in found["versions"]]
    assert causes[:4] == ["clear", "undo", "command", "command"]
    assert found["versions"][2]["because"] == "a command: /memory add I like tea"
    for one in found["versions"]:
        (opened,) = await rig.store.read("fake:1", one["opened"], one["opened"])
        (sealed,) = await rig.store.read("fake:1", one["sealed"], one["sealed"])
        assert (opened.name, sealed.name) == (MEMORY_OPEN, MEMORY_SEAL)
        assert opened.data["version"] == one["version"]


async def test_versions_are_paged_back_to_the_first(rig):
    await rig.talk("fake:1", *(f"/memory add Thing {n} is kept on shelf {n}" for n in range(6)))
    everything = (await rig.get("/zones", tape="fake:1"))["versions"]
    paged, before = [], None
    while True:
        found = await rig.get("/zones", tape="fake:1", limit=2, before=before)
        paged += found["versions"]
        if (before := found["before"]) is None:
            break
    assert paged == everything
    assert paged[-1]["version"] == 1


async def test_a_difference_tells_by_part_line_and_word_what_came_and_what_went(rig):
    await rig.talk("fake:1", "/memory add I live in Bonn", "/memory add I like tea")
    before = (await rig.get("/zones", tape="fake:1"))["newest"]
    await rig.talk("fake:1", "/memory edit 1 I live in Graz", "/memory add I own a boat")
    after = (await rig.get("/zones", tape="fake:1"))["newest"]
    diff = await rig.get("/zones/diff", tape="fake:1", from_=before, to=after)
    (part,) = diff["parts"]
    assert (part["name"], part["title"]) == ("long_term", "Long-term memory")
    changes = [(one["kind"], one["old"], one["new"]) for one in part["lines"]]
    told = str(changes)
    assert "Bonn" in told
    assert "Graz" in told
    assert "I own a boat" in told
    kinds = {kind for kind, _, _ in changes}
    assert "same" in kinds
    assert {"added", "changed"} & kinds
    shown = await rig.page("/zones", tape="fake:1", from_=before, to=after)
    assert "<del>" in shown
    assert "<ins>" in shown
    newest = (await rig.get("/memory", tape="fake:1"))["last_change"]
    assert f'data-command="/memory undo {newest}"' in shown
    back = await rig.get("/zones/diff", tape="fake:1", from_=after, to=before)
    assert (back["parts"][0]["added"], back["parts"][0]["removed"]) == (
        part["removed"], part["added"],
    )  # fmt: skip


LINES = st.lists(st.sampled_from(["- tea", "- I live in Bonn", "- I live in Graz", "", "boat a b"]))


@given(LINES, LINES)
def test_a_difference_put_together_again_gives_both_texts(old, new):
    lines = diff_lines("\n".join(old), "\n".join(new))
    before = ["".join(p.text for p in one.old) for one in lines if one.old is not None]
    after = ["".join(p.text for p in one.new) for one in lines if one.new is not None]
    assert before == "\n".join(old).splitlines()
    assert after == "\n".join(new).splitlines()
    assert all(one.old == one.new for one in lines if one.kind == "same")


def test_notes_are_compared_by_day_and_parts_that_neither_has_are_left_out():
    old = MemorySnapshot(1, "- tea", (DailyNote("2026-02-09", "rain"),))
    new = MemorySnapshot(2, "- tea", (DailyNote("2026-02-10", "sun"),), reference="a = 1")
    parts = {one.name: one for one in zone_part_diffs(old, new)}
    assert list(parts) == ["long_term", "notes:2026-02-10", "notes:2026-02-09", "reference"]
    assert parts["long_term"].added == parts["long_term"].removed == 0
    assert parts["notes:2026-02-09"].lines[0].kind == "removed"
