"""Fixtures of tapes that several files of this folder test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from databases import drop, fresh_database
from forked_tape import TAPE, begun
from tape_files import opened

from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore


@pytest.fixture(params=["memory", "file"])
async def tape(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TapeService]:
    """A tape with the header at 1, ``session/start`` at 2, and messages at 3 and 4."""
    if request.param == "memory":
        store = InMemoryTapeStore()
        yield await begun(TapeService(store, TAPE))
        await store.close()
    else:
        async with opened(tmp_path / "tapes") as files:
            yield await begun(TapeService(files, TAPE))


# A workspace is as good as a database of its own, and made at once.
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A database in PostgreSQL for the tests of one file."""
    address = fresh_database()
    yield address
    drop(address)


@pytest.fixture
def workspace() -> str:
    return f"{next(_numbers)}"
