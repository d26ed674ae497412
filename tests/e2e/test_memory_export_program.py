"""The whole program at the console: an archive is made, and holds none of the home's secrets."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from preloaded import environment, run_program

TELEGRAM = "123456789:AAsecretTokenOfTheTelegramBotXYZ0123"
DISCORD = "MTAsecretdiscordtoken.GsecrT.abcdefghijklmnopqrstuvwxyz0123456789AB"


def program(folder: Path, *arguments: str, said: str = "") -> str:
    run = {"environment": environment(folder), "cwd": folder, "given": said, "timeout": 90}
    done = run_program(["-m", "bot", *arguments], **run)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_archive_made_by_the_program_holds_the_words_and_no_token(tmp_path):
    told = program(
        tmp_path, said="I live in Oslo.\n/memory add I like jasmine tea\n/memory export\n"
    )
    [path] = {Path(one) for one in re.findall(r"`(/[^`]+\.zip)`", told)}
    (tmp_path / "home" / ".env").write_text(
        f"TAPEBOT_TELEGRAM_TOKEN={TELEGRAM}\nTAPEBOT_DISCORD_TOKEN={DISCORD}\n"
    )
    (tmp_path / "home" / "access.json").write_text('{"code": "pairing-secret-77"}')
    program(tmp_path, "memory", "export", "console:local", "--to", str(tmp_path / "cli.zip"))
    assert path.parent == tmp_path / "home" / "exports"
    assert told.count(str(path)) == 1
    for made in (path, tmp_path / "cli.zip"):
        with zipfile.ZipFile(made) as archive:
            whole = b"".join(archive.read(name) for name in archive.namelist())
        assert b"jasmine tea" in whole
        for secret in (TELEGRAM, DISCORD, "pairing-secret-77"):
            assert secret.encode() not in whole
