"""Children are sessions of their own: they begin at a boundary and remember what their parent does."""

from __future__ import annotations

import pytest
from forked_tape import CHILD, TAPE, ids, names, talk
from tape_files import says

from bot.core.errors import TapeExists, TapeNotFound
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold, session_mark_entry
from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.tape.entries import MEMORY_OPEN, MEMORY_SEAL, SESSION_FORK, event, message
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT

NOW = "2026-02-10T10:00:00.000+00:00"


async def test_a_child_begins_at_the_last_boundary_with_a_tape_of_its_own(tape):
    await tape.handoff("problem/7", {"summary": "the sink leaks"})
    await tape.append(says("c"))
    child = await tape.fork_session(CHILD, intention="find a plumber")
    assert child.name == CHILD
    found = await child.read_entries()
    assert names(found) == [HEADER_EVENT, "problem/7", "c", SESSION_FORK]
    assert ids(found) == [4, 5, 6, 7]
    assert found[1:3] == await tape.read_entries(5)
    assert found[0].data["parent"] == {"tape": TAPE, "first": 5, "last": 6}


async def test_a_childs_boundary_says_what_it_is_for_and_where_it_is_from(tape):
    child = await tape.fork_session(CHILD, intention="find a plumber")
    [boundary] = await child.read_entries(5)
    assert boundary.is_boundary
    assert boundary.data == {
        "summary": "find a plumber",
        "next_steps": ["find a plumber"],
        "source": [2, 4],
        "owner": "human",
        "reason": "fork",
        "parent": TAPE,
        "keep_from": 2,
    }
    assert (await child.info()).parent == TAPE
    assert (await tape.info()).parent is None


async def test_a_child_can_begin_at_a_named_anchor(tape):
    await tape.store.create_anchor(TAPE, "tea", 4)
    child = await tape.fork_session(CHILD, "tea")
    assert await talk(child) == ["b"]
    [head, *_] = await child.read_entries()
    assert head.data["parent"] == {"tape": TAPE, "first": 4, "last": 5}


async def test_a_child_of_nowhere_and_a_child_of_a_taken_name_are_refused(tape):
    await tape.store.create_tape("taken")
    before = await tape.read_entries()
    with pytest.raises(TapeNotFound, match="nowhere"):
        await tape.fork_session(CHILD, "nowhere")
    with pytest.raises(TapeExists, match="taken"):
        await tape.fork_session("taken")
    with pytest.raises(TapeExists, match=TAPE):
        await tape.fork_session(TAPE)
    assert await tape.store.list_tapes() == sorted(["taken", TAPE])
    assert await tape.read_entries() == before


async def test_parent_and_child_go_their_own_ways(tape):
    child = await tape.fork_session(CHILD)
    await child.append(says("the child's"))
    await tape.append(says("the parent's"))
    assert await talk(tape) == ["a", "b", "the parent's"]
    assert await talk(child) == ["a", "b", "the child's"]
    await tape.reset()
    assert await talk(child) == ["a", "b", "the child's"]


async def test_a_child_of_a_child_names_the_child(tape):
    child = await tape.fork_session(CHILD)
    await child.append(says("c"))
    grandchild = await child.fork_session("grandchild")
    assert (await grandchild.info()).parent == CHILD
    assert await view(grandchild) == ["c"]


async def fold_of(tape: TapeService) -> SessionFold:
    return await load_fold(tape, max_messages=50, max_tokens=100_000)


async def view(tape: TapeService) -> list[str]:
    entries = (await fold_of(tape)).window.entries
    return names([entry for entry in entries if entry.kind == "message"])


def remembered() -> MemorySnapshot:
    return (
        MemorySnapshot()
        .with_long_term("Ada likes green tea.")
        .with_daily("2026-02-10", "Bought a samovar.")
    )


@pytest.mark.parametrize("after_boundary", [False, True])
@pytest.mark.parametrize("archived", [False, True])
async def test_a_child_remembers_what_its_parent_remembers(tape, after_boundary, archived):
    if not after_boundary:
        await tape.append_many(zone_entries(remembered(), NOW))
    await tape.handoff("problem/7", {"summary": "s"})
    if after_boundary:
        await tape.append_many(zone_entries(remembered(), NOW))
    if archived:
        await tape.archive()
    await tape.append(says("c"))
    child = await tape.fork_session(CHILD, intention="find a plumber")
    fold = await fold_of(child)
    assert fold.zone.snapshot == (await fold_of(tape)).zone.snapshot == remembered()
    assert fold.prompt_snapshot == remembered()
    assert await view(child) == ["c"]
    assert fold.boundary is not None
    assert fold.boundary.name == SESSION_FORK


async def test_a_child_has_its_parents_newest_memory_and_none_before_it(tape):
    old = MemorySnapshot().with_long_term("Ada likes coffee.")
    for snapshot in (
        old,
        old.without_own_memory(),
        old.without_own_memory().with_long_term("Ada likes tea."),
    ):
        await tape.append_many(zone_entries(snapshot, NOW))
    await tape.handoff("problem/7")
    child = await tape.fork_session(CHILD)
    assert (await fold_of(child)).zone.snapshot.long_term == "Ada likes tea."
    zones = [e.name for e in await child.read_entries() if e.name in (MEMORY_OPEN, MEMORY_SEAL)]
    assert zones == [MEMORY_OPEN, MEMORY_SEAL]


async def test_a_child_of_a_parent_that_remembers_nothing_remembers_nothing(tape):
    child = await tape.fork_session(CHILD)
    assert (await fold_of(child)).zone.snapshot == MemorySnapshot()
    assert await view(child) == ["a", "b"]


async def test_a_childs_memory_versions_go_on_from_its_parents(tape):
    await tape.append_many(zone_entries(remembered(), NOW))
    child = await tape.fork_session(CHILD)
    fold = await fold_of(child)
    await child.append_many(zone_entries(fold.zone.snapshot.with_long_term("Bo"), NOW))
    assert (await fold_of(child)).zone.snapshot.long_term == "Bo"
    assert (await fold_of(tape)).zone.snapshot == remembered()


async def test_pointers_of_the_parent_do_not_mislead_a_child(tape):
    """They name entries that were not copied; folded whole, the child says the same."""
    await tape.append_many(zone_entries(remembered(), NOW))
    await tape.append(session_mark_entry(await fold_of(tape)))
    await tape.handoff("problem/7", {"summary": "s"})
    await tape.append(says("c"))
    await tape.append(session_mark_entry(await fold_of(tape)))
    await tape.append(says("d"))
    child = await tape.fork_session(CHILD)
    from_pointers = await fold_of(child)
    whole = SessionFold(type(from_pointers.window)(50, 100_000))
    for entry in await child.read_entries():
        whole.apply(entry)
    assert from_pointers.pointers() == whole.pointers()
    assert from_pointers.window.entries == whole.window.entries
    assert await view(child) == ["c", "d"]
    assert from_pointers.prompt_snapshot == remembered()


async def test_a_child_owes_nobody_what_its_parent_owes(tape):
    """Neither the turn that runs in the parent nor an answer still to be delivered is the child's."""
    await tape.append_many(
        [message("user", "c", inbound="i1"), event("turn.start", {"turn": "t1", "inbound": ["i1"]})]
    )
    assert (await fold_of(tape)).turns.open_turn is not None
    child = await tape.fork_session(CHILD)
    turns = (await fold_of(child)).turns
    assert turns.open_turn is None
    assert turns.unanswered == {}
    assert turns.undelivered == {}
