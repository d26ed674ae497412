"""An import that is killed leaves whole sessions or none, and the next one does the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import anyio
import pytest
from exchange_files import NANOBOT, settings, tapes
from killed_import import killed_import

from bot.cli.imports import import_nanobot
from bot.core.errors import TapeNotFound
from bot.transfer.session_memory import read_session_memory

SESSIONS = ["console:local", "telegram:4242", "discord:777"]

KILLED = killed_import(
    "from bot.cli.imports import import_nanobot",
    "import_nanobot(settings, source)",
)


# The lock's owner is written first; then each session is two writes, its header and its append. The
# first has the memory: its facts are three more, of another tape.
WHOLE = {"console:local": 3, "telegram:4242": 8, "discord:777": 10}
WRITES = [(write, part) for write in range(2, 11) for part in ("0", "0.5", "1")]
FAST = [(3, "0.5"), (3, "1"), (6, "0")]


@pytest.mark.parametrize(
    ("write", "part"),
    [
        pytest.param(*one, marks=() if one in FAST else pytest.mark.slow, id=f"{one[0]}-{one[1]}")
        for one in WRITES
    ],
)
def test_a_kill_at_any_write_leaves_no_half_session_and_the_next_import_does_the_rest(
    tmp_path, write, part, capsys
):
    whole, home = tmp_path / "whole", tmp_path / "home"
    import_nanobot(settings(whole), NANOBOT)
    arguments = [str(home), str(NANOBOT), str(write), part]
    command = [sys.executable, "-c", KILLED, *arguments]
    done = subprocess.run(
        command, check=False, timeout=60, env=dict(os.environ), capture_output=True
    )
    assert done.returncode == -signal.SIGKILL
    there = [session for session in SESSIONS if plain(home, session)]
    written = write if part == "1" else write - 1
    assert there == [session for session, last in WHOLE.items() if last <= written]
    assert all(plain(home, session) == plain(whole, session) for session in there)
    capsys.readouterr()
    assert import_nanobot(settings(home), NANOBOT) == 0
    assert "refused" not in capsys.readouterr().out
    for session in (*SESSIONS, "person:console:local"):
        assert plain(home, session) == plain(whole, session)
    assert beliefs(home) == beliefs(whole) == ["Name: Ada", "Favourite drink: jasmine tea"]


def beliefs(home) -> list[str]:
    async def facts() -> list[str]:
        async with tapes(home, read_only=True) as store:
            return [
                one.text
                for one in (await read_session_memory(store, "console:local")).facts.active()
            ]

    return anyio.run(facts)


def plain(home, session: str) -> list[tuple[str, str | None, str]]:
    """Return what was brought onto a tape; empty where nothing was."""

    async def entries():
        async with tapes(home, read_only=True) as store:
            return await store.read(session)

    try:
        found = anyio.run(entries)
    except TapeNotFound:
        return []
    skipped = ("tape.header", "tape.repair")
    return [
        (one.kind, one.name, str(one.payload.get("content")))
        for one in found
        if one.name not in skipped
    ]
