"""What every tape store promises of digests: each entry's covers it and the one before, whatever happens to the tape."""

from __future__ import annotations

from dataclasses import replace

from tape_talk import TAPE, says, with_two_segments

from bot.tape.chain import CHAIN_START, ChainLink
from bot.tape.codec import digest_content
from bot.tape.store import TapeStore
from bot.transfer.tape_verification import verify_tape


async def chained(store: TapeStore, tape: str = TAPE) -> list[ChainLink]:
    """Return a tape's links, once each covers its entry and follows the one before."""
    links = await store.chain_links(tape)
    entries = await store.read(tape)
    assert [link.id for link in links] == [entry.id for entry in entries]
    assert all(
        link.covers(digest_content(entry)) for link, entry in zip(links, entries, strict=True)
    )
    assert [link.previous for link in links[1:]] == [link.value for link in links[:-1]]
    return links


async def test_every_entry_has_a_link_that_covers_it_and_the_one_before(backend):
    await with_two_segments(backend.store)
    written = await backend.store.append_many(TAPE, [says("x"), says("y"), says("z")])
    async for store in backend.readers():
        links = await chained(store)
        assert links[0].previous == CHAIN_START
        assert [link.more for link in links[-3:]] == [2, 1, 0]
        assert len({link.salt for link in links}) == len(links)
        assert (await verify_tape(store, TAPE)).problems == []
        part = await store.chain_links(TAPE, written[0].id, written[1].id)
        assert part == links[-3:-1]


async def test_an_erasure_changes_no_link_but_its_own_and_leaves_nothing_to_check_a_guess_with(
    backend,
):
    await with_two_segments(backend.store)
    before = {link.id: link for link in await chained(backend.store)}
    gone = [entry for entry in await backend.store.read(TAPE) if entry.id in (3, 9)]
    for words in ("", "again"):
        made = [replace(one, payload={"role": "user", "content": words}, meta={}) for one in gone]
        assert await backend.store.erase(TAPE, made) == 2
        after = {link.id: link for link in await chained(backend.store)}
        for number, link in after.items():
            if number not in (3, 9):
                assert link == before[number]
        for entry in gone:
            link = after[entry.id]
            assert link.value == before[entry.id].value
            assert link.salt != before[entry.id].salt
            assert not link.covers(digest_content(entry))
            assert not replace(link, digest=link.erased, erased=b"").covers(digest_content(entry))
    await backend.store.append(TAPE, says("after"))
    await chained(backend.store)
    assert (await verify_tape(backend.store, TAPE)).problems == []


async def test_the_chain_goes_on_behind_a_seal_a_reset_and_in_a_fork(backend):
    store = backend.store
    await with_two_segments(store)
    await store.fork(TAPE, "child", from_entry=3)
    assert (await chained(store, "child"))[0].previous == CHAIN_START
    await store.append(TAPE, says("dropped"))
    *_, dropped = await store.chain_links(TAPE)
    await store.reset(TAPE, [says("carried")])
    first, second = await store.chain_links(TAPE)
    assert (first.previous, second.previous) == (dropped.value, first.value)
    for tape in (TAPE, "child"):
        assert (await verify_tape(store, tape)).problems == []
