"""What people said to Hermes is on our tapes, whatever release wrote its database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from assistant_exports import NOON, bring, messages, said
from test_import_chatgpt import pending

from bot.core.errors import TapeNotFound

OLD = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, started_at REAL NOT NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content TEXT, timestamp REAL NOT NULL);
"""
NEW = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, chat_type TEXT, model_config TEXT,
    started_at REAL NOT NULL, title TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content TEXT, tool_calls TEXT, timestamp REAL NOT NULL, observed INTEGER DEFAULT 0,
    _compressed_summary INTEGER NOT NULL DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0, display_kind TEXT);
"""


def home(path, schema: str, sessions, rows):
    """A home of Hermes: sessions are dicts, and so are messages."""
    path.mkdir(parents=True)
    with closing(sqlite3.connect(path / "state.db")) as database:
        database.executescript(schema)
        for table, values in (("sessions", sessions), ("messages", rows)):
            for one in values:
                names, marks = ", ".join(one), ", ".join("?" * len(one))
                database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*one.values()])
        database.commit()
    return path


def row(session: str, role: str, content: str | None, at: float = NOON, **more):
    return {"session_id": session, "role": role, "content": content, "timestamp": at, **more}


@pytest.mark.parametrize("schema", [OLD, NEW], ids=["old", "new"])
def test_conversations_are_read_from_any_release(tmp_path, schema):
    path = home(
        tmp_path / "in",
        schema,
        [{"id": "s1", "source": "cli", "started_at": NOON}],
        [
            row("s1", "system", "You are Hermes."),
            row("s1", "user", "My tea is Assam.", NOON + 1),
            row("s1", "assistant", None),
            row("s1", "tool", "12"),
            row("s1", "assistant", "Noted.", NOON + 2),
        ],
    )
    assert bring(tmp_path, "hermes", path, person="telegram:42") == 0
    assert said(tmp_path, "hermes:s1") == [("user", "My tea is Assam."), ("assistant", "Noted.")]
    first = messages(tmp_path, "hermes:s1")[0]
    assert first.meta["sender"]["id"] == "42"
    assert first.meta["ts"] == "2023-11-14T22:13:21.000+00:00"


def test_what_was_rewound_hidden_or_made_by_hermes_is_left_out(tmp_path, capsys):
    parts = [
        {"type": "text", "text": "Look!"},
        {"type": "thinking", "text": "secret"},
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    path = home(
        tmp_path / "in",
        NEW,
        [
            {"id": "s1", "source": "telegram", "started_at": NOON},
            {"id": "s2", "source": "cron", "started_at": NOON},
            {"id": "s3", "source": "telegram", "chat_type": "group", "started_at": NOON},
            {
                "id": "s4",
                "source": "cli",
                "model_config": '{"_delegate_from": "s1"}',
                "started_at": NOON,
            },
        ],
        [
            row("s1", "user", "Rewound.", active=0),
            row("s1", "user", "Compacted, but said.", active=0, compacted=1),
            row("s1", "user", "Hidden.", display_kind="hidden"),
            row("s1", "user", "A summary.", _compressed_summary=1),
            row("s1", "user", "Review the conversation above and update the skill library."),
            row("s1", "user", "Overheard.", observed=1),
            row("s1", "user", "\0json:" + json.dumps(parts)),
            row("s1", "assistant", "<think>secret</think>The answer."),
            *(row(session, "user", "Not the person's.") for session in ("s2", "s3", "s4")),
        ],
    )
    bring(tmp_path, "hermes", path)
    assert said(tmp_path, "hermes:s1") == [
        ("user", "Compacted, but said."),
        ("user", "Look!"),
        ("assistant", "The answer."),
    ]
    assert [one["kind"] for one in messages(tmp_path, "hermes:s1")[1].meta["attachments"]] == [
        "image"
    ]
    told = capsys.readouterr().out
    assert "3 written by Hermes itself" in told
    assert "3 conversations in groups, of schedules or of sub-agents" in told


def test_memory_files_of_all_profiles_are_proposals(tmp_path):
    for folder, text in (
        (tmp_path / "in", "Likes tea.\n§\nHas a boat\ncalled Nora."),
        (tmp_path / "in/profiles/work", "Works at Acme."),
    ):
        (folder / "memories").mkdir(parents=True)
        (folder / "memories" / "USER.md").write_text(text)
    assert bring(tmp_path, "hermes", tmp_path / "in") == 0
    told = {one.text for one in pending(tmp_path, "person:console:local")}
    assert told == {"Likes tea.", "Has a boat called Nora.", "Works at Acme."}


def test_another_database_and_a_damaged_one_are_told(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "state.db").write_bytes(b"SQLite format 3\0" + b"damaged" * 500)
    with pytest.raises(TapeNotFound):
        bring(tmp_path, "hermes", tmp_path / "in")
    assert "cannot be read" in capsys.readouterr().err
    home(tmp_path / "other", "CREATE TABLE t (x);", [], [])
    with pytest.raises(TapeNotFound):
        bring(tmp_path, "hermes", tmp_path / "other")
    assert "has no tables of Hermes" in capsys.readouterr().err
