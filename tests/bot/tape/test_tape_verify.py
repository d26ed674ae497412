"""Each kind of damage to a tape is found, named, and placed; a tape that lived through much is whole."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from sampling import some
from tape_files import flip, killed_before, opened, pack_all, says, spoil

from bot.cli.tape_verify import verify
from bot.core.errors import SettingsError, TapeNotFound
from bot.memory.session.state.zone_snapshot import MemorySnapshot, zone_entries
from bot.runtime.settings import Settings
from bot.tape.codec import decode_line, encode_entries
from bot.tape.entries import TapeEntry, anchor, event, message
from bot.tape.store import HEADER_EVENT, REPAIR_EVENT, header_entry, named_anchor_entry
from bot.tape.stores.folder_verification import verify_folder
from bot.tape.verification import TapePart, TapeVerifier

TAPE = "telegram:42"
TS = "2026-02-10T10:00:00.000+00:00"

Lines = list[bytes]


def lines(*appends: list[TapeEntry], first: int = 1) -> Lines:
    """The lines of appends, with their ids."""
    found: Lines = []
    for batch in appends:
        stamped = [
            TapeEntry(first + place, one.kind, one.payload, {"ts": TS})
            for place, one in enumerate(batch)
        ]
        first += len(batch)
        found += encode_entries(stamped).splitlines(keepends=True)
    return found


def begin(**data: Any) -> TapeEntry:
    return event(HEADER_EVENT, {"session": TAPE, "format": 1, **data})


def says_(*texts: str) -> list[TapeEntry]:
    return [message("user", text) for text in texts]


def zone(version: int, sealed: int | None = None) -> list[TapeEntry]:
    opened, *inside, seal = zone_entries(MemorySnapshot(version, "Tea."), TS)
    assert opened.data == seal.data == {"version": version}
    return [opened, *inside, anchor("memory/seal", {"version": sealed or version})]


def judged(*parts: Lines, last: dict[int, int] | None = None) -> list[str]:
    """What is wrong with a tape of these files, the last of them live."""
    check = TapeVerifier(TAPE)
    for number, part in enumerate(parts):
        sealed = number < len(parts) - 1
        ids = [line.entry.id for line in map(decode_line, part) if line is not None]
        check.begin_part(
            TapePart(
                f"part{number}", (ids[0], (last or {}).get(number, ids[-1])) if sealed else None
            )
        )
        data, offset = b"".join(part), 0
        *whole, rest = data.split(b"\n")
        for raw in whole:
            check.check_line(offset, raw)
            offset += len(raw) + 1
        check.end_part(cut=bool(rest))
    check.finish()
    return [str(problem) for problem in check.problems]


GOOD = lines([begin()], says_("a"), says_("b", "c", "d"), says_("e"))


def test_a_tape_as_it_is_written_has_nothing_wrong():
    assert judged(GOOD) == []
    previous = begin(previous="part0")
    assert judged(GOOD, lines([previous, *zone(1)], says_("f"), zone(2), first=7)) == []
    # After a reset there is a gap, and no word of a segment before.
    assert judged(GOOD, lines([begin()], says_("f"), first=20)) == []


def test_what_a_kill_cut_short_and_a_repair_closed_is_not_wrong():
    lost = lines(says_("x", "y", "z"), first=7)
    note = lines([event(REPAIR_EVENT, {})], says_("next"), first=7)
    torn = lost[2][:20] + b"\x18\n"
    assert judged(GOOD + lost[:2]) == []
    assert judged([*GOOD, *lost[:2], lost[2][:20]]) == []
    assert judged([*GOOD, *lost[:2], torn, *note]) == []
    assert judged(GOOD + lost[:2] + note) == []
    assert judged([*GOOD, lost[0][:9] + b"\x18\n", *note]) == []
    # Twice in a row.
    assert judged([*GOOD, *lost[:2], note[0][:20] + b"\x18\n", *note]) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda: [*GOOD[:3], b"\xff" + GOOD[3][1:], *GOOD[4:]],
            ["part0: line 4 (byte ", "entry 4"],
        ),
        (lambda: [*GOOD[:2], *GOOD[3:]], ["part0: line 3 (byte ", "entries 3 to 3 are missing"]),
        (lambda: [*GOOD[:4], *GOOD[5:]], ["entries 3 to 5 is incomplete", "5 to 5 are missing"]),
        (lambda: [*GOOD[:1], GOOD[2], GOOD[1], *GOOD[3:]], ["entry 2 is out of order"]),
        (lambda: [*GOOD, GOOD[1]], ["line 7", "entry 2 is duplicated"]),
        (lambda: [*GOOD[:4], GOOD[3], *GOOD[4:]], ["entry 4 is duplicated"]),
        (lambda: GOOD[1:], ["does not begin with a header"]),
        (lambda: [b"\xff\n", *GOOD[1:]], ["line 1 (byte 0): the line cannot be read"]),
        (lambda: lines([header_entry("discord:7", None)]), ["another session: 'discord:7'"]),
        (lambda: lines([begin(previous="part0")], first=9), ["continues the segment part0"]),
        (lambda: [b"junk\n"], ["none of its lines can be read"]),
        (
            lambda: GOOD + lines([anchor("memory/seal", {"version": 1})], first=7),
            ["entry 7 seals"],
        ),
        (
            lambda: GOOD + lines([anchor("memory/open", {"version": 1})], first=7),
            ["of entry 7 has no seal"],
        ),
        (lambda: GOOD + lines(zone(1)[:-1], zone(1), first=7), ["of entry 7 has no seal"]),
        (lambda: GOOD + lines(zone(2, sealed=3), first=7), ["version 2 is sealed as 3"]),
        (lambda: GOOD + lines(zone(3), zone(2), first=7), ["falls from 3 to 2"]),
        (
            lambda: GOOD + lines([named_anchor_entry("tea", 99, None)], first=7),
            ["anchor tea of entry 7 points at entry 99"],
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place(change: Callable[[], Lines], said):
    problems = "\n".join(judged(change()))
    assert problems
    for part in said:
        assert part in problems
    assert problems.startswith("part0: ")


@pytest.mark.parametrize(
    ("sealed", "live", "said"),
    [
        (GOOD[:-1], lines([begin(previous="part0")], first=7), "entries 6 to 6 are missing"),
        (
            GOOD[:-2],
            lines([begin(previous="part0")], first=7),
            "append of entries 3 to 5 is incomplete",
        ),
        ([*GOOD[:-1], GOOD[-1][:-1]], lines([begin(previous="part0")], first=7), "not terminated"),
        (GOOD, lines([begin(previous="part0")], first=9), "continues with entry 9"),
        (GOOD, lines([begin()], first=5), "entry 5 comes after entry 6"),
        (
            GOOD,
            lines([begin(previous="gone")], first=7),
            "continues the segment gone, which is missing",
        ),
    ],
)
def test_parts_that_do_not_continue_one_another_are_wrong(sealed, live, said):
    problems = judged(sealed, live, last={0: 6})
    assert any(said in problem for problem in problems), problems


def test_a_fork_has_the_gaps_of_its_parent_at_its_seams_and_anchors_that_reach_behind_it():
    parent = {"tape": "telegram:7", "first": 5, "last": 40}
    head = lines([begin(parent=parent)], first=4)
    copied = lines(
        [named_anchor_entry("tea", 2, None), anchor("memory/seal", {"version": 4})], first=5
    )
    # The parent's own header, behind what a reset dropped there.
    seam = lines([header_entry("telegram:7", None)], says_("a"), zone(5), first=30)
    own = lines(says_("own"), first=30 + len(seam))
    assert judged(head + copied + seam + own) == []
    assert judged(head + copied + seam[1:] + own)
    assert judged(lines([begin()], first=4) + copied + seam + own)


def test_an_anchor_may_point_at_what_a_reset_dropped_and_at_nothing_else_that_is_missing():
    """It was on its way when the reset came: in a fork that was merged after it."""
    dropped = lines([begin()], [named_anchor_entry("tea", 4, None)], first=6)
    assert judged(dropped) == []
    assert judged(GOOD, lines([begin()], [named_anchor_entry("tea", 8, None)], first=9)) == []
    [problem] = judged(lines([begin()], says_("a"), [named_anchor_entry("tea", 9, None)], first=6))
    assert "points at entry 9, which is missing" in problem
    goes_on = lines([begin(previous="part0")], [named_anchor_entry("tea", 8, None)], first=9)
    assert any("points at entry 8" in problem for problem in judged(GOOD, goes_on))


# Files.


async def lived(home: Path) -> Path:
    """Tapes that have seen archives, resets, repairs, forks and packing."""
    folder = home / "tapes"
    async with opened(folder) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [*zone(1), *says_(*"abc")])
        for part in range(2):
            for number in range(300):
                await store.append_many(TAPE, [says(f"{number} {'tea ' * 60}"), says(str(part))])
            await store.archive(TAPE, zone(part + 2))
        await store.create_anchor(TAPE, "tea")
        await store.fork(TAPE, "child", from_entry=100)
        await store.archive("child", zone(4))
        await store.reset("child", zone(4))
        await store.append_many(TAPE, says_("lost", "lost"))
    live = next(
        p for p in folder.glob("*.jsonl") if p.name.count(".") == 1 and "lost" in p.read_text()
    )
    killed_before(live, live.read_bytes()[:-5])
    async with opened(folder) as store:
        await store.append(TAPE, says("after a repair"))
        await store.archive(TAPE)
        await store.append(TAPE, says("live"))
    return folder


async def test_tapes_that_lived_through_much_are_whole_raw_and_packed(tmp_path, capsys):
    folder = await lived(tmp_path)
    settings = Settings(home=tmp_path)
    for _ in range(2):
        assert verify(settings, None) == 0
        assert verify(settings, "child") == 0
        said = capsys.readouterr().out.splitlines()
        assert len(said) == 2
        assert said[0].startswith("tapes: 2, files: 5, entries checked: 1,")
        assert said[0].endswith("no problems")
        pack_all(folder)
    with pytest.raises(TapeNotFound):
        verify(settings, "nobody")
    assert verify(Settings(home=tmp_path / "nowhere"), None) == 0


async def test_verifying_works_beside_a_running_store_and_writes_nothing(tmp_path):
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store._packing.run)
        await store.create_tape(TAPE)

        async def write() -> None:
            for number in range(60):
                await store.append_many(TAPE, says_(f"{number}", "tea"))
                if number % 6 == 0:
                    await store.archive(TAPE, zone(number + 1))
            done.set()

        done = anyio.Event()
        tasks.start_soon(write)
        while not done.is_set():
            report = await anyio.to_thread.run_sync(verify_folder, tmp_path, "")
            assert report.problems == []
        tasks.cancel_scope.cancel()


def members(path: Path) -> list[list[int]]:
    return json.loads(gzip.decompress(path.read_bytes()).splitlines()[-1])["segment"]["blocks"]


def first_packed(folder: Path) -> Path:
    return next(path for path in pack_all(folder) if ".1-" in path.name)


async def wrong(folder: Path) -> list[str]:
    report = await anyio.to_thread.run_sync(verify_folder, folder, "")
    return [str(problem) for problem in report.problems]


async def test_a_block_that_cannot_be_mended_is_found_with_the_entries_that_it_cost(tmp_path):
    folder = await lived(tmp_path)
    packed = first_packed(folder)
    [first, second, *_] = members(packed)
    spoil(packed, second[1] + 300)
    [problem, parity] = await wrong(folder)
    assert parity == f"{packed.name}: its parity is damaged or cut"
    assert problem.startswith(f"{packed.name}: byte {second[1]:,}: the block cannot be read")
    assert f"entries {second[0]} to " in problem
    assert first[0] == 1


@pytest.mark.slow
async def test_no_byte_of_a_packed_segment_can_change_unseen(tmp_path):
    """Also those that no reader needs: gzip's time and system, the parity, the locators."""
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, says_("a", "b"))
        await store.archive(TAPE)
    [packed] = pack_all(tmp_path)
    whole = packed.read_bytes()
    for offset in some(range(len(whole))):
        flip(packed, offset)
        [problem] = await wrong(tmp_path)
        assert problem.startswith(packed.name), offset
        packed.write_bytes(whole)
    assert await wrong(tmp_path) == []


