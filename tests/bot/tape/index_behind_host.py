"""``python index_behind_host.py FOLDER``: index a folder's tapes in the background, and say once some of it is done."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from bot.tape.stores.file import FileTapeStore


async def _main(folder: Path) -> None:
    store = FileTapeStore(folder, sync=False)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        while store._index.statistics()["entries"] < 300:
            await anyio.sleep(0.001)
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(_main, Path(sys.argv[1]))
