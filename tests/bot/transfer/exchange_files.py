"""Tapes that tests bring out and in, and what another assistant left behind."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bot.runtime.settings import Settings, load_settings
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.transfer.exported_tape import ExportFormat, export_chunks

DATA = Path(__file__).parent / "data"
NANOBOT = DATA / "nanobot"
UTC = ZoneInfo("UTC")


def settings(home: Path, **given: Any) -> Settings:
    return load_settings(home=home, timezone="UTC", retention_days=30, **given)


@asynccontextmanager
async def tapes(home: Path, *, read_only: bool = False) -> AsyncIterator[FileTapeStore]:
    store = FileTapeStore(home / "tapes", sync=False, read_only=read_only)
    try:
        yield store
    finally:
        await store.close()


async def read(home: Path, session: str) -> list[TapeEntry]:
    async with tapes(home, read_only=True) as store:
        return await store.read(session)


async def export(store: TapeStore, session: str, form: ExportFormat) -> bytes:
    out = io.BytesIO()
    async for piece in export_chunks(store, session, form, UTC):
        out.write(piece)
    return out.getvalue()


def write_lines(path: Path, lines: Sequence[dict[str, Any] | bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = (line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return path
