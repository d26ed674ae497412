"""Children are sessions of their own: they begin at a boundary, know what their parent does, and owe nothing of its."""

from __future__ import annotations

import pytest
from forked_tape import ids, names, talk
from tape_files import opened, says
from waiting import until

from bot.core.errors import TapeExists, TapeNotFound
from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.tape.entries import MEMORY_CONSOLIDATED, SESSION_FORK
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.folder_verification import verify_folder
from bot.testing import scripted_model
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel

TAPE = "fake:1"
CHILD = "fake:2"


async def test_a_served_child_answers_its_own_messages_alone(tmp_path):
    held = PausedStep(scripted_model.text_reply("late"))
    model = ScriptedModel([held, *map(scripted_model.text_reply, ("own", "own again", "queued"))])
    async with session_host(tmp_path, model) as host:
        asked = await host.channel.send("work on this")
        await held.entered.wait()
        queued = await host.channel.send("and on that")

        async def waits() -> bool:
            return any(entry.meta.get("queued") for entry in await host.tape())

        await until(waits)
        await TapeService(host.store, TAPE).fork_session(CHILD, intention="aside")
        assert await host.channel.ask("hello", chat="2") == "own"
        assert await host.channel.ask("again", chat="2") == "own again"
        # What only the parent was asked leaves nothing in the child that were to be consolidated.
        assert await host.events(MEMORY_CONSOLIDATED, CHILD) == []
        held.release.set()
        assert await host.channel.wait_for_answer(asked) == "late"
        assert await host.channel.wait_for_answer(queued) == "queued"
        ends = [set(e.data["inbound"]) for e in await host.events("turn.end", CHILD)]
        assert not {asked.id, queued.id} & set().union(*ends)
    assert verify_folder(tmp_path / "tapes", "").problems == []


@pytest.mark.parametrize("archived", [False, True])
async def test_a_child_knows_what_its_parent_had_in_memory_and_was_told_at_the_boundary(
    tmp_path, archived
):
    model = ScriptedModel([scripted_model.text_reply("own")])
    async with session_host(tmp_path, model) as host:
        tape = TapeService(host.store, TAPE)
        await tape.ensure_bootstrap_anchor()
        for said in ("Ada likes coffee.", "Ada likes tea."):
            await tape.append_many(
                zone_entries(MemorySnapshot().with_long_term(said), "2026-02-10T10:00:00.000+00:00")
            )
        await tape.handoff("problem/7", {"summary": "the sink leaks"})
        if archived:
            await tape.archive()
        await tape.append(says("seen by both"))
        await tape.fork_session(CHILD, intention="find a plumber")
        assert await host.channel.ask("hello", chat="2") == "own"
        asked = str(model.requests_for()[-1].messages)
        for known in ("Ada likes tea.", "seen by both", "find a plumber"):
            assert known in asked
        assert "coffee" not in asked


async def test_a_child_begins_at_the_last_boundary_and_says_where_it_is_from(tmp_path):
    async with opened(tmp_path) as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        await tape.append(says("a"))
        await tape.handoff("problem/7", {"summary": "the sink leaks"})
        await tape.append(says("c"))
        child = await tape.fork_session(CHILD, intention="find a plumber")
        assert (child.name, (await child.info()).parent) == (CHILD, TAPE)
        found = await child.read_entries()
        assert names(found) == [HEADER_EVENT, "problem/7", "c", SESSION_FORK]
        assert ids(found) == [3, 4, 5, 6]
        assert found[1:3] == await tape.read_entries(4)
        assert found[0].data["parent"] == {"tape": TAPE, "first": 4, "last": 5}
        assert found[-1].is_boundary
        assert found[-1].data == {
            "summary": "find a plumber",
            "next_steps": ["find a plumber"],
            "source": [4, 5],
            "owner": "human",
            "reason": "fork",
            "parent": TAPE,
            "keep_from": 4,
        }
        await child.append(says("the child's"))
        await tape.append(says("the parent's"))
        assert await talk(child) == ["c", "the child's"]
        assert await talk(tape) == ["a", "c", "the parent's"]
        with pytest.raises(TapeNotFound, match="nowhere"):
            await tape.fork_session("another", "nowhere")
        assert await store.list_tapes() == [TAPE, CHILD]


async def test_a_child_cut_short_by_a_kill_is_finished_when_it_is_asked_for_again(tmp_path):
    async with opened(tmp_path) as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        await tape.append(says("a"))
        # Killed before its second append.
        await store.fork(TAPE, CHILD, from_entry=2)
        child = await tape.fork_session(CHILD, intention="go on")
        assert [one.name for one in await store.list_anchors(CHILD)][-1] == SESSION_FORK
        before = await child.read_entries()
        with pytest.raises(TapeExists, match=CHILD):
            await tape.fork_session(CHILD, intention="go on")
        # A copy of something else, and one that has gone its own way, are not taken for it.
        await store.fork(TAPE, "other", from_entry=3)
        await store.fork(TAPE, "own", from_entry=2)
        await store.append("own", says("own"))
        for name in ("other", "own"):
            with pytest.raises(TapeExists, match=name):
                await tape.fork_session(name)
        assert await child.read_entries() == before
