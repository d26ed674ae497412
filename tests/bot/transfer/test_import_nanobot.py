"""What nanobot left is on our tapes, marked as what it is, once."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from exchange_files import NANOBOT, read, settings, tapes, write_lines

from bot.agent.consolidation.policy import EntryRange
from bot.bus import Sender
from bot.cli.imports import import_nanobot
from bot.core.errors import SettingsError, TapeLocked, TapeNotFound
from bot.memory.gate.memory_validation import MAX_MEMORY_BYTES
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.imports import IMPORTED_EVENT, SESSION_IMPORTED
from bot.memory.session.recall import recall_passages
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone_snapshot import (
    MAX_NOTE_BYTES,
)
from bot.tape.entries import MEMORY_CONSOLIDATED, TapeEntry, message
from bot.tape.service import TapeService
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply


def said(entries: list[TapeEntry]) -> list[str]:
    return [str(one.payload.get("content")) for one in entries if one.kind == "message"]


async def folded(home, session: str) -> SessionFold:
    async with tapes(home) as store:
        tape = TapeService(store, session)
        return await load_fold(tape, max_messages=200, max_tokens=100_000)


def test_every_session_comes_over_with_its_times_senders_and_tools(tmp_path, capsys):
    assert import_nanobot(settings(tmp_path), NANOBOT) == 0
    told = capsys.readouterr()
    assert "imported\tconsole:local: 4 messages" in told.out
    entries = anyio.run(read, tmp_path, "console:local")
    first = next(one for one in entries if one.kind == "message")
    assert first.payload == {"role": "user", "content": "My sister Nadia lives in Lisbon."}
    assert first.meta["ts"] == first.meta["sent"] == "2026-02-01T09:00:05.120+00:00"
    assert first.meta["private"] is True
    call = next(one for one in entries if one.kind == "tool_call")
    result = next(one for one in entries if one.kind == "tool_result")
    assert call.calls[0]["name"] == "exec"
    assert json.loads(call.calls[0]["arguments"]) == {"command": "echo 1024"}
    assert result.payload == {
        "call_id": "call_a1",
        "name": "exec",
        "content": "1024",
        "status": "ok",
    }
    assert said(anyio.run(read, tmp_path, "discord:777")) == ["anyone here?", "I am."]
    imported = [one for one in entries if one.name != "tape.header"]
    assert {one.meta.get("origin") for one in imported} == {"import:nanobot"}


def test_what_is_damaged_costs_itself_alone_and_is_told_with_its_line(tmp_path, capsys):
    assert import_nanobot(settings(tmp_path), NANOBOT) == 0
    told = capsys.readouterr().err
    for line in (
        "line 3: cannot be read",
        "line 5: is not a message",
        "line 6: is not a message",
        "line 7: cannot be read",
        "line 11: cannot be read",
        "parts of it are not text",
        "history.jsonl, line 3: cannot be read",
        "history.jsonl, line 4: is not history",
    ):
        assert line in told
    entries = anyio.run(read, tmp_path, "telegram:4242")
    assert said(entries) == [
        "Wie heißt das Café in Köln? 你好",
        "one byte \ufffd is bad",
        "Café Reichard.",
    ]
    files = next(one for one in entries if one.kind == "message").meta["attachments"]
    assert [(one["kind"], one["name"]) for one in files] == [
        ("image", "image"),
        ("document", "receipt.pdf"),
    ]


def test_a_second_import_adds_nothing_and_says_so(tmp_path, capsys):
    import_nanobot(settings(tmp_path), NANOBOT)
    before = {p.name: p.read_bytes() for p in (tmp_path / "tapes").glob("*.jsonl")}
    capsys.readouterr()
    assert import_nanobot(settings(tmp_path), NANOBOT) == 0
    assert capsys.readouterr().out.count("already imported; nothing to do") == 3
    assert {p.name: p.read_bytes() for p in (tmp_path / "tapes").glob("*.jsonl")} == before


def test_a_dry_run_says_the_same_and_makes_no_file(tmp_path, capsys):
    assert import_nanobot(settings(tmp_path / "home"), NANOBOT, dry_run=True) == 0
    dry = capsys.readouterr().out
    assert not (tmp_path / "home").exists()
    import_nanobot(settings(tmp_path / "home"), NANOBOT)
    assert dry.replace("would import", "imported") == capsys.readouterr().out


def test_a_session_that_has_grown_here_or_there_is_left_as_it_is(tmp_path, capsys):
    async def talk() -> None:
        async with tapes(tmp_path) as store:
            await store.create_tape("discord:777")
            await store.append("discord:777", message("user", "ours"))

    anyio.run(talk)
    theirs = tmp_path / "theirs"
    shutil.copytree(NANOBOT, theirs)
    assert import_nanobot(settings(tmp_path), theirs) == 1
    assert "refused\tdiscord:777: already has a conversation" in capsys.readouterr().out
    assert said(anyio.run(read, tmp_path, "discord:777")) == ["ours"]
    before = anyio.run(read, tmp_path, "console:local")
    with (theirs / "workspace/sessions/cli_direct.jsonl").open("a") as file:
        file.write('{"role": "user", "content": "later", "timestamp": "2026-02-05T00:00:00"}\n')
    assert import_nanobot(settings(tmp_path), theirs) == 1
    assert (
        "refused\tconsole:local: already has a different or shorter import from nanobot"
        in capsys.readouterr().out
    )
    assert anyio.run(read, tmp_path, "console:local") == before


def test_a_tape_on_which_nothing_happened_takes_it(tmp_path):
    async def touch() -> None:
        async with session_host(tmp_path, ScriptedModel()) as host:
            tape = TapeService(host.store, "discord:777")
            await tape.ensure_bootstrap_anchor()
            await host.store.reset("discord:777")

    anyio.run(touch)
    assert import_nanobot(settings(tmp_path), NANOBOT) == 0
    assert said(anyio.run(read, tmp_path, "discord:777")) == ["anyone here?", "I am."]


def test_the_bot_begins_afresh_with_the_memory_and_finds_what_was_said(tmp_path):
    import_nanobot(settings(tmp_path), NANOBOT)

    async def talk() -> None:
        model = ScriptedModel(lambda _: text_reply("fine"))
        async with session_host(tmp_path, model) as host:
            channel = host.add_channel("console")
            asked = await channel.send("hello", chat="local", sender=Sender("local", "Ada"))
            await channel.wait_for_answer(asked)
            fold = await load_fold(
                TapeService(host.store, "console:local"), max_messages=200, max_tokens=100_000
            )
            found = await recall_passages(
                TapeService(host.store, "console:local"),
                fold.zone.snapshot,
                "Nadia Lisbon",
                days=30,
                now=datetime.now(UTC),
                timezone=UTC,
            )
        seen = next(one for one in model.requests if one.purpose == "turn").messages
        assert "jasmine tea" in seen[0]["content"]
        assert "brought over from nanobot" in seen[0]["content"]
        assert len(seen) == 2
        texts = [one.text for one in found]
        assert "My sister Nadia lives in Lisbon." in texts
        assert any("flight to Lisbon" in text for text in texts)

    anyio.run(talk)


def test_memory_goes_to_one_chat_and_history_of_a_session_to_that(tmp_path):
    import_nanobot(settings(tmp_path), NANOBOT)
    console = anyio.run(folded, tmp_path, "console:local")
    others = [anyio.run(folded, tmp_path, one) for one in ("telegram:4242", "discord:777")]
    assert console.zone.snapshot.long_term == (
        "# Long-term Memory\n\n## User Information\n\n- Name: Ada\n- Favourite drink: jasmine tea"
    )
    assert all(not one.zone.snapshot.long_term for one in others)
    history = [
        (one.meta["ts"][:16], one.data["entry"])
        for one in anyio.run(read, tmp_path, "console:local")
        if one.name == HISTORY_EVENT
    ]
    assert (
        "2026-02-01T09:10",
        "[2026-02-01 09:10] Ada told of her sister Nadia in Lisbon.\nShe visits in May.",
    ) in history
    assert any(text.endswith("[2026-02-02 06:59] ASSISTANT: yes") for _, text in history)
    assert not any("closed" in text for _, text in history)
    telegram = [
        one for one in anyio.run(read, tmp_path, "telegram:4242") if one.name == HISTORY_EVENT
    ]
    assert [one.data["entry"] for one in telegram] == ["[2026-02-04 11:00] The café was closed."]


def test_the_chat_that_gets_the_memory_can_be_named(tmp_path, capsys):
    assert import_nanobot(settings(tmp_path), NANOBOT, memory_to="telegram:4242") == 0
    telegram = anyio.run(folded, tmp_path, "telegram:4242")
    assert "jasmine tea" in telegram.zone.snapshot.long_term
    assert not anyio.run(folded, tmp_path, "console:local").zone.snapshot.long_term
    capsys.readouterr()
    # It stays there without being named again.
    assert import_nanobot(settings(tmp_path), NANOBOT) == 0
    assert capsys.readouterr().out.count("known\t") == 3
    with pytest.raises(SettingsError, match="not a session such as"):
        import_nanobot(settings(tmp_path), NANOBOT, memory_to="nobody")


def test_what_nanobot_had_consolidated_is_not_consolidated_again(tmp_path):
    import_nanobot(settings(tmp_path), NANOBOT)
    entries = anyio.run(read, tmp_path, "console:local")
    fold = anyio.run(folded, tmp_path, "console:local")
    settled = next(one for one in entries if one.name == MEMORY_CONSOLIDATED)
    by_id = {one.id: one for one in entries}
    assert by_id[settled.data["through"]].kind == "tool_call"
    assert fold.window.unconsolidated == 1
    assert fold.window.consolidated_through == settled.data["through"]
    assert fold.boundary is not None
    assert fold.boundary.name == SESSION_IMPORTED
    assert EntryRange(fold.window.consolidated_through + 1, fold.version)
    assert fold.window.conversation() == []


def test_memory_too_long_for_the_prompt_is_kept_whole_as_history(tmp_path):
    facts = [f"- fact {number} is {'word ' * 10}" for number in range(400)]
    theirs = tmp_path / "theirs"
    folder = theirs / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_bytes(b"\xef\xbb\xbf" + "\n".join(facts).encode())
    today = datetime.now(UTC).date()
    notes = {
        today: "short",
        today - timedelta(days=1): "\n".join(f"note {i} " + "x" * 80 for i in range(100)),
        today - timedelta(days=300): "old",
    }
    for day, note in notes.items():
        (folder / f"{day}.md").write_text(f"# {day}\n\n{note}\n")
    assert import_nanobot(settings(tmp_path), theirs) == 0
    fold = anyio.run(folded, tmp_path, "console:local")
    zone = fold.zone.snapshot
    history = [
        str(one.data["entry"])
        for one in anyio.run(read, tmp_path, "console:local")
        if one.name == HISTORY_EVENT
    ]
    assert zone.long_term.startswith("- fact 0 is")
    assert len(zone.long_term.encode()) <= MAX_MEMORY_BYTES // 2
    everything = zone.long_term + "\n".join(history)
    assert all(f"fact {number} is" in everything for number in range(400))
    assert [one.date for one in zone.dailies] == sorted(map(str, notes))[1:]
    assert all(len(one.content.encode()) <= MAX_NOTE_BYTES for one in zone.dailies)
    days = "\n".join(one.content for one in zone.dailies) + "\n".join(history)
    assert all(f"note {number} x" in days for number in range(100))
    assert f"Notes of {today - timedelta(days=300)}: old" in history
    assert all(len(one) <= 400 for one in history)


@pytest.mark.parametrize("text", ["(nothing)", "# Memory\n\n(Things to remember)\n", ""])
def test_a_memory_that_says_nothing_is_none(tmp_path, text):
    theirs = tmp_path / "theirs"
    shutil.copytree(NANOBOT, theirs)
    (theirs / "workspace/memory/MEMORY.md").write_text(text)
    import_nanobot(settings(tmp_path), theirs)
    assert anyio.run(folded, tmp_path, "console:local").zone.snapshot.long_term == ""


def test_keys_become_ours_whatever_they_hold_and_none_is_lost(tmp_path):
    keys = {
        "cli:direct": "console:local",
        "cli:default": "console:default",
        "telegram:-100:topic:7": "telegram:-100:7",
        "heartbeat": "nanobot:heartbeat",
        "Cron:a job": "cron:a_job",
        "slack:C1:thread:99.1": "slack:C1:99.1",
        "cron:a_job": "cron:a_job-2",
        "telegram:\ud800": "telegram:?",
    }
    folder = tmp_path / "theirs" / "sessions"
    for place, key in enumerate(keys):
        head = {"_type": "metadata", "key": key, "created_at": "2026-01-01T00:00:00"}
        write_lines(folder / f"{place}.jsonl", [head, {"role": "user", "content": key}])
    stem = base64.urlsafe_b64encode(b"whatsapp:49@s.net").decode().rstrip("=")
    write_lines(folder / f"{stem}.jsonl", [{"role": "user", "content": "whatsapp:49@s.net"}])
    keys["whatsapp:49@s.net"] = "whatsapp:49@s.net"
    assert import_nanobot(settings(tmp_path), tmp_path / "theirs") == 0
    found = {session: said(anyio.run(read, tmp_path, session)) for session in keys.values()}
    assert found == {session: [key] for key, session in keys.items()}
    group = anyio.run(read, tmp_path, "telegram:-100:7")
    assert next(one for one in group if one.kind == "message").meta["private"] is False


def test_the_newest_releases_database_is_read_before_what_it_was_made_of(tmp_path, capsys):
    theirs = tmp_path / "theirs"
    folder = theirs / "sessions" / ("a" * 32)
    head = {"_type": "metadata", "key": "telegram:1", "created_at": "2026-01-01T00:00:00"}
    write_lines(folder / "x.jsonl", [head, {"role": "user", "content": "old"}])
    with sqlite3.connect(folder / "sessions.sqlite3") as database:
        database.executescript(
            "PRAGMA journal_mode=WAL;"
            "CREATE TABLE sessions (key TEXT PRIMARY KEY, created_at TEXT, updated_at TEXT,"
            " metadata TEXT, provider_state TEXT, last_archived INTEGER);"
            "CREATE TABLE messages (session_key TEXT, position INTEGER, record TEXT);"
        )
        database.execute(
            "INSERT INTO sessions VALUES"
            " ('telegram:1', '2026-01-01T00:00:00', '2026-01-02', '{}', NULL, 1)"
        )
        for place, content in enumerate(("old", "new")):
            record = json.dumps({"role": "user", "content": content})
            database.execute("INSERT INTO messages VALUES ('telegram:1', ?, ?)", (place, record))
        database.execute("INSERT INTO messages VALUES ('telegram:1', 9, '{torn')")
    database.close()
    assert import_nanobot(settings(tmp_path), theirs) == 0
    assert said(anyio.run(read, tmp_path, "telegram:1")) == ["old", "new"]
    told = capsys.readouterr().err
    assert "message 9: is not a message" in told
    assert "another copy of telegram:1" in told


def test_huge_lines_deep_ones_and_other_encodings_harm_nothing(tmp_path, capsys):
    folder = tmp_path / "theirs" / "sessions"
    head = {"_type": "metadata", "key": "telegram:1", "created_at": "2026-01-01T00:00:00"}
    huge = "word " * 1_000_000
    deep = b'{"role": "user", "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    infinite = b'{"role": "user", "content": "x", "timestamp": 1e999}'
    surrogate = b'{"role": "user", "content": "half \\ud800"}'
    lines = [head, {"role": "user", "content": huge}, deep, infinite, surrogate]
    write_lines(folder / "a.jsonl", lines)
    wide = [{**head, "key": "telegram:2"}, {"role": "user", "content": "größer\u2028weiter"}]
    text = "\r\n".join(json.dumps(one, ensure_ascii=False) for one in wide)
    (folder / "b.jsonl").write_bytes(text.encode("utf-16"))
    assert import_nanobot(settings(tmp_path), tmp_path / "theirs") == 0
    assert said(anyio.run(read, tmp_path, "telegram:1")) == [huge, "x", "half \ud800"]
    assert said(anyio.run(read, tmp_path, "telegram:2")) == ["größer\u2028weiter"]
    assert "a.jsonl, line 3: cannot be read" in capsys.readouterr().err


def test_nothing_there_is_said(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(TapeNotFound, match="found nothing to import"):
            import_nanobot(settings(tmp_path), path)


def test_beside_a_running_tapebot_it_is_refused_with_what_to_do(tmp_path):
    async def beside() -> None:
        async with tapes(tmp_path):
            await anyio.to_thread.run_sync(refused)

    def refused() -> None:
        with pytest.raises(TapeLocked, match="stop it"):
            import_nanobot(settings(tmp_path), NANOBOT)

    anyio.run(beside)


def test_the_import_is_noted_first_of_all(tmp_path):
    import_nanobot(settings(tmp_path), NANOBOT)
    entries = anyio.run(read, tmp_path, "telegram:4242")
    assert [one.name for one in entries[:3]] == ["tape.header", "session/start", IMPORTED_EVENT]
    assert entries[2].data["key"] == "telegram:4242"
    assert entries[2].data["source"] == "workspace/sessions/telegram_4242.jsonl"


def test_what_is_no_file_is_told_and_the_others_come(tmp_path, capsys):
    folder = tmp_path / "theirs" / "sessions"
    write_lines(folder / "telegram_1.jsonl", [{"role": "user", "content": "hi"}])
    (folder / "telegram_2.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "telegram_3.jsonl")
    assert import_nanobot(settings(tmp_path), tmp_path / "theirs") == 0
    told = capsys.readouterr()
    assert "imported\ttelegram:1: 1 message" in told.out
    assert told.err.count("is a link or no file; skipped") == 2
