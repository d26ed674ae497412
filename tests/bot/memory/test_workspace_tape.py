"""The workspace's tapes: several processes change one state, and a snapshot stands for what is old."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from bot.memory.session.scope import workspace_tape
from bot.memory.session.scope.workspace_tape import SNAPSHOT_EVENT, WorkspaceTape
from bot.tape.entries import TapeEntry, event
from bot.tape.stores.file import FileTapeStore

NAME = "workspace:counts"


class Counts:
    """Counts of names; the simplest fold."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def apply(self, entry: TapeEntry) -> None:
        if entry.name == "count":
            self.counts[str(entry.data["name"])] += 1

    def snapshot(self) -> dict[str, Any]:
        return dict(self.counts)

    def restore(self, state: dict[str, Any]) -> None:
        self.counts = Counter(state)

    def __len__(self) -> int:
        return len(self.counts)


@pytest.fixture
async def store(tmp_path: Path):
    opened = FileTapeStore(tmp_path, sync=False)
    yield opened
    await opened.close()


def count(tape: WorkspaceTape[Counts], name: str):
    """Count a name once, and return the count that this change made."""

    def compose() -> tuple[list[TapeEntry], int]:
        return [event("count", {"name": name})], tape.fold.counts[name] + 1

    return tape.change(compose)


async def test_two_writers_each_build_on_what_the_other_wrote(store):
    first, second = (WorkspaceTape(store, NAME, Counts()) for _ in range(2))
    made: list[int] = []

    async def often(tape: WorkspaceTape[Counts]) -> None:
        made.extend([await count(tape, "a") for _ in range(20)])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(often, first)
        tasks.start_soon(often, second)
    assert sorted(made) == list(range(1, 41))


async def test_reading_begins_at_the_newest_snapshot_and_gives_the_same_state(store, monkeypatch):
    monkeypatch.setattr(workspace_tape, "_SNAPSHOT_EVERY", 10)
    tape = WorkspaceTape(store, NAME, Counts())
    for number in range(35):
        await count(tape, f"n{number % 4}")
    snapshots = [entry.id for entry in await store.read(NAME) if entry.name == SNAPSHOT_EVENT]
    assert len(snapshots) == 3
    fresh = WorkspaceTape(store, NAME, Counts())
    seen: list[int] = []
    monkeypatch.setattr(fresh.fold, "apply", lambda entry: seen.append(entry.id))
    await fresh.refresh()
    assert min(seen) == snapshots[-1] + 1
    again = WorkspaceTape(store, NAME, Counts())
    await again.refresh()
    assert again.fold.counts == tape.fold.counts
    assert again.version == tape.version


async def test_a_workspace_tape_that_nobody_wrote_is_empty_and_is_not_created(store):
    tape = WorkspaceTape(store, NAME, Counts())
    await tape.refresh()
    assert tape.fold.counts == Counter()
    assert NAME not in await store.list_tapes()
