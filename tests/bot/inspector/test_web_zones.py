"""Versions of the memory zone: where they are, what made them, and what differs between two."""

from __future__ import annotations

from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL


async def test_each_change_is_a_version_with_what_made_it_newest_first(rig):
    await rig.talk("fake:1", "hello", "/memory add I live in Bonn", "/memory add I like tea")
    await rig.talk("fake:1", "/memory undo", "/memory clear yes")
    versions, before = [], None
    while True:
        found = await rig.get("/zones", tape="fake:1", limit=2, before=before)
        versions += found["versions"]
        if (before := found["before"]) is None:
            break
    numbers = [one["version"] for one in versions]
    assert numbers == [*range(len(numbers), 0, -1)]
    assert [one["cause"] for one in versions][:4] == ["clear", "undo", "command", "command"]
    assert versions[2]["because"] == "a command: /memory add I like tea"
    for one in versions:
        (opened,) = await rig.store.read("fake:1", one["opened"], one["opened"])
        (sealed,) = await rig.store.read("fake:1", one["sealed"], one["sealed"])
        assert (opened.name, sealed.name) == (MEMORY_OPEN, MEMORY_SEAL)
        assert opened.data["version"] == one["version"]


async def test_a_difference_tells_by_part_line_and_word_what_came_and_what_went(rig):
    await rig.talk("fake:1", "/memory add I live in Bonn", "/memory add I like tea")
    before = (await rig.get("/zones", tape="fake:1"))["newest"]
    await rig.talk("fake:1", "/memory edit 1 I live in Graz", "/memory add I own a boat")
    after = (await rig.get("/zones", tape="fake:1"))["newest"]
    (part,) = (await rig.get("/zones/diff", tape="fake:1", from_=before, to=after))["parts"]
    assert part["title"] == "Long-term memory"
    told = str([(one["old"], one["new"]) for one in part["lines"]])
    assert all(words in told for words in ("Bonn", "Graz", "I own a boat"))
    kinds = {one["kind"] for one in part["lines"]}
    assert "same" in kinds
    assert {"added", "changed"} & kinds
    shown = await rig.page("/zones", tape="fake:1", from_=before, to=after)
    assert "<del>" in shown
    assert "<ins>" in shown
    (back,) = (await rig.get("/zones/diff", tape="fake:1", from_=after, to=before))["parts"]
    assert (back["added"], back["removed"]) == (part["removed"], part["added"])