@pytest.mark.parametrize("share", [0, 0.2, 0.99])
async def test_a_packed_segment_that_was_cut_is_found(tmp_path, share):
    folder = await lived(tmp_path)
    packed = first_packed(folder)
    data = packed.read_bytes()
    packed.chmod(0o600)
    packed.write_bytes(data[: int(len(data) * share)])
    problems = await wrong(folder)
    told = "its parity" if share == 0.99 else "its trailer cannot be read"
    assert any(told in problem for problem in problems)
    assert all(problem.startswith(packed.name.removesuffix(".gz")) for problem in problems)


async def test_a_segment_that_was_taken_away_is_found(tmp_path):
    folder = await lived(tmp_path)
    packed = first_packed(folder)
    packed.unlink()
    [problem, *_] = await wrong(folder)
    assert f"continues the segment {packed.name.removesuffix('.gz')}, which is missing" in problem


async def test_a_live_file_that_was_taken_away_is_found(tmp_path):
    folder = await lived(tmp_path)
    live = first_packed(folder).name.partition(".")[0] + ".jsonl"
    (folder / live).unlink()
    assert f"{live}: the live file is missing" in await wrong(folder)


async def test_a_packed_segment_of_other_lines_is_found(tmp_path):
    """Another tape's segment under this name: each block is whole, and none belongs here."""
    folder = await lived(tmp_path / "one")
    async with opened(tmp_path / "two") as store:
        await store.create_tape("discord:7")
        await store.append(TAPE.replace(TAPE, "discord:7"), says("x"))
        await store.archive("discord:7")
    packed = first_packed(folder)
    [other] = pack_all(tmp_path / "two")
    packed.unlink()
    packed.write_bytes(other.read_bytes())
    problems = "\n".join(await wrong(folder))
    assert "its header names another session: 'discord:7'" in problems
    assert "its trailer names other entries than its name" in problems


@pytest.mark.parametrize("live", [False, True])
async def test_a_file_that_the_storage_does_not_give_back_is_named_and_the_others_are_checked(
    tmp_path, live
):
    folder = await lived(tmp_path)
    packed = first_packed(folder)
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


def test_tapes_that_are_elsewhere_are_not_called_whole(tmp_path):
    with pytest.raises(SettingsError, match="TAPEBOT_TAPE_STORE"):
        verify(Settings(home=tmp_path, tape_store="http://127.0.0.1:8383"), None)


async def test_problems_are_one_line_each_and_the_exit_code_says_so(tmp_path, capsys):
    folder = await lived(tmp_path)
    packed = first_packed(folder)
    flip(packed, members(packed)[0][1] + 300)
    assert verify(Settings(home=tmp_path), None) == 1
    *problems, summary = capsys.readouterr().out.splitlines()
    assert summary.endswith(f"problems: {len(problems)}")
    assert all(packed.name.removesuffix(".gz") in problem for problem in problems)
