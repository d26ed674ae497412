"""A tape of two messages to fork, and what is read of it and of its forks."""

from __future__ import annotations

from tape_files import says

from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

TAPE = "telegram:42"
CHILD = "telegram:42/fork-1"


async def begun(service: TapeService) -> TapeService:
    await service.ensure_bootstrap_anchor()
    await service.append_many([says("a"), says("b")])
    return service


def names(entries: list[TapeEntry]) -> list[str]:
    return [entry.name or entry.payload["content"] for entry in entries]


def ids(entries: list[TapeEntry]) -> list[int]:
    return [entry.id for entry in entries]


async def talk(tape: TapeService) -> list[str]:
    return names([entry for entry in await tape.read_entries() if entry.kind == "message"])
