"""What is in Claude's export is on our tapes; a file that imports nothing says so."""

from __future__ import annotations

import json

import pytest
from assistant_exports import archive, bring, claude, messages, said
from test_import_chatgpt import pending

from bot.core.errors import TapeNotFound


def test_conversations_memory_and_the_rest_of_an_archive(tmp_path, capsys):
    path = archive(
        tmp_path / "data.zip",
        {
            "conversations.json": [claude("u-1", "My tea is Assam.", "Good choice.")],
            "users.json": [{"uuid": "account", "full_name": "Anna"}],
            "projects.json": [{"uuid": "p", "name": "Garden", "docs": []}],
            "memories.json": [
                {
                    "conversations_memory": "**Work**\n\nAnna is a teacher.\n\n**Personal**\n\n- Has two kids.",
                    "project_memories": {"p": "Plans a pond."},
                    "account_uuid": "account",
                }
            ],
        },
    )
    assert bring(tmp_path, "claude", path) == 0
    told = capsys.readouterr()
    assert said(tmp_path, "claude:u-1") == [
        ("user", "My tea is Assam."),
        ("assistant", "Good choice."),
    ]
    assert messages(tmp_path, "claude:u-1")[0].meta["ts"] == "2025-03-01T10:00:00.500+00:00"
    facts = pending(tmp_path, "person:console:local")
    assert {(one.subject, one.text) for one in facts} == {
        ("Work", "Anna is a teacher."),
        ("Personal", "Has two kids."),
        ("A project", "Plans a pond."),
    }
    assert "projects.json: instructions and documents of projects are not read" in told.err
    assert "users.json: an account is no conversation" in told.err


def test_archives_in_a_folder_are_read(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    archive(folder / "conversations-000.zip", {"conversations.json": [claude("u-1", "One.")]})
    archive(
        folder / "memories-000.zip", {"memories/a.json": {"conversations_memory": "Likes tea."}}
    )
    assert bring(tmp_path, "claude", folder) == 0
    assert said(tmp_path, "claude:u-1") == [("user", "One.")]
    assert [one.text for one in pending(tmp_path, "person:console:local")] == ["Likes tea."]


def test_thoughts_and_tools_are_left_out_and_files_are_told(tmp_path, capsys):
    conversation = claude("u-1", "Read this.", "Done.")
    first, second = conversation["chat_messages"]
    first["attachments"] = [{"file_name": "a.txt", "extracted_content": "The file's words."}]
    first["files"] = [{"file_name": "a.txt"}, {"file_name": "b.png"}]
    second["content"] = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "name": "search", "input": {}},
        {"type": "tool_result", "content": []},
        {"type": "text", "text": "Done."},
    ]
    (tmp_path / "conversations.json").write_text(json.dumps([conversation]))
    bring(tmp_path, "claude", tmp_path / "conversations.json")
    asked, answered = messages(tmp_path, "claude:u-1")
    assert answered.payload["content"] == "Done."
    assert [(one["name"], one.get("text")) for one in asked.meta["attachments"]] == [
        ("a.txt", "The file's words."),
        ("b.png", None),
    ]
    assert "left out\t3: 2 to and from tools, 1 thoughts" in capsys.readouterr().out


def test_of_several_branches_the_newest_is_shown(tmp_path):
    conversation = claude("u-1", "First try.", "First answer.", "Second try.", "Second answer.")
    start = "00000000-0000-4000-8000-000000000000"
    for message, parent in zip(
        conversation["chat_messages"], [start, "u-1-0", start, "u-1-2"], strict=True
    ):
        message["parent_message_uuid"] = parent
    (tmp_path / "conversations.json").write_text(json.dumps([conversation]))
    bring(tmp_path, "claude", tmp_path / "conversations.json")
    assert said(tmp_path, "claude:u-1") == [
        ("user", "Second try."),
        ("assistant", "Second answer."),
    ]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("users.json", [{"uuid": "1"}], "an account is no conversation"),
        ("projects.json", [{"uuid": "1"}], "documents of projects are not read"),
        ("conversations.json", [], "holds no conversation and no memory"),
        ("conversations.json", [{"uuid": "1"}], "object 1 is no conversation of Claude"),
        ("other.txt", "words", "is no JSON array"),
    ],
)
def test_a_file_that_imports_nothing_says_so(tmp_path, name, content, why, capsys):
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(TapeNotFound, match="found nothing to import from Claude"):
        bring(tmp_path, "claude", tmp_path / name)
    assert why in capsys.readouterr().err
