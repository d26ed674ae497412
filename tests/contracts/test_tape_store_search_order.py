"""The order of what every store finds, how much of it there is, and what stands around it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from searching import MESSAGES, apart, ask, found, invented, moment, places, said
from tape_talk import TAPE, says, talk

from bot.tape.entries import anchor, message, tool_result
from bot.tape.index.ranking import SHARED_BY_MANY
from bot.tape.search import MAX_HITS, MAX_NEIGHBOURS, SearchQuery
from bot.tape.store import TapeStore

# Order and number.


async def test_without_words_the_newest_come_first(store):
    entries = [says(str(n)).with_meta(ts=moment(n)) for n in range(12)]
    await apart(store, *entries)
    assert await found(store) == [str(n) for n in range(11, 1, -1)]
    assert await found(store, "  \n", limit=3) == ["11", "10", "9"]
    assert await found(store, limit=100) == [str(n) for n in range(11, -1, -1)]


async def test_of_what_fits_equally_the_newer_comes_first(backend):
    for number in range(6):
        await apart(backend.store, says("green tea").with_meta(ts=moment(number)))
    async for store in backend.readers():
        hits = await ask(store, "tea", kinds=MESSAGES)
        assert [hit.entry.id for hit in hits] == [12, 10, 8, 6, 4, 2]


async def test_an_entry_with_more_of_the_words_comes_first(store):
    await apart(
        *(store, "green tea with lemon today", "green apples and pears today"),
        *("a lemon on its own today", "tea for two, as always"),
    )
    assert (await found(store, "green tea lemon"))[0] == "green tea with lemon today"
    assert (await found(store, "tea lemon"))[0] == "green tea with lemon today"


async def test_a_rare_word_counts_more_than_a_common_one(store):
    await apart(store, "the samovar is hot", *(f"cup of tea {word}" for word in invented(20)))
    assert (await found(store, "tea samovar"))[0] == "the samovar is hot"


@pytest.mark.parametrize("limit", [1, 2, 10, 29, 30, 31, MAX_HITS])
async def test_there_are_at_most_as_many_hits_as_were_asked_for(store, limit):
    await apart(store, *["tea"] * 30)
    for text in ("tea", "", '"tea"'):
        hits = await ask(store, text, kinds=MESSAGES, limit=limit)
        assert len(hits) == min(limit, 30)
        assert len({hit.entry.id for hit in hits}) == len(hits)


async def test_filters_come_before_the_limit(store):
    """What the filters leave out takes nobody's place."""
    await apart(store, says("green tea", sender={"id": "7"}, problem="p1"))
    await apart(store, *(says("tea tea", sender={"id": "8"}) for _ in range(300)))
    assert await places(store, kinds=MESSAGES, senders=frozenset({"7"}), limit=1) == {2}
    assert await places(store, kinds=MESSAGES, last=2, limit=1) == {2}
    assert await places(store, problem="p1", limit=1) == {2}
    assert await places(store, "", problem="p1", limit=1) == {2}
    assert await places(store, "", kinds=MESSAGES, senders=frozenset({"7"}), limit=1) == {2}


async def test_what_stands_beside_the_word_says_that_it_has_not_got_it(store):
    words = invented(20)
    await talk(store, *words)
    for word in words:
        direct = [hit for hit in await ask(store, word, limit=20) if hit.direct]
        assert said(direct) == [word]
    assert all(hit.direct for hit in await ask(store, kinds=MESSAGES))


# Neighbours.


async def test_a_hit_comes_with_the_messages_around_it_in_their_order(backend):
    await talk(backend.store, "a", "b", "c", "xylophone", "d", "e")
    async for store in backend.readers():
        for count, before, after in (
            *((0, "", ""), (1, "c", "d"), (2, "bc", "de")),
            *((3, "abc", "de"), (MAX_NEIGHBOURS, "abc", "de")),
        ):
            hit = (await ask(store, "xylophone", neighbours=count))[0]
            assert said([hit]) == ["xylophone"]
            assert [one.payload["content"] for one in hit.before] == list(before)
            assert [one.payload["content"] for one in hit.after] == list(after)


