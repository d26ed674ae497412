"""What the contract's tests write on tapes, and how they look at what is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel

from bot.tape.entries import TapeEntry, message
from bot.tape.store import TapeStore

TAPE = "telegram:42"


def says(text: str, **meta: object) -> TapeEntry:
    return message("user", text, **meta)


def ids(entries: list[TapeEntry]) -> list[int]:
    return [entry.id for entry in entries]


def texts(entries: list[TapeEntry]) -> list[str]:
    return [entry.payload["content"] for entry in entries if entry.kind == "message"]


async def back(store: TapeStore, tape: str = TAPE, before: int | None = None) -> list[TapeEntry]:
    return [entry async for entry in store.read_back(tape, before)]


async def talk(store: TapeStore, *said: str, tape: str = TAPE) -> list[TapeEntry]:
    """Append messages to a tape, made if it is not there; return them."""
    await store.create_tape(tape)
    return await store.append_many(tape, [says(text) for text in said])


async def fill(store: TapeStore, count: int) -> None:
    """Append so many numbered messages."""
    await talk(store, *map(str, range(count)))


async def with_two_segments(store: TapeStore) -> None:
    """Ids 1 to 4 and 5 to 7 are sealed, 8 and 9 live; 1, 5 and 8 are headers."""
    await talk(store, "a", "b", "c")
    await store.archive(TAPE)
    await talk(store, "d", "e")
    await store.archive(TAPE)
    await talk(store, "f")


async def disturb(steps: int, act: Callable[[], Awaitable[Any]]) -> None:
    """Begin something, and cancel it after so many turns of the event loop."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(act)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
