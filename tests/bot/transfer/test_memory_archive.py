"""Archives of memory: real zips, opened again, equal to what the tapes say; whole or not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from datetime import UTC as ZULU
from datetime import datetime
from pathlib import Path

import anyio
import pytest
from archived_memory import ADA, HOME, NAMES, NOON, live, unzipped
from exchange_files import UTC, read, settings, tapes

from bot.cli.imports import import_jsonl
from bot.cli.memory_export import export_memory
from bot.core.errors import TapeNotFound, TapeWriteError
from bot.memory.session.linking.scope_registry import (
    scope_entry,
)
from bot.memory.session.state.zone_snapshot import (
    DailyNote,
    MemorySnapshot,
    zone_entries,
)
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry, message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.transfer.memory_archive import MemoryArchives, archive_name, write_archive
from bot.transfer.session_memory import read_session_memory


async def archived(home: Path, path: Path, session: str = ADA) -> dict[str, str]:
    async with tapes(home, read_only=True) as store:
        await write_archive(store, session, path, UTC, NOON)
    return unzipped(path)


@pytest.fixture
async def filled(tmp_path) -> Path:
    async with tapes(tmp_path) as store:
        await live(store)
        await TapeService(store, "telegram:13").ensure_bootstrap_anchor()
        await TapeService(store, "telegram:13").append_event("x", {"secret": "of somebody else"})
    return tmp_path


async def test_an_archive_holds_what_is_believed_and_was_said_and_nothing_of_others(filled):
    found = await archived(filled, filled / "a.zip")
    assert list(found) == NAMES
    assert found["MEMORY.md"] == (
        "# Home\n\n- The user lives in Bergen.\n\n# Work\n\n- The user works at Statkraft.\n"
    )
    assert found["HISTORY.md"] == (
        "[2026-03-05 09:00] Ada told that she lives in Oslo.\nAnd that it is cold.\n\n"
        "[2026-03-06 10:00] A cat was mentioned.\n\n"
    )
    assert found["notes/2026-03-05.md"] == "It rained.\n"
    whole = "".join(found.values())
    assert "Harbour Street" not in whole
    assert "somebody else" not in whole
    assert "telegram:42" in found["README.txt"]
    assert "2026-03-06 12:00" in found["README.txt"]
    assert "> And I have a cat" in found["conversation.md"]


async def test_facts_and_decisions_are_those_of_the_tape_with_their_chains(filled):
    found = await archived(filled, filled / "a.zip")
    async with tapes(filled, read_only=True) as store:
        known = (await read_session_memory(store, ADA)).facts
        decided = [one for one in await store.read(HOME) if one.name == "memory.facts"]
    facts = json.loads(found["facts.json"])
    assert (facts["session"], facts["home"]) == (ADA, HOME)
    assert [{k: v for k, v in one.items() if k != "chain"} for one in facts["facts"]] == [
        json.loads(json.dumps(one.as_json())) for one in known.facts.values()
    ]
    assert [(one["id"], one["status"], one["chain"]) for one in facts["facts"]] == [
        (1, "superseded", [1]),
        (2, "active", [2]),
        (3, "active", [3, 1]),
    ]
    assert facts["facts"][0]["evidence"][0]["quote"] == "as I said"
    assert found["decisions.jsonl"].encode() == b"".join(encode_entries([one]) for one in decided)
    assert len(decided) == 2


async def test_the_conversation_of_an_archive_is_restored_to_the_same_tape(filled, tmp_path):
    found = await archived(filled, filled / "a.zip")
    lines = tmp_path / "conversation.jsonl"
    lines.write_text(found["conversation.jsonl"])
    again = tmp_path / "again"
    await anyio.to_thread.run_sync(import_jsonl, settings(again), lines)
    assert await read(again, ADA) == await read(filled, ADA)


async def test_a_session_without_anything_has_an_archive_all_the_same(tmp_path):
    async with tapes(tmp_path) as store:
        await TapeService(store, ADA).ensure_bootstrap_anchor()
        await TapeService(store, ADA).append(scope_entry(HOME))
    found = await archived(tmp_path, tmp_path / "a.zip")
    assert found["MEMORY.md"] == found["HISTORY.md"] == found["decisions.jsonl"] == ""
    assert json.loads(found["facts.json"])["facts"] == []
    with pytest.raises(TapeNotFound):
        await archived(tmp_path, tmp_path / "b.zip", "telegram:1")
    assert not list(tmp_path.glob("b.zip*"))


async def test_memory_from_before_there_were_facts_is_in_it(tmp_path):
    async with tapes(tmp_path) as store:
        tape = TapeService(store, ADA)
        await tape.ensure_bootstrap_anchor()
        await tape.append_many(zone_entries(MemorySnapshot(1, "## Old\n- I like tea."), "now"))
    assert (await archived(tmp_path, tmp_path / "a.zip"))["MEMORY.md"] == "## Old\n- I like tea.\n"


async def test_a_note_of_a_strange_day_and_a_clock_of_long_ago_do_no_harm(tmp_path):
    notes = (DailyNote("../../evil", "x"), DailyNote("/etc/cron", "y"))
    async with tapes(tmp_path) as store:
        tape = TapeService(store, ADA)
        await tape.ensure_bootstrap_anchor()
        await tape.append_many(zone_entries(MemorySnapshot(1, "", notes), "now"))
        await write_archive(store, ADA, tmp_path / "a.zip", UTC, datetime(1970, 1, 1, tzinfo=ZULU))
    found = unzipped(tmp_path / "a.zip")
    assert [name for name in found if "notes" in name] == ["notes/-evil.md", "notes/-etc-cron.md"]


async def test_erased_facts_have_left_no_line(filled):
    async with tapes(filled) as store:
        entries = [one for one in await store.read(HOME) if one.name == "memory.facts"]
        data = json.loads(json.dumps(entries[0].data).replace("The user works at Statkraft.", ""))
        payload = {"name": "memory.facts", "data": data}
        await store.erase(HOME, [TapeEntry(entries[0].id, "event", payload, entries[0].meta)])
    found = await archived(filled, filled / "a.zip")
    assert "Statkraft" not in "".join(found.values())
    assert [one["id"] for one in json.loads(found["facts.json"])["facts"]] == [1, 3]


# Files.


async def test_archives_are_their_owners_alone_and_no_two_share_a_name(filled):
    async with tapes(filled) as store:
        archives = MemoryArchives(store, filled / "exports", UTC)
        made = [await archives.write(ADA, key, NOON) for key in ("m1", "m2", "m1")]
    assert made[0].path == made[2].path != made[1].path
    assert made[0].path.name.startswith("memory-telegram-42-20260306-")
    assert [one.path.stat().st_mode & 0o777 for one in made] == [0o600] * 3
    assert (filled / "exports").stat().st_mode & 0o777 == 0o700
    assert made[0].size == made[0].path.stat().st_size
    counts = (made[0].facts, made[0].history, made[0].notes, made[0].messages)
    assert counts == (2, 2, 2, 3)
    names = {archive_name(one, "k", NOON) for one in ("a:b_c", "a:b:c", "a:b/c", "a:../b", "a:é")}
    assert len(names) == 5
    assert all("/" not in name and name.isascii() for name in names)


async def test_only_the_newest_few_of_a_session_are_kept(filled):
    other = filled / "exports" / archive_name("telegram:13", "x", NOON)
    async with tapes(filled) as store:
        archives = MemoryArchives(store, filled / "exports", UTC)
        first = await archives.write(ADA, "0", NOON)
        other.write_bytes(b"PK")
        for number in range(1, 13):
            last = await archives.write(ADA, str(number), NOON)
    left = {path.name for path in (filled / "exports").iterdir()}
    assert len(left) == 11
    assert {other.name, last.path.name} <= left
    assert first.path.name not in left


async def test_a_storage_that_refuses_leaves_no_file(filled):
    (filled / "exports").write_text("in the way")
    async with tapes(filled) as store:
        with pytest.raises(TapeWriteError, match="could not be written"):
            await MemoryArchives(store, filled / "exports", UTC).write(ADA, "k", NOON)


class Held(FileTapeStore):
    """Holds a reading once a file has been begun in a folder."""

    def hold(self, folder: Path) -> None:
        self.folder, self.held = folder, anyio.Event()

    async def read(self, *arguments, **options):
        if list(self.folder.iterdir()):
            self.held.set()
            await anyio.sleep_forever()
        return await super().read(*arguments, **options)


async def test_a_cancelled_archive_leaves_nothing_and_the_next_is_whole(filled):
    store = Held(filled / "tapes", sync=False, read_only=True)
    path = filled / "exports" / "a.zip"
    path.parent.mkdir()
    store.hold(path.parent)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_archive, store, ADA, path, UTC, NOON)
        with anyio.fail_after(30):
            await store.held.wait()
        assert [one.name for one in path.parent.iterdir()] == ["a.zip.new"]
        tasks.cancel_scope.cancel()
    assert list(path.parent.iterdir()) == []
    await store.close()
    assert list(await archived(filled, path)) == NAMES


@pytest.mark.slow
async def test_more_archives_at_once_than_there_are_threads_all_come_to_an_end(filled):
    async with tapes(filled, read_only=True) as store:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(60):
                    path = filled / f"{number}.zip"
                    tasks.start_soon(write_archive, store, ADA, path, UTC, NOON)
    assert len({path.stat().st_size for path in filled.glob("*.zip")}) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from bot.cli.memory_export import export_memory
from bot.transfer import memory_archive
from bot.runtime.settings import load_settings

home, to, wanted = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
pull, count = memory_archive._next, 0

async def dying(pieces):
    global count
    count += 1
    if count == wanted:
        os.kill(os.getpid(), signal.SIGKILL)
    return await pull(pieces)

memory_archive._next = dying
export_memory(load_settings(home=home, timezone="UTC"), "telegram:42", to)
"""


