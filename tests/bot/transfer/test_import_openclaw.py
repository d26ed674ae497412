"""What people said to OpenClaw is on our tapes, without what it wrote in their name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from assistant_exports import bring, said
from exchange_files import write_lines
from test_import_chatgpt import pending

from bot.core.errors import TapeNotFound

HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-02-01T10:00:00.000Z"}
WRAPPED = (
    'Conversation info (untrusted metadata):\n```json\n{"message_id": "5", "sender_id": "42"}\n```\n\n'
    'Sender (untrusted metadata):\n```json\n{"name": "Ada"}\n```\n\n[message_id: 5]\nMy boat is called Nora.'
)


def entry(one: str, parent: str | None, role: str, content, **more):
    return {
        "type": "message",
        "id": one,
        "parentId": parent,
        "timestamp": "2026-02-01T10:00:05.000Z",
        "message": {"role": role, "content": content, "timestamp": 1_769_940_005_000, **more},
    }


def home(path, name: str, *lines):
    write_lines(path / "agents" / "main" / "sessions" / f"{name}.jsonl", [HEADER, *lines])
    return path


def test_a_transcript_is_read_along_its_last_branch(tmp_path, capsys):
    path = home(
        tmp_path / "in",
        "s1",
        {"type": "model_change", "id": "m", "parentId": None, "modelId": "x"},
        entry("a", "m", "user", [{"type": "text", "text": WRAPPED}]),
        entry("b", "a", "assistant", [{"type": "text", "text": "The answer that was left."}]),
        entry(
            "c",
            "a",
            "assistant",
            [
                {"type": "thinking", "thinking": "hm"},
                {"type": "toolCall", "name": "exec", "arguments": {}},
                {"type": "text", "text": "A fine name."},
            ],
        ),
        entry("d", "c", "toolResult", [{"type": "text", "text": "12"}]),
        entry("e", "d", "user", "[Sat 2026-02-14 18:49 GMT-3] It is blue."),
    )
    assert bring(tmp_path, "openclaw", path) == 0
    assert said(tmp_path, "openclaw:s1") == [
        ("user", "My boat is called Nora."),
        ("assistant", "A fine name."),
        ("user", "It is blue."),
    ]
    told = capsys.readouterr().out
    for part in ("1 in branches that were left", "1 thoughts", "2 to and from tools"):
        assert part in told


@pytest.mark.parametrize(
    "text",
    [
        "[cron:backup] Do the backup.",
        "Read HEARTBEAT.md if it exists.",
        "A new session was started via /new or /reset.",
        "System: [2026-02-01 10:00:00 UTC] Node connected.",
    ],
)
def test_what_openclaw_writes_in_the_persons_name_is_left_out(tmp_path, text):
    path = home(
        tmp_path / "in",
        "s1",
        entry("a", None, "user", text),
        entry("b", "a", "assistant", "HEARTBEAT_OK"),
        entry("c", "b", "user", "Words of mine."),
    )
    bring(tmp_path, "openclaw", path)
    assert said(tmp_path, "openclaw:s1") == [("user", "Words of mine.")]


def test_a_group_is_left_out_of_an_archive_as_well(tmp_path):
    path = home(tmp_path / "in", "0a", entry("a", None, "user", "Said in a group."))
    home(path, "0b", entry("a", None, "user", "Said alone."))
    sessions = path / "agents" / "main" / "sessions"
    named = {"agent:main:telegram:group:-100": {"sessionId": "0a"}}
    (sessions / "sessions.json").write_text(json.dumps(named))
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", path)
    assert bring(tmp_path, "openclaw", Path(packed)) == 0
    assert said(tmp_path, "openclaw:0b") == [("user", "Said alone.")]
    with pytest.raises(TapeNotFound):
        said(tmp_path, "openclaw:0a")


def test_memory_files_are_proposals_and_notes_by_day_are_kept(tmp_path):
    path = tmp_path / "in" / "workspace"
    (path / "memory").mkdir(parents=True)
    (path / "MEMORY.md").write_text("# MEMORY.md\n\n## People\n- **Sister:** Paula, a nurse\n")
    (path / "USER.md").write_text(
        "# USER.md\n\n- **Name:** Ada\n- **Pronouns:**\n\n_Learn about them._\n"
    )
    (path / "memory" / "2026-02-01.md").write_text("We fixed the boiler.")
    (path / "memory" / "projects.md").write_text("- The boat needs paint.")
    for _ in range(2):
        assert bring(tmp_path, "openclaw", tmp_path / "in") == 0
    told = {one.text for one in pending(tmp_path, "person:console:local")}
    assert told == {"Sister: Paula, a nurse", "Name: Ada", "The boat needs paint."}
    assert said(tmp_path, "openclaw:note-2026-02-01") == [("assistant", "We fixed the boiler.")]
