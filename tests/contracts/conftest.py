"""The stores that the contract holds for: a new one is a new line in ``BACKENDS``."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from databases import fresh_database
from remote_backend import remote_opener

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.tape.stores.postgres import PostgresTapeStore

Opener = Callable[[], TapeStore]


@asynccontextmanager
async def _memory(folder: Path) -> AsyncIterator[Opener]:
    store = InMemoryTapeStore()
    yield lambda: store


@asynccontextmanager
async def _file(folder: Path) -> AsyncIterator[Opener]:
    yield lambda: FileTapeStore(folder / "tapes", sync=False)


@asynccontextmanager
async def _remote(folder: Path) -> AsyncIterator[Opener]:
    yield remote_opener()


_database = cache(fresh_database)
_workspaces = itertools.count(1)


@asynccontextmanager
async def _postgres(folder: Path) -> AsyncIterator[Opener]:
    # A workspace of its own is as good as a database of its own, and made at once.
    workspace = f"{next(_workspaces)}"
    database = Database(await anyio.to_thread.run_sync(_database))
    await database.open()
    wakeups = Wakeups(database)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wakeups.run)
        yield lambda: PostgresTapeStore(database, wakeups, workspace=workspace)
        tasks.cancel_scope.cancel()
    await database.close()


# Each takes a folder of its own and lends what opens the store, over the same tapes every time.
BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[Opener]]] = {
    "memory": _memory,
    "file": _file,
    "remote": _remote,
    "postgres": _postgres,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sample what a suite says of a store over a wire as one family, and cut its tables over the others to pairs.

    Each row of a table is tried on one of the stores without a wire; those on the other are sampled as a family, too.
    """
    rows: Counter[tuple[str, str]] = Counter()
    for item in items:
        call = getattr(item, "callspec", None)
        name = call and call.params.get("backend")
        if name in _SLOW:
            item.add_marker(pytest.mark.family(f"{item.path.name} over {name}"))
        elif name and len(call.indices) > 1:
            test = item.nodeid.partition("[")[0]
            rows[test, name] += 1
            if rows[test, name] % 2 == call.indices["backend"] % 2:
                continue
            item.add_marker(pytest.mark.family(f"tables of {item.path.name}"))
            item.add_marker(pytest.mark.slow)


class Backend:
    """A store, and how it is closed and opened again."""

    def __init__(self, opener: Opener) -> None:
        self._open = opener
        self.store = opener()

    async def reopen(self) -> TapeStore:
        await self.store.close()
        self.store = self._open()
        return self.store

    async def readers(self) -> AsyncIterator[TapeStore]:
        """Yield the store as it is, then opened again."""
        yield self.store
        yield await self.reopen()


# Over a wire each test takes several times as long, so that they are among the long proofs.
_SLOW = {"remote", "postgres"}


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow if name in _SLOW else ()) for name in BACKENDS
    ]
)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    async with BACKENDS[request.param](tmp_path) as opener:
        held = Backend(opener)
        yield held
        await held.store.close()


@pytest.fixture
def store(backend: Backend) -> TapeStore:
    return backend.store


@pytest.fixture(scope="session")
def client_libraries() -> None:
    """Load them before any test's clock runs: that takes seconds."""
    import channels.discord
    import channels.telegram
    import channels.web  # noqa: F401
