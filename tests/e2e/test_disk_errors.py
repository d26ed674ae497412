"""A disk that refuses: conversations go on by themselves, and nothing that was acknowledged is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kill_harness import Kill, Platform, ask, lines, state
from kill_host import IMPATIENT
from sampling import some

from bot.runtime.sessions.writer import GAVE_UP

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CALLS = ("write", "fsync", "fdatasync", "rename", "replace", "")


async def refused(folder: Path, seed: int, faults: list[dict[str, Any]]) -> None:
    """Talk while calls are refused, until all is answered; see that a start then finds all of it."""
    platform = Platform(folder, seed, {"TAPEBOT_MEMORY_WINDOW": "10", IMPATIENT: "1"})
    platform.warns, script = True, lines(state, ask)
    async with platform.running() as host:
        for more in faults:
            await host.plan(Kill(calls=platform.random.randrange(1, 12), more=more))
            for chat, text in script(platform.random):
                await platform.say(host, chat, text)
            await host.settle()
    found = await platform.finish()
    assert found["messages"] >= len(faults)
    shown = str(platform.delivered)
    assert not any(false in shown for false in (GAVE_UP, "error in tapebot", "see its log"))


async def test_each_kind_of_refused_call_costs_no_conversation(tmp_path: Path):
    """One call of each name, and four in a row."""
    faults = [
        {"only": call, "error": error, "many": many}
        for call in CALLS
        for error, many in (("EIO", 1), ("ENOSPC", 4))
    ]
    await refused(tmp_path, 1, some(faults))


async def test_a_full_disk_costs_no_conversation_once_there_is_room_again(tmp_path: Path):
    """No write goes through for a while."""
    await refused(tmp_path, 2, [{"only": "write", "error": "ENOSPC", "many": 40}] * 4)
