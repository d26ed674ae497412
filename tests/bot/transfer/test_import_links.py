"""Whoever's data is imported, nothing but their own files is read: no link leads elsewhere."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

import pytest
from assistant_exports import bring, claude, talk

from bot.cli.imports import import_jsonl, import_nanobot
from bot.runtime.settings import load_settings
from bot.transfer import foreign

SECRET = "hunter2-outside"
LINES = [{"role": "user", "content": "One of their own."}]
CLAUDE = json.dumps([claude("c1", SECRET)])
TALK = json.dumps([talk("c1", SECRET)])
TOLD = "is a link or no file; skipped"


def own(bot: str) -> dict[str, str]:
    """Return a file that is read, so that there is something to import."""
    session = "\n".join(map(json.dumps, LINES))
    text = {"type": "message", "id": "a", "message": {"role": "user", "content": "One."}}
    return {
        "nanobot": {"sessions/telegram_1.jsonl": session},
        "openclaw": {"agents/main/sessions/s1.jsonl": json.dumps(text)},
        "chatgpt": {"conversations.json": json.dumps([talk("own", "One.")])},
        "claude": {"conversations.json": json.dumps([claude("own", "One.")])},
    }[bot]


NAMES = [
    ("nanobot", "memory/MEMORY.md", f"# Notes\n{SECRET} is a line of memory.\n"),
    ("nanobot", "memory/HISTORY.md", f"[2026-01-01 10:00] {SECRET}\n"),
    ("nanobot", "memory/2026-01-01.md", SECRET),
    ("nanobot", "sessions/telegram_2.jsonl", json.dumps({"role": "user", "content": SECRET})),
    ("openclaw", "workspace/MEMORY.md", f"- {SECRET} is a line of memory.\n"),
    ("openclaw", "workspace/memory/2026-01-01.md", SECRET),
    ("chatgpt", "more/conversations.json", TALK),
    ("claude", "more/conversations.json", CLAUDE),
]


def read_all(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def run(home: Path, bot: str, source: Path) -> None:
    settings = load_settings(home=home, timezone="UTC")
    if bot == "nanobot":
        import_nanobot(settings, source)
    else:
        bring(home, bot, source)


@pytest.mark.parametrize("manner", ["none", "file", "folder", "hard"])
@pytest.mark.parametrize(("bot", "name", "content"), NAMES)
def test_an_import_follows_no_link(tmp_path, capsys, bot, name, content, manner):
    outside, source = tmp_path / "outside" / Path(name).name, tmp_path / "theirs"
    outside.parent.mkdir()
    outside.write_text(content)
    for own_name, text in own(bot).items():
        (source / own_name).parent.mkdir(parents=True, exist_ok=True)
        (source / own_name).write_text(text)
    place = source / name
    if manner == "folder" and not place.parent.exists():
        place.parent.parent.mkdir(parents=True, exist_ok=True)
        place.parent.symlink_to(outside.parent)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        if manner == "none":
            place.write_text(content)
        elif manner == "hard":
            os.link(outside, place)
        else:
            place.symlink_to(outside)
    # The path that the person gives may be a link itself.
    (tmp_path / "given").symlink_to(source)
    run(tmp_path / "home", bot, tmp_path / "given")
    assert (SECRET.encode() in read_all(tmp_path / "home")) == (manner == "none")
    assert (TOLD in capsys.readouterr().err) == (manner != "none")


@pytest.mark.parametrize("bot", ["chatgpt", "claude"])
@pytest.mark.parametrize("kind", ["link", "device", "pipe", "above", "absolute"])
def test_a_member_of_an_archive_that_is_no_file_is_told_and_left_out(tmp_path, capsys, bot, kind):
    path = tmp_path / "export.zip"
    name = {"above": "../conversations.json", "absolute": "/x/conversations.json"}.get(
        kind, "more/conversations.json"
    )
    mode = {"link": stat.S_IFLNK, "device": stat.S_IFCHR, "pipe": stat.S_IFIFO}.get(kind, 0)
    member = zipfile.ZipInfo(name)
    member.external_attr = (mode | 0o644) << 16
    [(own_name, text)] = own(bot).items()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(own_name, text)
        archive.writestr(member, TALK if bot == "chatgpt" else CLAUDE)
    run(tmp_path / "home", bot, path)
    assert SECRET.encode() not in read_all(tmp_path / "home")
    assert TOLD in capsys.readouterr().err


def test_a_member_that_cannot_be_opened_costs_only_itself(tmp_path, capsys):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", own("chatgpt")["conversations.json"])
        archive.writestr("more/conversations.json", TALK)
        place = archive.getinfo("more/conversations.json").header_offset
    data = bytearray(path.read_bytes())
    data[place : place + 4] = b"torn"
    path.write_bytes(data)
    run(tmp_path / "home", "chatgpt", path)
    assert b"chatgpt:own" in read_all(tmp_path / "home")
    assert SECRET.encode() not in read_all(tmp_path / "home")
    assert "cannot be read to its end" in capsys.readouterr().err


def test_a_bomb_is_read_to_its_limit_and_costs_only_itself(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(foreign, "_ALWAYS_READ", 1_000)
    path = tmp_path / "export.zip"
    bomb = '[{"mapping":{"a":"' + "a" * (8 << 20) + '"}}]'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", bomb)
        archive.writestr("more/conversations.json", own("chatgpt")["conversations.json"])
    run(tmp_path / "home", "chatgpt", path)
    assert b"chatgpt:own" in read_all(tmp_path / "home")
    assert capsys.readouterr().err.count("expands to far more than its size") == 1


def test_an_exported_tape_that_is_a_link_in_the_folder_is_refused(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "outside.jsonl").write_text(SECRET)
    (tmp_path / "folder" / "a.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (tmp_path / "home" / "tapes").mkdir(parents=True)
    assert import_jsonl(load_settings(home=tmp_path / "home"), tmp_path / "folder") == 1
    assert "is not a regular file" in capsys.readouterr().err
