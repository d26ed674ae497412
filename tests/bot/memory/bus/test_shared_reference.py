"""Shared reference: versions, citations, roll-backs, and bounds, on the tape of a scope."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.core.errors import MemoryRefused
from bot.memory.erasure.scrubber import Scrubber
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.records.compartment_records import SharedReference
from bot.memory.records.compartments import Compartments
from bot.memory.records.tombstones import tombstone
from bot.memory.session.bus.shared_reference import (
    MAX_REFERENCES,
    SharedReferenceStore,
    readable_references,
    render_prompt_references,
)
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import event
from bot.tape.index.documents import documents_of
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
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


async def test_a_value_has_versions_and_each_is_read_as_it_was(shared):
    assert await shared.get("city") is None
    assert await shared.set("city", "Rome", HERE) == 1
    assert await shared.set("city", {"name": "Oslo", "since": 2026}, HERE) == 2
    assert (await shared.get("city")).value == {"name": "Oslo", "since": 2026}
    assert (await shared.get("city", 1)).value == "Rome"
    assert await shared.get("city", 3) is None
    assert await shared.list_versions("city") == [1, 2]
    assert await shared.list_versions("other") == []


async def test_the_same_cause_makes_one_version_and_answers_with_it(shared):
    first = await shared.set("city", "Rome", HERE, cause="command:a:1")
    await shared.set("city", "Oslo", HERE, cause="command:a:2")
    assert await shared.set("city", "Paris", HERE, cause="command:a:1") == first == 1
    assert await shared.rollback("city", 1, cause="r")
    assert await shared.rollback("city", 1, cause="r")
    assert await shared.remove("city", "gone")
    assert await shared.remove("city", "gone")
    assert await shared.list_versions("city") == [1, 2, 3, 4]


async def test_a_roll_back_is_a_new_version_and_changes_no_old_one(shared):
    await shared.set("city", "Rome", HERE)
    await shared.set("city", "Oslo", "telegram:1#20", by="assistant")
    assert await shared.rollback("city", 1)
    now = await shared.get("city")
    assert (now.value, now.version, now.updated_by, now.source) == ("Rome", 3, "rollback", HERE)
    assert (await shared.get("city", 2)).value == "Oslo"
    assert not await shared.rollback("city", 9)
    assert not await shared.rollback("city", 3)
    assert not await shared.rollback("nothing", 1)
    assert await shared.list_versions("city") == [1, 2, 3]


async def test_what_is_taken_away_is_not_shown_and_can_be_brought_back(shared):
    await shared.set("city", "Rome", HERE)
    assert await shared.remove("city", "")
    assert await shared.get("city") is None
    assert await shared.keys() == []
    assert await shared.cite("city") == ""
    assert (await shared.get("city", 2)).value is None
    assert not await shared.remove("city", "")
    assert not await shared.rollback("city", 2)
    assert await shared.rollback("city", 1)
    assert (await shared.get("city")).value == "Rome"


async def test_a_citation_says_version_day_who_and_where(shared):
    await shared.set("city", "Rome", HERE)
    assert await shared.cite("city") == "[city v1, set 2026-02-10 by you, telegram:1#12]"
    await shared.set("city", "Oslo", HERE, by="assistant")
    assert await shared.cite("city") == "[city v2, set 2026-02-10 by the assistant, telegram:1#12]"
    await shared.rollback("city", 1)
    assert await shared.cite("city") == "[city v3, rolled back 2026-02-10, telegram:1#12]"


async def test_a_citation_of_the_workspace_does_not_tell_everybody_whose_chat_it_is_from():
    shared = reference_on(InMemoryTapeStore(), "workspace")
    await shared.set("city", "Rome", HERE)
    assert await shared.cite("city") == "[city v1, set 2026-02-10 by an owner]"


async def test_what_was_decided_is_recorded_with_the_version(shared):
    await shared.set("city", "Rome", HERE, cause="c", record={"decision": {"reason": "approved"}})
    [entry] = [one for one in await shared.scope.tape.read_entries() if one.name == "memory.bus"]
    assert entry.data["decision"] == {"reason": "approved"}
    assert (entry.data["key"], entry.data["by"]) == ("c", "person")


@pytest.mark.parametrize("key", ["", "x" * 65, "a\nb", "a\x00", "/set", " a", "a "])
async def test_a_key_of_another_form_is_refused(shared, key):
    with pytest.raises(MemoryRefused, match="key"):
        await shared.set(key, "Rome", HERE)


def deep(levels: int) -> list:
    value: list = ["x"]
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [("a", "x" * 3_999, "4000 bytes"), ("a", "ä" * 2_000, "4000 bytes"), ("a", {1, 2}, "JSON"),
     ("a", float("nan"), "JSON"), ("a", deep(17), "levels"), ("a", deep(100_000), "levels"),
     ("a", None, "take one away"), ("a", "", "take one away"), ("a", [], "take one away"),
     ("priorities", "thesis", "list of texts"), ("north_stars", ["family", 1], "list of texts"),
     ("north_stars", ["family", " "], "list of texts"), ("priorities", {"a": "b"}, "list of texts")],
)  # fmt: skip
async def test_a_value_beyond_the_bounds_is_refused_with_the_reason(shared, key, value, why):
    with pytest.raises(MemoryRefused, match=why):
        await shared.set(key, value, HERE)
    assert await shared.keys() == []


async def test_the_largest_value_is_kept_exactly(shared):
    for value in ("x" * 3_998, "ä" * 1_999, deep(14), {"é": [1, 2.5, None, True, 10**30]}):
        await shared.set("a", value, HERE)
        assert (await shared.get("a")).value == value


async def test_there_are_so_many_keys_and_no_more_until_one_is_taken_away(shared):
    for number in range(MAX_REFERENCES):
        await shared.set(f"k{number}", number, HERE)
    with pytest.raises(MemoryRefused, match="200 shared values already"):
        await shared.set("one more", 1, HERE)
    assert await shared.set("k0", "again", HERE) == 2
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


async def test_a_version_whose_words_were_erased_is_gone_and_no_way_back_to_it(tmp_path):
    store = FileTapeStore(tmp_path, sync=False)
    shared = reference_on(store)
    await shared.set("city", "Rome", HERE)
    await shared.set("city", "Oslo", HERE)
    [first, _] = [one for one in await shared.scope.tape.read_entries() if one.name == "memory.bus"]
    await store.erase(shared.scope.name, [tombstone(first)])
    assert await shared.get("city", 1) is None
    assert not await shared.rollback("city", 1)
    await store.close()


async def test_of_a_value_that_was_erased_in_part_the_rest_is_shown(tmp_path):
    store = FileTapeStore(tmp_path, sync=False)
    shared = reference_on(store)
    for value in ("Rome", ["Rome", "Oslo"], {"home": "Rome", "work": ["Oslo", "Rome"]}):
        await shared.set("city", value, HERE)
    written = [one for one in await shared.scope.tape.read_entries() if one.name == "memory.bus"]
    scrubber = Scrubber(TextMatcher({"rome"}))
    await store.erase(shared.scope.name, [scrubber.scrub_entry(one) for one in written])
    await shared.scope.reload()
    assert (await shared.get("city")).value == {"work": ["Oslo"]}
    assert (await shared.get("city", 2)).value == ["Oslo"]
    assert await shared.get("city", 1) is None
    assert "erased" not in render_prompt_references(
        readable_references(shared.scope.compartments, Compartments())
    )
    await store.close()


async def test_keys_come_with_the_goals_first(shared):
    for key in ("b", "priorities", "a", "north_stars"):
        await shared.set(key, ["x"], HERE)
    assert await shared.keys() == ["north_stars", "priorities", "a", "b"]


async def test_two_holders_of_a_scope_give_no_version_twice(tmp_path):
    store = FileTapeStore(tmp_path, sync=False)
    one, other = reference_on(store), reference_on(store)
    given = [await holder.set("k", n, HERE) for n in range(5) for holder in (one, other)]
    assert given == list(range(1, 11))
    assert await one.get("k") == await other.get("k")
    await store.close()


KEYS = ("a", "b", "priorities")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("set", "rollback", "remove", "again")),
        st.sampled_from(KEYS),
        st.integers(1, 6),
    ),
    max_size=80,
)


@given(steps=STEPS)
@settings(max_examples=examples(60))
def test_after_any_changes_the_reopened_tape_says_the_same_and_every_version_stands(steps):
    anyio.run(_live_and_reopen, steps)


async def _live_and_reopen(steps):
    store, clock = InMemoryTapeStore(), ManualClock()
    shared = reference_on(store, clock=clock)
    expected: dict[str, list] = {key: [] for key in KEYS}
    cause = ""
    for number, (op, key, version) in enumerate(steps):
        clock.advance(60)
        past = expected[key]
        if op == "set":
            cause = f"c{number}"
            past.append([f"x{number}"])
            assert await shared.set(key, past[-1], HERE, cause=cause) == len(past)
        elif op == "again" and cause in shared.scope.fold.decided_keys:
            before = await shared.scope.tape.version()
            await shared.set(key, ["never"], HERE, cause=cause)
            if await shared.scope.tape.version() != before:
                past.append(["never"])
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


def made(key, value, minute=0, **more) -> SharedReference:
    moment = datetime(2026, 2, 10, 9, minute, tzinfo=UTC)
    return SharedReference(key, value, 1, HERE, moment, moment, "person", **more)


async def test_a_session_reads_its_own_value_before_the_workspaces_and_not_where_that_is_from():
    store = InMemoryTapeStore()
    own, everybodys = reference_on(store), reference_on(store, "workspace")
    await everybodys.set("city", "Rome", "telegram:99#1")
    await everybodys.set("name", "Anna", "telegram:99#2")
    await own.set("city", "Oslo", HERE)
    read = readable_references(own.scope.compartments, everybodys.scope.compartments)
    assert [(one.key, one.value) for one in read] == [("city", "Oslo"), ("name", "Anna")]
    assert "telegram:99" not in render_prompt_references(read)
    await own.remove("city", "")
    read = readable_references(own.scope.compartments, everybodys.scope.compartments)
    assert [(one.key, one.value) for one in read] == [("city", "Rome"), ("name", "Anna")]


def test_where_not_all_fits_goals_are_shown_first_and_then_the_newest():
    refs = [made("north_stars", ["family"]), made("priorities", ["thesis"])]
    refs += [made(f"k{number}", f"{number} " * 50, number) for number in range(30)]
    shown = render_prompt_references(refs)
    assert len(shown.encode()) <= 1_500
    assert "family" in shown
    assert "thesis" in shown
    assert "k29:" in shown
    assert "k0:" not in shown
    assert "k1:" not in shown


def test_one_value_that_is_too_large_leaves_room_for_the_others():
    shown = render_prompt_references([made("huge", "x" * 3_000, 5), made("city", "Rome")])
    assert "city: Rome" in shown
    assert "xxx" not in shown


def test_what_the_bus_writes_down_and_the_prompts_copy_of_it_are_not_found_by_search():
    for name in ("memory.bus", "memory.reference"):
        assert (
            documents_of(event(name, {"content": "Rome", "references": [{"value": "Rome"}]})) == []
        )
