"""Each kind of damage to a tape is found, named, and placed; a tape that lived through much is whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tape_files import flip, live_file, opened, pack_all, says

from bot.cli.main import main
from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.tape.codec import encode_append
from bot.tape.entries import TapeEntry, anchor, event, message
from bot.tape.store import HEADER_EVENT, header_entry, named_anchor_entry
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"
TS = "2026-02-10T10:00:00.000+00:00"

Lines = list[bytes]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAPEBOT_HOME", str(tmp_path))
    return tmp_path


def lines(*appends: list[TapeEntry], first: int = 1) -> Lines:
    found: Lines = []
    for batch in appends:
        stamped = [
            TapeEntry(first + place, one.kind, one.payload, {"ts": TS})
            for place, one in enumerate(batch)
        ]
        first += len(batch)
        found += encode_append(stamped).splitlines(keepends=True)
    return found


def begin(**data: Any) -> TapeEntry:
    return event(HEADER_EVENT, {"session": TAPE, "format": 1, **data})


def says_(*texts: str) -> list[TapeEntry]:
    return [message("user", text) for text in texts]


def zone(version: int, sealed: int | None = None) -> list[TapeEntry]:
    *opened, _ = zone_entries(MemorySnapshot(version, "Tea."), TS)
    return [*opened, anchor("memory/seal", {"version": sealed or version})]


GOOD = lines([begin()], says_("a"), says_("b", "c", "d"), says_("e"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: GOOD, "no problems"),
        # What a kill cut short is not wrong.
        (lambda: GOOD + lines(says_("x", "y", "z"), first=7)[:2], "no problems"),
        (lambda: [*GOOD[:3], b"\xff" + GOOD[3][1:], *GOOD[4:]], "line 4 (byte "),
        (lambda: [*GOOD[:2], *GOOD[3:]], "entries 3 to 3 are missing"),
        (lambda: [*GOOD[:4], *GOOD[5:]], "up to entry 5 is incomplete"),
        (lambda: [*GOOD[:1], GOOD[2], GOOD[1], *GOOD[3:]], "entry 2 is out of order"),
        (lambda: [*GOOD, GOOD[1]], "entry 2 is duplicated"),
        (lambda: GOOD[1:], "does not begin with a header"),
        (lambda: lines([header_entry("discord:7", None)]), "another session: 'discord:7'"),
        (lambda: lines([begin(previous="part0")], first=9), "continues the segment part0"),
        (lambda: [b"junk\n"], "none of its lines can be read"),
        (lambda: GOOD + lines(zone(1)[-1:], first=7), "entry 7 seals"),
        (lambda: GOOD + lines(zone(1)[:-1], zone(1), first=7), "of entry 7 has no seal"),
        (lambda: GOOD + lines(zone(2, sealed=3), first=7), "version 2 is sealed as 3"),
        (lambda: GOOD + lines(zone(3), zone(2), first=7), "falls from 3 to 2"),
        (
            lambda: GOOD + lines([named_anchor_entry("tea", 99, None)], first=7),
            "anchor tea of entry 7 points at entry 99",
        ),
    ],
)
async def test_what_is_wrong_in_a_file_is_named_with_its_place(
    home, capsys, change: Callable[[], Lines], said
):
    async with opened(home / "tapes") as store:
        await store.create_tape(TAPE)
    live = live_file(home / "tapes")
    live.write_bytes(b"".join(change()))
    assert main(["tape", "verify"]) == (said != "no problems")
    told = capsys.readouterr().out
    assert said in told
    assert said == "no problems" or told.startswith(live.name)


async def lived(home: Path) -> Path:
    """Tapes that have seen archives, resets, kills, forks and packing."""
    folder = home / "tapes"
    async with opened(folder) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [*zone(1), *says_(*"abc")])
        for part in range(2):
            for number in range(20):
                await store.append_many(TAPE, [says(f"{number} {'tea ' * 60}"), says(str(part))])
            await store.archive(TAPE, zone(part + 2))
        await store.create_anchor(TAPE, "tea")
        await store.fork(TAPE, "child", from_entry=20)
        await store.archive("child", zone(4))
        await store.reset("child", zone(4))
        await store.append_many(TAPE, says_("lost", "lost"))
    live = next(
        p for p in folder.glob("*.jsonl") if p.name.count(".") == 1 and "lost" in p.read_text()
    )
    live.write_bytes(live.read_bytes()[:-5])
    async with opened(folder) as store:
        await store.append(TAPE, says("after a kill"))
        await store.archive(TAPE)
        await store.append(TAPE, says("live"))
    return folder


async def test_tapes_that_lived_through_much_are_whole_raw_and_packed(home, capsys):
    folder = await lived(home)
    for _ in range(2):
        assert main(["tape", "verify"]) == main(["tape", "verify", "child"]) == 0
        said = capsys.readouterr().out.splitlines()
        assert len(said) == 2
        assert said[0].startswith("tapes: 2, files: 5, entries checked: ")
        assert said[0].endswith("no problems")
        await pack_all(folder)
    assert main(["tape", "verify", "nobody"]) == 1


async def test_verifying_works_beside_a_running_store_and_writes_nothing(tmp_path):
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await store.create_tape(TAPE)
        done = anyio.Event()

        async def write() -> None:
            for number in range(30):
                await store.append_many(TAPE, says_(f"{number}", "tea"))
                if number % 6 == 0:
                    await store.archive(TAPE, zone(number + 1))
            done.set()

        tasks.start_soon(write)
        while not done.is_set():
            report = await anyio.to_thread.run_sync(verify_folder, tmp_path, "")
            assert report.problems == []
        tasks.cancel_scope.cancel()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    verify_folder(tmp_path, "")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


async def first_packed(folder: Path) -> Path:
    return next(path for path in await pack_all(folder) if ".1-" in path.name)


@pytest.mark.parametrize("live", [False, True])
async def test_a_file_that_the_storage_does_not_give_back_is_named_and_the_others_are_checked(
    tmp_path, live
):
    folder = await lived(tmp_path)
    packed = await first_packed(folder)
    away = folder / f"{packed.name.partition('.')[0]}.jsonl" if live else packed
    away.unlink()
    # A folder opens like a file, and gives nothing back.
    away.mkdir()
    async with opened(folder) as store:
        await store.create_tape("discord:7")
    report = verify_folder(folder, "")
    name = away.name.removesuffix(".gz")
    assert [p.file for p in report.problems if "the storage cannot read it" in p.what] == [name]
    assert report.tapes == 3


@pytest.mark.parametrize("share", [0.2, 0.99, 1.0], ids=["cut", "end cut", "flipped"])
async def test_damage_to_a_packed_segment_is_told_in_one_line_each(
    home, capsys, monkeypatch, share
):
    packed = await first_packed(await lived(home))
    flip(packed, *[700] * (share == 1.0))
    packed.write_bytes(packed.read_bytes()[: int(packed.stat().st_size * share)])
    assert main(["tape", "verify"]) == 1
    *problems, summary = capsys.readouterr().out.splitlines()
    assert summary.endswith(f"problems: {len(problems)}")
    assert all(problem.startswith(packed.name.removesuffix(".gz")) for problem in problems)
    monkeypatch.setenv("TAPEBOT_TAPE_STORE", "http://127.0.0.1:8383")
    assert main(["tape", "verify"]) == 2
    assert "TAPEBOT_TAPE_STORE" in capsys.readouterr().err
