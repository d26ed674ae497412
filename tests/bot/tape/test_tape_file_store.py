"""The file store as a neighbour: workspaces, names, modes, descriptors, cost."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest
from tape_files import opened, says

TAPE = "telegram:42"
DESCRIPTORS = Path("/proc/self/fd")
COUNTERS = Path("/proc/self/io")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/", "a\x00b", "x" * 5000, "\ud83d", "*?["])
async def test_no_session_key_can_become_a_path(tmp_path, name):
    folder = tmp_path / "tapes"
    async with opened(folder) as store:
        await store.create_tape(name)
        await store.archive(name)
        await store.append(name, says("a"))
        assert await store.list_tapes() == [name]
        assert len(await store.read(name)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["tapes"]
    stems = {path.name.partition(".")[0] for path in folder.glob("*.jsonl")}
    assert len(stems) == 1
    assert len(stems.pop()) == 34


def descriptors() -> int:
    return len(list(DESCRIPTORS.iterdir()))


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="counts descriptors in /proc")
async def test_open_tapes_are_bounded_and_no_tape_suffers(tmp_path):
    names = [f"telegram:{number}" for number in range(24)]
    before = descriptors()
    most = 0
    async with opened(tmp_path, open_tapes=4) as store:
        for step in range(4):
            for name in names:
                await store.create_tape(name)
                await store.append(name, says(f"{name}/{step}"))
                most = max(most, descriptors())
            await store.archive(names[step])
        assert store.statistics()["open_tapes"] <= 4
        assert most - before <= 4 + 4
        for name in names:
            said = [e.payload["content"] for e in await store.read(name) if e.kind == "message"]
            assert said == [f"{name}/{step}" for step in range(4)]
    assert descriptors() <= before


def make_long(folder: Path, count: int) -> None:
    """Make the tape's file as the store would have, with this many entries."""
    [path] = folder.glob("*.jsonl")
    line = (
        b'{"id":%d,"kind":"message","payload":{"role":"user","content":"a line of talk, number %d"},'
        b'"meta":{"ts":"2026-02-10T10:00:00.000+00:00"}'
    )
    lines = (line % (number, number) for number in range(2, count + 1))
    with path.open("ab") as file:
        file.writelines(b'%b,"crc":"%08x"}\n' % (one, crc32(one)) for one in lines)


def bytes_read() -> int:
    return int(COUNTERS.read_text().split()[1])


async def cost_of_a_turn(folder: Path, count: int) -> int:
    """Bytes read to open the tape, append to it, and read its last 50 entries and one by id."""
    async with opened(folder) as store:
        await store.create_tape(TAPE)
    make_long(folder, count)
    start = bytes_read()
    async with opened(folder) as store:
        assert (await store.append(TAPE, says("new"))).id == count + 1
        back = store.read_back(TAPE)
        last = [(await anext(back)).id for _ in range(50)]
        await back.aclose()
        assert last == list(range(count + 1, count - 49, -1))
        wanted = count // 3
        [entry] = await store.read(TAPE, wanted, wanted)
        assert entry.payload["content"].endswith(f" {wanted}")
        assert await store.version(TAPE) == count + 1
    return bytes_read() - start


@pytest.mark.slow
@pytest.mark.skipif(not COUNTERS.exists(), reason="counts bytes in /proc")
async def test_opening_appending_and_reading_cost_the_same_in_a_tape_a_thousand_times_longer(
    tmp_path,
):
    short = await cost_of_a_turn(tmp_path / "short", 200)
    long = await cost_of_a_turn(tmp_path / "long", 200_000)
    size = max(path.stat().st_size for path in (tmp_path / "long").glob("*.jsonl"))
    assert size > 25_000_000
    assert long < 6 * short
    assert long < size / 25
