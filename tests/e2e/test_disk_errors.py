"""A disk that refuses: conversations go on by themselves, and nothing that was acknowledged is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kill_harness import Kill, Platform
from kill_talk import ask, lines, state
from sampling import some

CALLS = ("write", "fsync", "fdatasync", "rename", "replace", "")


async def refused(folder: Path, seed: int, faults: list[dict[str, Any]]) -> None:
    """Talk while calls are refused, until all is answered; see that a start then finds all of it."""
    platform = Platform(folder, seed, {"TAPEBOT_MEMORY_WINDOW": "10"})
    script = lines(state, ask)
    async with platform.running() as host:
        for more in faults:
            await host.plan(Kill(calls=platform.random.randrange(1, 12), more=more))
            for chat, text in script(platform.random):
                await platform.say(host, chat, text)
            await host.settle()
    found = await platform.finish()
    assert found["messages"] >= len(faults)


@pytest.mark.slow
async def test_each_kind_of_refused_call_costs_no_conversation(tmp_path: Path):
    """One call of each name, and four in a row."""
    errors = ("EIO", "ENOSPC")
    faults = [
        {"only": call, "error": error, "many": many}
        for call in CALLS
        for error in errors
        for many in (1, 4)
    ]
    await refused(tmp_path, 1, some(faults))


@pytest.mark.slow
async def test_a_full_disk_costs_no_conversation_once_there_is_room_again(tmp_path: Path):
    """No write goes through for a while."""
    await refused(tmp_path, 2, [{"only": "write", "error": "ENOSPC", "many": 40}] * 4)
