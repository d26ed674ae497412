"""The wheel, alone: what it holds, what a plain install of it does, and what it says of what is missing."""

from __future__ import annotations

import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from installs import Install, install

from docs.first_day.wheels import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.family("plain install")]

TELEGRAM = "TAPEBOT_TELEGRAM_TOKEN=123456789:" + "a" * 35
DISCORD = "TAPEBOT_DISCORD_TOKEN=" + ".".join(("a" * 24, "b" * 6, "c" * 27))
MISSING = {
    "models": (["TAPEBOT_MODEL=openai/gpt-5", "OPENAI_API_KEY=key"], ""),
    "local": (["TAPEBOT_MODEL=gguf:{home}/model.gguf"], "doctor"),
    "embeddings-local": (["TAPEBOT_EMBEDDING_MODEL=local"], ""),
    "embeddings": (["TAPEBOT_EMBEDDING_MODEL=openai/text-embedding-3-small"], ""),
    "telegram": ([TELEGRAM, "TAPEBOT_WEB_LISTEN=off"], ""),
    "discord": ([DISCORD, "TAPEBOT_WEB_LISTEN=off"], ""),
    "tape-server": (["TAPEBOT_TAPE_SERVER_LISTEN=127.0.0.1:0"], "tape-server"),
    "remote": (["TAPEBOT_TAPE_STORE=http://127.0.0.1:9", "TAPEBOT_TAPE_STORE_TOKEN=a"], ""),
    "postgres": (["TAPEBOT_DATABASE_URL=postgresql://u:p@127.0.0.1:9/x"], ""),
    "web": (["TAPEBOT_WEB_LISTEN=127.0.0.1:0"], ""),
    "mcp": (['TAPEBOT_MCP={{"files": {{"command": "true"}}}}'], "doctor"),
    "web-tools": (["TAPEBOT_WEB_FETCH=on"], ""),
    "backup": (["TAPEBOT_BACKUP_PASSPHRASE=ten letters or more"], "backup --to {home}-backups"),
    "code": (["TAPEBOT_CODE=on"], ""),
    "operate": (["TAPEBOT_OPERATE_LISTEN=127.0.0.1:0"], ""),
}
NOT_PROVOKED = {"all", "documents"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """A plain install of the wheel, in a virtual environment of its own."""
    return install(tmp_path_factory.mktemp("plain"))


def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_what_runs_and_nothing_else(plain):
    held = files(plain.wheel)
    tracked = subprocess.run(
        ["git", "ls-files", "bot", "channels"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    wanted = {name for name in tracked.stdout.splitlines() if not name.endswith(".po")}
    assert wanted
    assert wanted <= held
    assert "bot/py.typed" in held
    others = {name for name in held - wanted if not name.startswith("tapebot-")}
    # What is not committed yet is built, too.
    assert {name for name in others if not (ROOT / name).is_file()} == set()
    assert {name.split("/")[0] for name in others} <= {"bot", "channels"}


def test_it_is_installed_and_answers_where_no_repository_is(plain, tmp_path):
    said = plain.run(
        "", stdin="My cat is called Mia.\nWhat is my cat called?\n", home=tmp_path / "h"
    )
    assert said.returncode == 0, said.stderr
    assert "Mia" in said.stdout.splitlines()[-1]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert plain.run("--version", home=tmp_path / "h").stdout == f"{version}\n"


@pytest.mark.parametrize("extra", MISSING)
def test_what_needs_an_extra_says_how_to_add_it(plain, tmp_path, extra):
    home = tmp_path / "home"
    home.mkdir()
    (home / "model.gguf").write_bytes(b"GGUF")
    variables, arguments = MISSING[extra]
    given = dict(text.format(home=home).split("=", 1) for text in variables)
    if arguments == "tape-server":
        plain.run("tape-server token add bot --scope append", home=home)
    said = plain.run(arguments.format(home=home), stdin="hello\n", home=home, **given)
    assert f"uv pip install 'tapebot[{extra}]'" in said.stdout + said.stderr
    assert "Traceback" not in said.stderr


def test_every_extra_is_provoked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(MISSING) | NOT_PROVOKED == set(project["optional-dependencies"])
