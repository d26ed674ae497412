"""The command line brings memory out as an archive or as files, and in again as the same facts."""

from __future__ import annotations

import zipfile
from pathlib import Path

import anyio
import pytest
from archived_memory import ADA, HOME, NAMES, believe, live, unzipped
from exchange_files import read, settings, tapes

from bot.cli.imports import import_nanobot
from bot.cli.main import main
from bot.cli.memory_export import export_memory, write_memory_files
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.transfer.session_memory import read_session_memory


def test_the_command_line_writes_archives_also_beside_a_running_bot(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TAPEBOT_HOME", str(tmp_path))

    async def beside() -> None:
        async with tapes(tmp_path) as store:  # holds the lock
            await live(store)
            given = ["memory", "export", ADA]
            assert await anyio.to_thread.run_sync(main, given) == 0
            assert await anyio.to_thread.run_sync(main, [*given, "--to", str(tmp_path)]) == 0
            to = str(tmp_path / "files" / "memory")
            assert await anyio.to_thread.run_sync(main, ["memory", "files", ADA, "--to", to]) == 0

    anyio.run(beside)
    [exported] = (tmp_path / "exports").iterdir()
    [beside_it] = tmp_path.glob("memory-*.zip")
    assert list(unzipped(exported)) == list(unzipped(beside_it)) == NAMES
    files = tmp_path / "files" / "memory"
    assert (files / "MEMORY.md").read_text() == unzipped(exported)["MEMORY.md"]
    assert (files / "HISTORY.md").read_text() == unzipped(exported)["HISTORY.md"]
    assert str(exported) in capsys.readouterr().out
    assert main(["memory", "export", "telegram:1"]) == 1
    assert "telegram:1" in capsys.readouterr().err
    assert main(["memory", "files", ADA, "--to", str(exported)]) == 2


@pytest.mark.parametrize(
    ("target", "packed"),
    [(None, False), ("telegram:43", True), ("telegram:-100", False), ("discord:9", True)],
)
def test_memory_files_that_are_brought_in_again_are_the_same_facts(tmp_path, target, packed):
    facts = [
        f"Fact {number}: the user has book {number * 7} — «тест» 日本" for number in range(150)
    ]

    async def fill() -> None:
        async with tapes(tmp_path) as store:
            await live(store)
            await believe(store, HOME, facts, "many")

    anyio.run(fill)
    out = tmp_path / "out"
    if packed:
        export_memory(settings(tmp_path), ADA, tmp_path / "a.zip")
        with zipfile.ZipFile(tmp_path / "a.zip") as archive:
            archive.extractall(out)
    else:
        write_memory_files(settings(tmp_path), ADA, out)
    again = tmp_path / "again"
    for _ in range(2):
        assert import_nanobot(settings(again), out, memory_to=target) == 0
    session = target or "console:local"
    assert lines(again, session) == lines(tmp_path, ADA)
    write_memory_files(settings(again), session, tmp_path / "out2")
    assert (tmp_path / "out2" / "MEMORY.md").read_text() == (out / "MEMORY.md").read_text()
    there = (tmp_path / "out2" / "HISTORY.md").read_text()
    for piece in (out / "HISTORY.md").read_text().split("\n\n"):
        assert piece in there


def lines(home: Path, session: str) -> list[tuple[str, str]]:
    async def active() -> list[tuple[str, str]]:
        async with tapes(home, read_only=True) as store:
            known = await read_session_memory(store, session)
        return sorted((one.text, one.subject.lower() or "other") for one in known.facts.active())

    return anyio.run(active)


def test_a_line_that_is_too_long_for_a_fact_is_kept_as_history(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "MEMORY.md").write_text(f"# Food\n\n- I like tea.\n- {'endless ' * 400}\n")
    assert import_nanobot(settings(tmp_path / "home"), out) == 0
    assert lines(tmp_path / "home", "console:local") == [("I like tea.", "food")]
    entries = anyio.run(read, tmp_path / "home", "console:local")
    kept = "".join(str(one.data["entry"]) for one in entries if one.name == HISTORY_EVENT)
    assert kept.count("endless") >= 390
