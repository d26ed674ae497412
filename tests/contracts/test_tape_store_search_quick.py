"""What every store promises of a search that nobody asked for."""

from __future__ import annotations

from searching import moment
from tape_talk import TAPE, says

from bot.tape.entries import message
from bot.tape.index.ranking import SHARED_BY_MANY
from bot.tape.search import SearchQuery
from bot.tape.store import TapeStore

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
