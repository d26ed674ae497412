"""The stores that the contract holds for: a new one is a new line in ``BACKENDS``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from remote_backend import remote_opener

from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.memory import MemoryTapeStore

Opener = Callable[[], TapeStore]


def _memory(folder: Path) -> Opener:
    store = MemoryTapeStore()
    return lambda: store


def _file(folder: Path) -> Opener:
    return lambda: FileTapeStore(folder / "tapes", sync=False)


def _remote(folder: Path) -> Opener:
    return remote_opener()


# Each takes a folder of its own and gives what opens the store, over the same tapes every time.
BACKENDS: dict[str, Callable[[Path], Opener]] = {
    "memory": _memory,
    "file": _file,
    "remote": _remote,
}


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


# Over HTTP each test takes several times as long, so that they are among the long proofs.
_SLOW = {"remote"}


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow if name in _SLOW else ()) for name in BACKENDS
    ]
)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    held = Backend(BACKENDS[request.param](tmp_path))
    yield held
    await held.store.close()


@pytest.fixture
def store(backend: Backend) -> TapeStore:
    return backend.store
