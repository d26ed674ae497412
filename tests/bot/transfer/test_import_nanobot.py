"""What nanobot left is on our tapes, marked as what it is, once."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import anyio
from exchange_files import NANOBOT, read, settings

from bot.bus import Sender
from bot.cli.imports import import_nanobot
from bot.memory.session.recall import recall_passages
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply


def said(entries: list[TapeEntry]) -> list[str]:
    return [str(one.payload.get("content")) for one in entries if one.kind == "message"]


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


def test_an_archive_has_the_memory_as_well(tmp_path, capsys):
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", NANOBOT)
    assert import_nanobot(settings(tmp_path / "a"), NANOBOT) == 0
    told = capsys.readouterr().out
    assert import_nanobot(settings(tmp_path / "b"), Path(packed)) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(told.splitlines())


def test_the_bot_begins_afresh_with_the_memory_and_finds_what_was_said(tmp_path):
    import_nanobot(settings(tmp_path), NANOBOT)

    async def talk() -> None:
        model = ScriptedModel(lambda _: text_reply("fine"))
        async with session_host(tmp_path, model) as host:
            channel = host.add_channel("console")
            asked = await channel.send("hello", chat="local", sender=Sender("local", "Ada"))
            await channel.wait_for_answer(asked)
            fold = await load_fold(TapeService(host.store, "console:local"))
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
