"""What is in Claude's export is on our tapes; a file that imports nothing says so."""

from __future__ import annotations

from assistant_exports import archive, bring, claude, messages, said
from test_import_chatgpt import pending


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
