"""Shared reference: versions, citations, roll-backs, and bounds, on the tape of a scope."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.records.compartment_text import render_references
from bot.memory.records.tombstones import tombstone
from bot.memory.session.bus.shared_reference import (
    MAX_REFERENCES,
    SharedReferenceStore,
    readable_references,
)
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.testing.manual_clock import ManualClock

HERE = "telegram:1#12"


def reference_on(store, kind="person", clock=None) -> SharedReferenceStore:
    clock = clock or ManualClock()
    name = {"person": "person:fake:7", "workspace": "workspace:shared"}[kind]
    return SharedReferenceStore(ScopeMemory(TapeService(store, name), kind, clock), clock)


@pytest.fixture
def shared() -> SharedReferenceStore:
    return reference_on(InMemoryTapeStore())


async def test_a_citation_says_version_day_who_and_where_but_not_whose_chat_to_everybody(shared):
    await shared.set("city", "Rome", HERE)
    assert await shared.cite("city") == "[city v1, set 2026-02-10 by you, telegram:1#12]"
    await shared.set("city", "Oslo", HERE, by="assistant")
    assert await shared.cite("city") == "[city v2, set 2026-02-10 by the assistant, telegram:1#12]"
    await shared.rollback("city", 1)
    assert await shared.cite("city") == "[city v3, rolled back 2026-02-10, telegram:1#12]"
    everybodys = reference_on(InMemoryTapeStore(), "workspace")
    await everybodys.set("city", "Rome", HERE)
    assert await everybodys.cite("city") == "[city v1, set 2026-02-10 by an owner]"


def deep(levels: int) -> list:
    value: list = ["x"]
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [("", "x", "key"), ("x" * 65, "x", "key"), ("a\nb", "x", "key"), ("/set", "x", "key"),
     ("a", "x" * 3_999, "4000 bytes"), ("a", "ä" * 2_000, "4000 bytes"), ("a", {1, 2}, "JSON"),
     ("a", float("nan"), "JSON"), ("a", deep(100_000), "levels"), ("a", None, "take one away"),
     ("priorities", "thesis", "list of texts"), ("north_stars", ["family", " "], "list of texts")],
)  # fmt: skip
async def test_what_is_beyond_the_bounds_is_refused_with_the_reason(shared, key, value, why):
    with pytest.raises(MemoryRefused, match=why):
        await shared.set(key, value, HERE)
    assert await shared.keys() == []


async def test_there_are_so_many_keys_and_no_more_until_one_is_taken_away(shared):
    for number in range(MAX_REFERENCES):
        await shared.set(f"k{number}", number, HERE)
    with pytest.raises(MemoryRefused, match="200 shared values already"):
        await shared.set("one more", 1, HERE)
    await shared.remove("k1", "")
    await shared.set("one more", 1, HERE)
    with pytest.raises(MemoryRefused, match="200 shared values already"):
        await shared.rollback("k1", 1)


async def test_a_secret_is_kept_only_where_a_person_asks(shared):
    for key, value in (
        ("wifi", {"password": ["my password is hunter2x"]}),
        ("password", "is hunter2x"),
    ):
        with pytest.raises(MemoryRefused, match="a password"):
            await shared.set(key, value, HERE, by="assistant")
    assert await shared.set("wifi", "my password is hunter2x", HERE) == 1


async def test_a_version_whose_words_were_erased_is_gone_and_no_way_back_to_it(shared):
    for city in ("Rome", "Oslo"):
        await shared.set("city", city, HERE)
    tape = shared.scope.tape
    [first, _] = [one for one in await tape.read_entries() if one.name == "memory.bus"]
    await tape.store.erase(tape.name, [tombstone(first)])
    assert await shared.get("city", 1) is None
    assert not await shared.rollback("city", 1)


KEYS = st.sampled_from(("a", "b", "priorities"))
OPS = st.sampled_from(("set", "rollback", "remove", "again"))


@given(steps=st.lists(st.tuples(OPS, KEYS, st.integers(1, 6)), max_size=80))
@settings(max_examples=examples(60))
async def test_after_any_changes_the_reopened_tape_says_the_same_and_every_version_stands(steps):
    store, clock = InMemoryTapeStore(), ManualClock()
    shared = reference_on(store, clock=clock)
    expected: dict[str, list] = {key: [] for key in ("a", "b", "priorities")}
    cause = key_of_cause = ""
    for number, (op, key, version) in enumerate(steps):
        clock.advance(60)
        past = expected[key]
        if op == "set":
            cause, key_of_cause = f"c{number}", key
            past.append(["ä" * 1_997] if version == 1 else [f"x{number}"])
            assert await shared.set(key, past[-1], HERE, cause=cause) == len(past)
        elif op == "again" and cause:
            before = await shared.scope.tape.version()
            await shared.set(key_of_cause, ["never"], HERE, cause=cause)
            assert await shared.scope.tape.version() == before
        elif op == "remove":
            there = bool(past) and past[-1] is not None
            assert await shared.remove(key, "") is there
            past += [None] if there else []
        elif op == "rollback":
            good = version < len(past) and past[version - 1] is not None
            assert await shared.rollback(key, version) is good
            past += [past[version - 1]] if good else []
    fresh = reference_on(store, clock=clock)
    await fresh.scope.open()
    assert fresh.scope.compartments == shared.scope.compartments
    for holder in (shared, fresh):
        for key, past in expected.items():
            assert await holder.list_versions(key) == list(range(1, len(past) + 1))
            for version, value in enumerate(past, 1):
                assert (await holder.get(key, version)).value == value
            current = await holder.get(key)
            assert (current.value if current else None) == (past[-1] if past else None)


async def test_a_session_reads_its_own_value_before_the_workspaces_goals_first_and_what_fits():
    store, clock = InMemoryTapeStore(), ManualClock()
    own, everybodys = reference_on(store, clock=clock), reference_on(store, "workspace", clock)
    await everybodys.set("city", "Rome", "telegram:99#1")
    await everybodys.set("north_stars", ["family"], "telegram:99#2")
    await own.set("city", "Oslo", HERE)
    for number in range(30):
        clock.advance(60)
        await own.set(f"k{number}", f"{number} " * 50, HERE)
    await own.set("huge", "x" * 3_000, HERE)
    read = readable_references(own.scope.compartments, everybodys.scope.compartments)
    assert {one.key: one.value for one in read}["city"] == "Oslo"
    shown = render_references(read)
    assert len(shown.encode()) <= 1_500
    assert [word in shown for word in ("family", "k29:", "k0:", "xxx", "telegram:99")] == [
        *(True, True, False, False, False)
    ]