async def test_neighbours_are_of_the_same_tape_and_still_on_it(backend):
    await talk(backend.store, "sealed")
    await backend.store.archive(TAPE)
    await talk(backend.store, "dropped")
    await backend.store.reset(TAPE)
    await talk(backend.store, "before", tape="telegram:41")
    await talk(backend.store, "xylophone")
    await talk(backend.store, "after", tape="telegram:43")
    async for store in backend.readers():
        [hit] = await ask(store, "xylophone", tapes=(TAPE,), kinds=MESSAGES, neighbours=5, limit=1)
        assert (hit.before, hit.after) == ((), ())


async def test_evidence_names_entries_that_are_there(backend):
    for tape in (TAPE, "other"):
        await talk(backend.store, "a", "tea", "b", tape=tape)
        await backend.store.archive(tape)
        await talk(backend.store, "tea", tape=tape)
    async for store in backend.readers():
        hits = await ask(store, "tea", neighbours=2)
        assert {hit.tape for hit in hits} == {TAPE, "other"}
        for hit in hits:
            assert hit.evidence[0] == (hit.tape, hit.entry.id)
            around = (hit.entry, *hit.before, *hit.after)
            for (tape, entry_id), entry in zip(hit.evidence, around, strict=True):
                assert await store.read(tape, entry_id, entry_id) == [entry]


# What nobody asked for.

ADA = {"id": "7", "name": "Ada"}


async def told(store: TapeStore, text: str, *, quick: bool = True, **filters: bool) -> list[str]:
    """Return the texts with the word tea that a search finds; messages beside them are hits, too."""
    query = SearchQuery(text, tapes=(TAPE,), quick=quick, **filters)
    texts = [str(hit.entry.payload["content"]) for hit in await store.search(query)]
    return [text for text in texts if "tea" in text]


async def test_a_quick_search_finds_nothing_if_many_messages_have_all_of_its_words(store):
    await store.create_tape(TAPE)
    many = [
        says(f"tea again {n}", sender=ADA, ts=moment(n), sent=moment(n))
        for n in range(SHARED_BY_MANY)
    ]
    await store.append_many(TAPE, [*many[2:], says("tea with saffron", sender=ADA, ts=moment(0))])
    assert await told(store, "Which tea?")
    await store.append_many(TAPE, many[:2])
    assert await told(store, "Which tea?") == []
    assert await told(store, "Which tea?", quick=False)
    assert (await told(store, "Which tea had saffron?"))[0] == "tea with saffron"


async def test_a_rare_word_with_a_common_one_is_found_behind_all_that_is_newer(store):
    await apart(
        *(store, "tea from the samovar", "a samovar of brass"),
        *(f"cup of tea {number}" for number in range(700)),
    )
    for quick in (True, False):
        assert (await told(store, "samovar tea", quick=quick))[0] == "tea from the samovar"
    assert (await found(store, "tea", last=2, limit=1)) == ["tea from the samovar"]


async def test_messages_beside_each_other_stay_so_whatever_a_turn_did_between(store):
    """Calls, results and long attachments lie between, and what a boundary cuts is not beside."""
    await store.create_tape(TAPE)
    between = [tool_result("c", "shop.buy", f"crate {number}") for number in range(600)]
    spoken = [says("where is the xylophone", sender=ADA), *between[:200], says("in the attic")]
    await store.append_many(TAPE, [*spoken, *between[200:], anchor("chapter"), says("good night")])
    for _ in range(2):
        texts = [hit.entry.payload["content"] for hit in await ask(store, "xylophone", limit=5)]
        assert texts == ["where is the xylophone", "in the attic"]
        [hit] = await ask(store, '"the attic"', neighbours=2)
        assert [one.payload["content"] for one in hit.before] == ["where is the xylophone"]
        assert [one.payload["content"] for one in hit.after] == ["good night"]
        await store.erase(TAPE, [replace(between[100], id=102)])


async def test_the_assistants_messages_are_left_out_on_demand(store):
    await store.create_tape(TAPE)
    await store.append_many(
        TAPE,
        [
            says("I like tea", sender=ADA, ts=moment(0)),
            message("assistant", "Green tea is good", ts=moment(1)),
        ],
    )
    assert await told(store, "tea", quick=False, without_assistant=True) == ["I like tea"]
    assert len(await told(store, "tea", quick=False)) == 2
