"""An import that is killed leaves whole conversations or none, and the next one does the rest."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from assistant_exports import archive, bring, chatgpt, node, root, said, talk
from test_import_chatgpt import pending

from bot.core.errors import TapeNotFound

KILLED = """
import os, signal, sys
from pathlib import Path
from bot.core import append_file, files
from bot.runtime.settings import load_settings
from bot.cli.import_assistants import import_assistant

home, source, wanted = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
write, count = files.write_all, 0

def dying(descriptor, data):
    global count
    count += 1
    if count == wanted:
        os.write(descriptor, bytes(data)[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    write(descriptor, data)

files.write_all = append_file.write_all = dying
settings = load_settings(home=home, timezone="UTC", retention_days=30)
import_assistant(settings, "chatgpt", source)
"""
"""A program that imports and is killed in the middle of a chosen write."""

SESSIONS = ("chatgpt:k1", "chatgpt:k2")


def export(path):
    saved = node("m", "a", "assistant", "Has a cat called Miso.", recipient="bio")
    first = chatgpt("k1", [root(), node("a", "root", text="My cat is called Miso."), saved], "m")
    return archive(path, {"conversations.json": [first, talk("k2", "One.", "Two.")]})


# The lock's owner is written first; then each tape's header and its append, and those of the facts.
@pytest.mark.slow
@pytest.mark.parametrize("write", [2, 3, 5, 6, 8, 10])
def test_a_kill_at_any_write_leaves_no_half_conversation(tmp_path, write, capsys):
    path, home = export(tmp_path / "e.zip"), tmp_path / "home"
    arguments = [str(home), str(path), str(write)]
    command = [sys.executable, "-c", KILLED, *arguments]
    done = subprocess.run(
        command, check=False, timeout=60, env=dict(os.environ), capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    whole = {"chatgpt:k1": 1, "chatgpt:k2": 2}
    for session, count in whole.items():
        with contextlib.suppress(TapeNotFound):
            assert len(said(home, session)) in (0, count)
    for _ in range(2):
        assert bring(home, "chatgpt", path) == 0
    assert "refused" not in capsys.readouterr().out
    assert {session: len(said(home, session)) for session in SESSIONS} == whole
    assert [one.text for one in pending(home, "person:console:local")] == ["Has a cat called Miso."]
