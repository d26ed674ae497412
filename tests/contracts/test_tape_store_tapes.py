"""What every tape store promises of making, naming, listing and closing tapes, and of tapes that are not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tape_talk import TAPE, back, fill, ids, says, texts

from bot.core.errors import TapeNotFound
from bot.tape.store import HEADER_EVENT, TapeStore

# Making tapes.


async def test_a_new_tape_begins_with_a_header_that_names_its_session(store):
    assert await store.create_tape(TAPE, "Kitchen") == TAPE
    [head] = await store.read(TAPE)
    assert (head.id, head.name) == (1, HEADER_EVENT)
    assert head.data == {"session": TAPE, "format": 1, "title": "Kitchen"}
    assert await store.version(TAPE) == 1


async def test_replacing_a_tape_drops_its_entries_and_ids_go_on(store):
    await store.create_tape(TAPE, "Kitchen")
    await store.append_many(TAPE, [says("a"), says("b")])
    await store.create_tape(TAPE, replace_if_exists=True)
    assert ids(await store.read(TAPE)) == [4]
    assert await store.get_title(TAPE) == "Kitchen"
    await store.create_tape(TAPE, "Garden", replace_if_exists=True)
    assert await store.get_title(TAPE) == "Garden"


async def test_tapes_are_listed_once_each_and_sorted(backend):
    names = ["telegram:7", "discord:1:topic", "console:a/../b", "telegram:𝟟", "", "x" * 300]
    for name in names:
        await backend.store.create_tape(name)
    await backend.store.archive("telegram:7")
    assert await backend.store.list_tapes() == sorted(names)
    assert await (await backend.reopen()).list_tapes() == sorted(names)


# What is not there.


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.get_title("nobody"),
        lambda store: store.version("nobody"),
        lambda store: store.read("nobody"),
        lambda store: store.read("nobody", 5, 1),
        lambda store: back(store, "nobody"),
        lambda store: back(store, "nobody", 1),
        lambda store: store.append("nobody", says("x")),
        lambda store: store.append_many("nobody", []),
        lambda store: store.append_many("nobody", [says("x")], expect=0),
        lambda store: store.archive("nobody"),
        lambda store: store.reset("nobody"),
        lambda store: store.segments("nobody"),
    ],
)
async def test_a_tape_that_is_not_there_is_refused_and_not_made(
    store: TapeStore, ask: Callable[[TapeStore], Awaitable[Any]]
):
    await store.create_tape(TAPE)
    with pytest.raises(TapeNotFound, match="nobody"):
        await ask(store)
    assert await store.list_tapes() == [TAPE]


# State.


async def test_closing_twice_is_closing_once(backend):
    await fill(backend.store, 1)
    await backend.store.close()
    await backend.store.close()
    assert texts(await (await backend.reopen()).read(TAPE)) == ["0"]
