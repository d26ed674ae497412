"""The doctor says where tapes are that are kept elsewhere, and whether they answer."""

from __future__ import annotations

import os

import pytest
from tape_server_rig import TAPE, serving

from bot.cli import doctor_tapes
from bot.cli.doctor import exit_code, run_checks
from bot.runtime.settings import PREFIX, load_settings


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir(mode=0o700)


async def ready() -> str:
    return "ready"


async def found(probe=None, **settings):
    findings = await run_checks(load_settings(home="home", **settings), probe=probe)
    [one] = [each for each in findings if each.area == "tapes"]
    assert exit_code(findings) == int(one.level == "bad")
    return one.level, f"{one.text} {one.remedy}"


async def test_a_tape_server_is_asked_only_when_probed(tmp_path):
    async with serving(tmp_path) as rig:
        await rig.store.create_tape(TAPE)
        settings = {"tape_store": rig.url, "tape_store_token": rig.tokens.add("a", "read", ["*"])}
        assert await found(ready, **settings) == (
            "ok",
            f"on the tape server {rig.url}: it answers, and lists 1 tape ",
        )
    assert await found(**settings) == (
        "ok",
        f"on the tape server {rig.url} (`doctor --probe` checks whether it answers) ",
    )


async def test_a_token_that_the_tape_server_does_not_know_is_bad_and_not_shown(tmp_path):
    async with serving(tmp_path) as rig:
        level, text = await found(ready, tape_store=rig.url, tape_store_token="tape_wrong")
    assert level == "bad"
    assert "TAPEBOT_TAPE_STORE_TOKEN" in text
    assert "tape_wrong" not in text


async def test_a_tape_server_that_does_not_answer_is_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor_tapes, "_PATIENCE", 0.2)
    async with serving(tmp_path) as rig:
        url = rig.url
    level, text = await found(ready, tape_store=url, tape_store_token="x")
    assert level == "bad"
    assert f"{url}: no answer within 0.2 seconds" in text


@pytest.mark.parametrize(
    ("settings", "level", "told"),
    [
        ({"tape_store": "http://127.0.0.1:1"}, "bad", "TAPEBOT_TAPE_STORE_TOKEN: not set"),
        ({"tape_store": "shelf"}, "bad", "given 'shelf'; allowed: file, memory"),
        ({"tape_store": "memory"}, "warn", "lost when tapebot ends"),
    ],
)
async def test_what_is_wrong_with_a_store_is_told_without_asking(settings, level, told):
    got, text = await found(**settings)
    assert got == level
    assert told in text
