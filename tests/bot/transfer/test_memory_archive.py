"""Archives of memory: real zips, opened again, equal to what the tapes say; whole or not there."""

from __future__ import annotations

import zipfile
from datetime import UTC as ZULU
from datetime import datetime
from pathlib import Path

import anyio
import pytest
from exchange_files import UTC, read, settings, tapes

from bot.cli.imports import import_jsonl
from bot.core.clock import SystemClock
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.fact import Evidence
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE, person_scope, scope_entry
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.memory.session.state.zone_snapshot import DailyNote, MemorySnapshot, zone_entries
from bot.tape.entries import TapeEntry, event, message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore
from bot.transfer.memory_export import MemoryArchives, archive_name, write_archive

ADA = "telegram:42"
HOME = person_scope("telegram", "42")
NOON = datetime(2026, 3, 6, 12, tzinfo=ZULU)
SUBJECTS = ["home", "work", "food", ""]
NAMES = [
    "README.txt", "MEMORY.md", "HISTORY.md", "notes/2026-03-05.md", "notes/2026-03-06.md", "facts.json",
    "references.md", "reference.json", "beliefs.md", "problems.md", "decisions.jsonl",
    "conversation.md", "conversation.jsonl",
]  # fmt: skip


def history(text: str, moment: str = "2026-03-06T10:00:00.000+00:00") -> TapeEntry:
    return event(HISTORY_EVENT, {"entry": text, "from": moment, "to": moment})


async def believe(store: FileTapeStore, home: str, texts: list[str], key: str = "k") -> None:
    kind = "workspace" if home == WORKSPACE_SCOPE else "person" if home == HOME else "session"
    evidence = Evidence(ADA, 3, "as I said", "Ada", "2026-03-01T10:00:00.000+00:00", sender="42")
    proposals = tuple(
        Proposal("add", text, subject=SUBJECTS[place % len(SUBJECTS)], evidence=(evidence,))
        for place, text in enumerate(texts)
    )
    scope = ScopeMemory(TapeService(store, home), kind, SystemClock())
    await scope.apply(ProposalBatch(f"{home}:{key}", "person", proposals))


async def live(store: FileTapeStore, session: str = ADA, home: str = HOME) -> None:
    """Let a session have a past in two parts, of which one is sealed, and facts."""
    tape = TapeService(store, session)
    await tape.ensure_bootstrap_anchor()
    await tape.append_many(
        [
            message("user", "I live in Oslo, naïvely: 你好", sender={"id": "42", "name": "Ada"}),
            message("assistant", "Noted."),
            history("[2026-03-05 09:00] Ada told that she lives in Oslo.\n\nAnd that it is cold."),
        ]
    )
    await tape.archive()
    notes = (DailyNote("2026-03-05", "It rained."), DailyNote("2026-03-06", "The sun."))
    await tape.append_many(
        [
            scope_entry(home),
            *zone_entries(MemorySnapshot(1, "- The user lives in Oslo.", notes), "2026-03-06"),
            message("user", "And I have a cat", sender={"id": "42", "name": "Ada"}),
            history("A cat was mentioned."),
        ]
    )
    await believe(store, home, ["The user lives in Oslo.", "The user works at Statkraft."])
    scope = ScopeMemory(TapeService(store, home), "person", SystemClock())
    moved = Proposal("supersede", "The user lives in Bergen.", fact=1, subject="home")
    await scope.apply(ProposalBatch("moved", "person", (moved,)))
    await believe(store, WORKSPACE_SCOPE, ["The office is in Harbour Street."])


def unzipped(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


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


async def test_a_note_of_a_strange_day_and_a_clock_of_long_ago_do_no_harm(tmp_path):
    notes = (DailyNote("../../evil", "x"), DailyNote("/etc/cron", "y"))
    async with tapes(tmp_path) as store:
        tape = TapeService(store, ADA)
        await tape.ensure_bootstrap_anchor()
        await tape.append_many(zone_entries(MemorySnapshot(1, "", notes), "now"))
        await write_archive(store, ADA, tmp_path / "a.zip", UTC, datetime(1970, 1, 1, tzinfo=ZULU))
    found = unzipped(tmp_path / "a.zip")
    assert [name for name in found if "notes" in name] == ["notes/-evil.md", "notes/-etc-cron.md"]


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


async def test_the_conversation_of_an_archive_is_restored_to_the_same_tape(filled, tmp_path):
    lines, again = tmp_path / "conversation.jsonl", tmp_path / "again"
    lines.write_text((await archived(filled, filled / "a.zip"))["conversation.jsonl"])
    await anyio.to_thread.run_sync(import_jsonl, settings(again), lines)
    assert await read(again, ADA) == await read(filled, ADA)
