"""What bub left is on our tapes: archives first, nothing with a meaning it had not there."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from hashlib import md5

import anyio
import pytest
from exchange_files import BUB, read, settings, tapes, write_lines

from bot.cli.imports import import_bub
from bot.core.errors import TapeNotFound
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

TELEGRAM = "telegram:5151"


def brought(home) -> list[TapeEntry]:
    return anyio.run(read, home, TELEGRAM)


def named(key: str, workspace: str = "0" * 16) -> str:
    return f"{workspace}__{md5(key.encode()).hexdigest()[:16]}.jsonl"


def test_sessions_are_known_by_what_they_say_and_the_archive_comes_first(tmp_path, capsys):
    assert import_bub(settings(tmp_path), BUB) == 0
    told = capsys.readouterr()
    assert "imported\ttelegram:5151: 5 messages" in told.out
    assert "imported\tconsole:local: 2 messages (was cli_session)" in told.out
    said = [one.payload for one in brought(tmp_path) if one.kind == "message"]
    assert [one["content"] for one in said] == [
        "The boiler is a Vaillant.",
        "Good to know.",
        "What is the pressure?",
        "12.5 bar; that is too high.",
        "plain words",
    ]
    asked = [one.meta for one in brought(tmp_path) if one.kind == "message"][2]
    assert asked["sender"] == {"id": "5151", "name": "Ada Byron"}
    assert asked["sent"] == "2026-03-01T09:00:00.000+00:00"
    assert asked["ts"] == "2026-03-01T09:00:02.000+00:00"
    assert asked["quote"] == "the boiler manual"
    cli = [one for one in anyio.run(read, tmp_path, "console:local") if one.kind == "message"]
    assert cli[1].meta["ts"] == "2026-03-01T09:00:01.500+00:00"
    marked = {one.meta.get("origin") for one in brought(tmp_path)[1:]}
    assert marked == {"import:bub"}


def test_results_are_paired_with_their_calls_by_place(tmp_path):
    import_bub(settings(tmp_path), BUB)
    entries = brought(tmp_path)
    (call,) = (one for one in entries if one.kind == "tool_call")
    results = [one.payload for one in entries if one.kind == "tool_result"]
    assert [(one["id"], one["name"]) for one in call.calls] == [
        ("c1", "bash"),
        ("c2", "telegram.send"),
    ]
    assert json.loads(call.calls[1]["arguments"]) == {"text": "hi"}
    assert [(one["call_id"], one["name"], one["content"]) for one in results] == [
        ("c1", "bash", "12.5 bar"),
        ("c2", "telegram.send", '{"ok": true}'),
    ]


def test_its_events_and_anchors_mean_nothing_here_that_they_did_not_there(tmp_path):
    import_bub(settings(tmp_path), BUB)
    entries = brought(tmp_path)
    names = [one.name for one in entries if one.name]
    assert "turn.start" not in names
    assert "memory/open" not in names
    assert "bub/memory/open" in names
    assert "handoff" not in names
    events = [one.data["bub"] for one in entries if one.name in ("bub.event", "bub.error")]
    assert [one.get("name") or one["kind"] for one in events] == ["run", "turn.start", "provider"]
    assert all("keep_from" not in one.data for one in entries)

    async def fold():
        async with tapes(tmp_path) as store:
            tape = TapeService(store, TELEGRAM)
            return await load_fold(tape, max_messages=100, max_tokens=100_000)

    folded = anyio.run(fold)
    assert folded.turns.open_turn is None
    assert folded.turns.usage.prompt_tokens == 0
    assert folded.zone.snapshot.version == 0
    assert folded.window.conversation() == []
    # What is before its last anchor is behind it; what follows is still to be consolidated.
    assert folded.window.unconsolidated == 1
    assert [one.payload["content"] for one in entries if one.kind == "system"] == ["You are Bub."]


def test_what_is_damaged_unknown_or_doubled_is_told_and_costs_itself_alone(tmp_path, capsys):
    import_bub(settings(tmp_path), BUB)
    told = capsys.readouterr().err
    for line in (
        "line 7: is a duplicate",
        "line 15: is of the unknown kind 'hologram'",
        "line 16: cannot be read",
        "line 17: is not an entry",
        "a fork that was not merged",
    ):
        assert line in told


def test_a_tape_that_does_not_name_its_session_waits_for_its_name(tmp_path, capsys):
    import_bub(settings(tmp_path), BUB)
    assert "does not name its session" in capsys.readouterr().err
    assert import_bub(settings(tmp_path), BUB, sessions=["telegram:5", "matrix:!room"]) == 0
    told = capsys.readouterr()
    assert "imported\tmatrix:!room: 1 message" in told.out
    assert told.out.count("known\t") == 2
    assert "name its session" not in told.err


def test_one_tape_alone_is_whose_it_is_said_to_be(tmp_path):
    file = tmp_path / "0123456789abcdef__0123456789abcdef.jsonl"
    write_lines(file, [{"id": 1, "kind": "message", "payload": {"role": "user", "content": "hi"}}])
    with pytest.raises(TapeNotFound, match="found nothing to import"):
        import_bub(settings(tmp_path), file)
    assert import_bub(settings(tmp_path), file, sessions=["telegram:9"]) == 0
    assert anyio.run(read, tmp_path, "telegram:9")[-2].payload["content"] == "hi"


def test_older_names_hold_the_session_itself(tmp_path):
    folder = tmp_path / "theirs" / "tapes"
    entry = {"id": 1, "kind": "message", "payload": {"role": "user", "content": "hi"}, "meta": {}}
    write_lines(folder / ("0" * 32 + "__telegram%3A77.jsonl"), [entry])
    write_lines(folder / ("0" * 32 + "__cli.jsonl"), [entry])
    days = {str(datetime.now(UTC).date())}
    assert import_bub(settings(tmp_path), tmp_path / "theirs") == 0
    days.add(str(datetime.now(UTC).date()))

    async def names():
        async with tapes(tmp_path, read_only=True) as store:
            return await store.list_tapes()

    assert anyio.run(names) == ["console:local", "telegram:77"]
    times = {one.meta["ts"][:10] for one in anyio.run(read, tmp_path, "telegram:77")}
    assert times
    assert times <= days


def test_a_second_import_adds_nothing(tmp_path, capsys):
    import_bub(settings(tmp_path), BUB)
    before = brought(tmp_path)
    capsys.readouterr()
    assert import_bub(settings(tmp_path), BUB) == 0
    assert capsys.readouterr().out.count("known\t") == 2
    assert brought(tmp_path) == before


def test_several_messages_that_came_at_once_are_several_messages(tmp_path):
    texts = [json.dumps({"message": text, "message_id": 1, "sender_id": text}) for text in "ab"]
    content = "channel=$telegram|chat_id=-100\n---Date: x---\n" + "\n".join(texts)
    entry = {"id": 1, "kind": "message", "payload": {"role": "user", "content": content}}
    plain = {"id": 2, "kind": "message", "payload": {"role": "user", "content": '{"message": 1}'}}
    write_lines(tmp_path / "t" / named("telegram:-100"), [entry, plain])
    assert import_bub(settings(tmp_path), tmp_path / "t") == 0
    heard = [one for one in anyio.run(read, tmp_path, "telegram:-100") if one.kind == "message"]
    assert [one.payload["content"] for one in heard] == ["a", "b", '{"message": 1}']
    assert [one.meta["sender"]["id"] for one in heard] == ["a", "b", "unknown"]
    assert all(one.meta["private"] is False for one in heard)


def test_entries_that_say_the_same_in_archive_and_tape_are_both_kept(tmp_path):
    entry = {"id": 1, "kind": "message", "payload": {"role": "user", "content": "hi"}, "meta": {}}
    name = named("cli_session")
    write_lines(tmp_path / "t" / name, [entry])
    shutil.copy(tmp_path / "t" / name, tmp_path / "t" / f"{name}.20260101T000000Z.bak")
    assert import_bub(settings(tmp_path), tmp_path / "t") == 0
    heard = [one for one in anyio.run(read, tmp_path, "console:local") if one.kind == "message"]
    assert len(heard) == 2


def test_what_is_no_file_is_told_and_the_others_come(tmp_path, capsys):
    theirs = tmp_path / "theirs"
    said = {"id": 1, "kind": "message", "payload": {"role": "user", "content": "hi"}, "meta": {}}
    write_lines(theirs / "ab__telegram%3A1.jsonl", [said])
    (theirs / "ab__telegram%3A2.jsonl").symlink_to(tmp_path / "nowhere")
    assert import_bub(settings(tmp_path), theirs) == 0
    told = capsys.readouterr()
    assert "imported\ttelegram:1: 1 message" in told.out
    assert "ab__telegram%3A2.jsonl: is not a file" in told.err
