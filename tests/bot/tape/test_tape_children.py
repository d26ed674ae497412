"""Child sessions that are really served: they owe nothing of their parent's, and are made once."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tape_files import opened, says
from waiting import until

from bot.core.errors import TapeExists
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold, session_mark_entry
from bot.tape.entries import MEMORY_CONSOLIDATED, SESSION_FORK, anchor, event, message
from bot.tape.service import TapeService
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


async def load(tape: TapeService, most: int = 200) -> SessionFold:
    return await load_fold(tape, max_messages=most, max_tokens=100_000)


async def folded_whole(tape: TapeService, most: int = 200) -> SessionFold:
    fold = SessionFold(WindowFold(most, 100_000))
    for entry in await tape.read_entries():
        fold.apply(entry)
    return fold


async def test_what_waits_in_the_parent_counts_for_nothing_in_a_child(tmp_path):
    async with opened(tmp_path) as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        await tape.append_many([says("a"), message("user", "b", inbound="i1", queued=True)])
        fold = await load(await tape.fork_session(CHILD))
        only = SessionFold(WindowFold(200, 100_000))
        only.apply(says("a"))
        assert fold.window.waiting_messages() == []
        assert fold.window.position().unconsolidated == fold.window.messages == 1
        assert fold.window.tokens == fold.window.unconsolidated_tokens == only.window.tokens


async def test_a_child_of_more_than_a_view_holds_is_the_same_after_it_is_opened_again(tmp_path):
    async with opened(tmp_path) as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        for number in range(30):
            await tape.append_many([says(str(number)), event("turn.start", {"turn": str(number)})])
        child = await tape.fork_session(CHILD)
        whole = await folded_whole(child, most=10)
        assert len(whole.window.conversation()) <= 10
        await child.append(session_mark_entry(whole))
        assert (await load(child, most=10)).window.conversation() == whole.window.conversation()


async def test_what_was_left_behind_does_not_wait_again_after_a_later_phase(tmp_path):
    """Far apart, only what is in view is read again; what stands close to it is read with it."""
    async with opened(tmp_path) as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        begun = await tape.append(says("a"))
        await tape.append(message("user", "asked of the parent", inbound="i1", queued=True))
        await tape.append(message("user", "hm", inbound="i2", queued=True, overheard=True))
        await tape.append(says("b"))
        await tape.append_many([event("delivery", {"turn": "none"})] * 200)
        child = await tape.fork_session(CHILD)
        await child.append_many([event("delivery", {"turn": "none"})] * 200)
        await child.append(anchor("auto_handoff/full", {"keep_from": begun.id}))
        whole = await folded_whole(child)
        await child.append(session_mark_entry(whole))
        restored = await load(child)
        assert restored.window.conversation() == whole.window.conversation() != []
        assert restored.window.waiting_messages() == whole.window.waiting_messages() == []
        assert restored.window.overheard_messages() == whole.window.overheard_messages() == []


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


async def test_of_many_children_of_one_name_one_is_made(tmp_path: Path):
    made: list[str] = []

    async def try_it(tape: TapeService) -> None:
        try:
            await tape.fork_session(CHILD)
        except TapeExists:
            made.append("refused")
        else:
            made.append("made")

    async with opened(tmp_path) as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(try_it, tape)
        assert sorted(made) == ["made", *["refused"] * 7]
        assert [one.name for one in await store.list_anchors(CHILD)].count(SESSION_FORK) == 1


async def test_a_child_names_as_its_source_what_was_copied(tmp_path):
    async with opened(tmp_path) as store:
        tape = TapeService(store, TAPE)
        await tape.ensure_bootstrap_anchor()
        sources = []

        async def write() -> None:
            for number in range(60):
                await tape.append(says(str(number)))

        async def fork() -> None:
            for number in range(10):
                child = await tape.fork_session(f"child {number}")
                head, *_, boundary = await child.read_entries()
                parent = head.data["parent"]
                sources.append((boundary.data["source"], [parent["first"], parent["last"]]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            tasks.start_soon(fork)
        assert all(said == copied for said, copied in sources)