@pytest.mark.parametrize(
    "piece", [9, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 4, 13, 16))]
)
def test_a_kill_while_writing_leaves_what_was_there_and_the_next_is_whole(tmp_path, piece, capsys):
    async def fill() -> None:
        async with tapes(tmp_path) as store:
            await live(store)

    anyio.run(fill)
    out = tmp_path / "out"
    out.mkdir()
    path = out / "a.zip"
    path.write_bytes(b"of before")
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(path), str(piece)]
    done = subprocess.run(command, check=False, timeout=60, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"of before"
    assert export_memory(settings(tmp_path), ADA, path) == 0
    assert list(unzipped(path)) == NAMES
    assert [one.name for one in out.iterdir()] == ["a.zip"]
    assert "2 facts, 3 messages" in capsys.readouterr().out


@pytest.mark.night
@pytest.mark.slow
async def test_a_long_tape_costs_the_memory_of_a_portion(tmp_path):
    async with tapes(tmp_path) as store:
        tape = TapeService(store, ADA)
        await tape.ensure_bootstrap_anchor()
        for number in range(30):
            await tape.append_many([message("user", f"{number} " + "x" * 2_000)] * 500)
    async with tapes(tmp_path, read_only=True) as store:
        tracemalloc.start()
        made = await write_archive(store, ADA, tmp_path / "a.zip", UTC, NOON)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert made.messages == 15_000
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.getinfo("conversation.jsonl").file_size > 30_000_000
    assert peak < 15_000_000
