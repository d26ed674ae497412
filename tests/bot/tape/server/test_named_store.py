"""The store that the settings name is the one that is used, and the doctor says where it is and what it lacks."""

from __future__ import annotations

import os

import pytest
from tape_server_rig import TAPE, serving

from bot.cli.doctor import exit_code, run_checks
from bot.core.errors import SettingsError
from bot.runtime.app.tape_stores import build_tape_store
from bot.runtime.settings import PREFIX, load_settings
from bot.tape.fold_rows import FoldRow

PACKAGE = """
from bot.tape.stores.in_memory import InMemoryTapeStore

def open_shelf(settings):
    return InMemoryTapeStore()
"""


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir(mode=0o700)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that offers two stores, one of which cannot be loaded."""
    metadata = tmp_path / "site" / "shelf-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[tapebot.tape_stores]\nshelf = shelf_tapes:open_shelf\nbroken = shelf_tapes:nothing\n"
    )
    (tmp_path / "site" / "shelf_tapes.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path / "site")


async def found(probe=False, **settings):
    findings = await run_checks(load_settings(home="home", **settings), probe=probe)
    [one] = [each for each in findings if each.area == "tapes"]
    assert exit_code(findings) == int(one.level == "bad")
    return one.level, f"{one.text} {one.remedy}{one.uncalled}"


async def test_what_was_kept_of_tapes_elsewhere_goes(tmp_path):
    kept = tmp_path / "home" / "index" / "server.index.db.folds"
    for settings in ({"tape_store": "http://127.0.0.1:9", "tape_store_token": "t"}, {}):
        kept.mkdir(parents=True, exist_ok=True)
        (kept / "state").touch()
        store = build_tape_store(load_settings(home="home", **settings))
        store.folds.get("a", FoldRow("Fold", version=1, checksum=1, erasures=0))
        await store.close()
        assert not (kept / "state").exists()


async def test_a_package_offers_a_store_of_its_own(installed):
    store = build_tape_store(load_settings(home="home", tape_store="shelf"))
    await store.create_tape("a")
    assert await store.list_tapes() == ["a"]
    await store.close()
    with pytest.raises(SettingsError, match="the store broken cannot be loaded"):
        build_tape_store(load_settings(home="home", tape_store="broken"))


@pytest.mark.slow
async def test_a_tape_server_is_asked_only_when_probed(tmp_path):
    async with serving(tmp_path) as rig:
        await rig.store.create_tape(TAPE)
        settings = {"tape_store": rig.url, "tape_store_token": rig.tokens.add("a", "read", ["*"])}
        answers = f"on the tape server {rig.url}: it answers, and lists 1 tape "
        assert await found(True, **settings) == ("ok", answers)
        level, told = await found(True, tape_store=rig.url, tape_store_token="tape_wrong")
        assert (level, "TAPEBOT_TAPE_STORE_TOKEN" in told) == ("bad", True)
        assert "tape_wrong" not in told
    level, told = await found(**settings)
    assert level == "ok"
    assert told == f"on the tape server {rig.url} {rig.url}"


@pytest.mark.parametrize(
    ("settings", "level", "told"),
    [
        ({"tape_store": "http://127.0.0.1:1"}, "bad", "TAPEBOT_TAPE_STORE_TOKEN: not set"),
        ({"tape_store": "https://x", "tape_store_token": "ü"}, "bad", "given a secret"),
        ({"tape_store": "https://me:pw@x", "tape_store_token": "t"}, "bad", "without user and"),
        ({"tape_store": "shelv"}, "bad", "'shelv'; allowed: file, memory, http"),
        ({"tape_store": "memory"}, "warn", "lost when tapebot ends"),
    ],
)
async def test_what_is_wrong_with_a_store_is_told_without_asking(installed, settings, level, told):
    got, text = await found(**settings)
    assert got == level
    assert told in text
