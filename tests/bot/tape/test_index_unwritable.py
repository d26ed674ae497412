"""Where the index cannot be written, or is lost or read by many, tapes go on, and a search is right or says what is wrong."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from index_talk import TAPES, answers, indexed_and_closed, opened, write_tapes

from bot.core.errors import TapeError
from bot.tape.entries import message
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

TAPE = TAPES[0]
WORD = SearchQuery(text="starling", limit=1)
SMALL = 100_000
"""Bytes that a file may have in the child: room for a tape, none for an index."""


def obey_permissions() -> None:
    """Give up what lets root pass over a file's mode."""
    if os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        none = (ctypes.c_uint32 * 6)()
        if ctypes.CDLL(None, use_errno=True).capset(header, none) != 0:
            raise OSError(ctypes.get_errno(), "capset")


async def check_refused(store: FileTapeStore) -> None:
    """See that a search says what is wrong, and that the tape takes more all the same."""
    with pytest.raises(TapeError, match=r"index|search"):
        await store.search(WORD)
    await store.append(TAPE, message("user", "harbour"))


async def in_a_folder_that_may_only_be_read(folder: Path) -> None:
    async with opened(folder) as store:
        added = await store.append(TAPE, message("user", "starling"))
        for path in folder.glob("*.index.db*"):
            path.unlink()
        folder.chmod(0o500)
        try:
            with pytest.raises(OSError, match="denied"):
                (folder / "new").touch()
            for _ in range(2):
                await check_refused(store)
        finally:
            folder.chmod(0o700)
        assert [hit.entry.id for hit in await store.search(WORD)] == [added.id]


async def where_the_index_may_only_be_read(folder: Path) -> None:
    for path in folder.glob("*.index.db*"):
        path.chmod(0o400)
    async with opened(folder) as store:
        added = await store.append(TAPE, message("user", "starling"))
        # Where the folder may be written, it could as well be made anew, and answer.
        with suppress(TapeError):
            assert [hit.entry.id for hit in await store.search(WORD)] == [added.id]
        await store.append(TAPE, message("user", "harbour"))
    for path in folder.glob("*.index.db*"):
        path.chmod(0o600)
    async with opened(folder) as store:
        assert [hit.entry.id for hit in await store.search(WORD)] == [added.id]


async def on_a_disk_that_is_full_for_the_index(folder: Path) -> None:
    for path in folder.glob("*.index.db*"):
        path.unlink()
    async with opened(folder) as store:
        added = await store.append(TAPE, message("user", "starling"))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        for path in folder.glob("*.jsonl"):
            assert path.stat().st_size < SMALL
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, hard))
        for _ in range(2):
            await check_refused(store)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert [hit.entry.id for hit in await store.search(WORD)] == [added.id]


CASES = (
    in_a_folder_that_may_only_be_read,
    where_the_index_may_only_be_read,
    on_a_disk_that_is_full_for_the_index,
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its rights by capset")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_where_the_index_cannot_be_written_tapes_can(tmp_path, case):
    folder = tmp_path / "tapes"
    await write_tapes(folder, each=300)
    await indexed_and_closed(folder)
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, __file__, case.__name__, str(folder)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    )
    assert done.returncode == 0, done.stderr
    async with opened(folder) as store:
        assert all(await answers(store))


async def test_a_store_for_reading_finds_beside_the_one_that_writes(tmp_path):
    """It takes no part in the index's file, and leaves it as it is."""
    await write_tapes(tmp_path / "tapes")
    async with opened(tmp_path / "tapes") as store:
        expected = await answers(store)
        files = {path: path.stat().st_mtime_ns for path in (tmp_path / "tapes").iterdir()}
        async with opened(tmp_path / "tapes", read_only=True) as beside:
            assert await answers(beside) == expected
            added = await store.append(TAPE, message("user", "starling"))
            assert [hit.entry.id for hit in await beside.search(WORD)] == [added.id]
        touched = {path for path, at in files.items() if path.stat().st_mtime_ns != at}
        assert {path.name.partition(".")[2] for path in touched} <= {"jsonl", "heads"}


if __name__ == "__main__":
    obey_permissions()
    [chosen] = [case for case in CASES if case.__name__ == sys.argv[1]]
    anyio.run(chosen, Path(sys.argv[2]))
