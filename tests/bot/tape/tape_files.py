"""A file store that a test opens and closes, and what it writes there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.tape.entries import TapeEntry, message
from bot.tape.stores.file import FileTapeStore


@asynccontextmanager
async def opened(
    folder: Path, *, sync: bool = False, **options: Any
) -> AsyncIterator[FileTapeStore]:
    store = FileTapeStore(folder, sync=sync, **options)
    try:
        yield store
    finally:
        await store.close()


def says(text: str) -> TapeEntry:
    return message("user", text)
