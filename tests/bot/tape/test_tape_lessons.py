"""What the tapes of others lost, and this one keeps: rows that no other test of the tape stands for."""

from __future__ import annotations

from tape_files import opened, says

from bot.tape.entries import anchor
from bot.tape.search import SearchQuery

TAPE = "telegram:42"


async def test_deleting_the_index_loses_no_anchor_and_no_word(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE, "Kitchen")
        await store.append_many(TAPE, [says("green tea"), anchor("tea", {"n": 2**63})])
        await store.create_anchor(TAPE, "bookmark", 2, {"list": []})
        await store.archive(TAPE)
        await store.append(TAPE, says("black tea"))
        anchors = await store.list_anchors(TAPE)
        hits = await store.search(SearchQuery("tea", neighbours=2))
        assert len(hits) >= 2
    gone = [path for path in tmp_path.rglob("*") if ".index." in path.name]
    assert gone
    for path in gone:
        path.unlink()
    async with opened(tmp_path) as store:
        assert await store.get_title(TAPE) == "Kitchen"
        assert await store.list_anchors(TAPE) == anchors
        assert await store.search(SearchQuery("tea", neighbours=2)) == hits
