"""An import that is killed leaves whole conversations or none, and the next one does the rest.

And one of a huge export needs no more memory than its longest conversation.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from assistant_exports import archive, bring, chatgpt, node, root, said, talk
from killed_import import killed_import
from test_import_chatgpt import pending

from bot.core.errors import TapeNotFound

KILLED = killed_import(
    "from bot.cli.import_assistants import import_assistant",
    'import_assistant(settings, "chatgpt", source)',
)

SESSIONS = ("chatgpt:k1", "chatgpt:k2")


def export(path):
    saved = node("m", "a", "assistant", "Has a cat called Miso.", recipient="bio")
    first = chatgpt("k1", [root(), node("a", "root", text="My cat is called Miso."), saved], "m")
    return archive(path, {"conversations.json": [first, talk("k2", "One.", "Two.")]})


# The lock's owner is written first; then each tape's header and its append, and those of the facts.
FAST = [(3, "0.5"), (7, "1")]
WRITES = [(write, part) for write in range(2, 11) for part in ("0", "0.5", "1")]


@pytest.mark.parametrize(
    ("write", "part"),
    [
        pytest.param(*one, marks=() if one in FAST else pytest.mark.slow, id=f"{one[0]}-{one[1]}")
        for one in WRITES
    ],
)
def test_a_kill_at_any_write_leaves_no_half_conversation(tmp_path, write, part, capsys):
    path, home = export(tmp_path / "e.zip"), tmp_path / "home"
    arguments = [str(home), str(path), str(write), part]
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
