"""The store that the settings name."""

from __future__ import annotations

import pytest

from bot.core.errors import SettingsError
from bot.runtime.app.tape_stores import build_tape_store
from bot.runtime.settings import load_settings
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.tape.stores.remote import RemoteTapeStore

THIRD_PARTY = """
from bot.tape.stores.in_memory import InMemoryTapeStore


class ShelfStore(InMemoryTapeStore):
    def __init__(self, home):
        super().__init__()
        self.home = home


def open_shelf(settings):
    return ShelfStore(settings.home)
"""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda **values: load_settings(home=tmp_path / "home", **values)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that offers two stores, one of which cannot be loaded."""
    site = tmp_path / "site"
    metadata = site / "shelf-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[tapebot.tape_stores]\nshelf = shelf_tapes:open_shelf\nbroken = shelf_tapes:nothing\n"
    )
    (site / "shelf_tapes.py").write_text(THIRD_PARTY)
    monkeypatch.syspath_prepend(site)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, FileTapeStore),
        ({"tape_store": "memory"}, InMemoryTapeStore),
        ({"tape_store": "http://127.0.0.1:1", "tape_store_token": "t"}, RemoteTapeStore),
    ],
)
async def test_the_store_is_the_one_that_is_named(settings, values, kind):
    store = build_tape_store(settings(**values))
    assert type(store) is kind
    await store.close()


async def test_a_package_offers_a_store_of_its_own(settings, installed):
    held = settings(tape_store="shelf")
    store = build_tape_store(held)
    assert type(store).__name__ == "ShelfStore"
    assert store.home == held.home
    await store.create_tape("a")
    assert await store.list_tapes() == ["a"]
    await store.close()


def test_a_store_that_nobody_offers_is_told_with_those_that_are_there(settings, installed):
    with pytest.raises(SettingsError, match=r"'shelv'; allowed: file, memory, .*broken, shelf"):
        build_tape_store(settings(tape_store="shelv"))


def test_a_store_that_cannot_be_loaded_is_told(settings, installed):
    with pytest.raises(SettingsError, match="the store broken cannot be loaded"):
        build_tape_store(settings(tape_store="broken"))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"tape_store": "https://x"}, "TAPEBOT_TAPE_STORE_TOKEN: not set"),
        ({"tape_store": "https://x", "tape_store_token": "a b"}, "given a secret"),
        ({"tape_store": "https://x", "tape_store_token": "ü"}, "given a secret"),
        ({"tape_store": "https://me:pw@x", "tape_store_token": "t"}, "without user and password"),
        ({"tape_store": "http://", "tape_store_token": "t"}, "starts with http://"),
    ],
)
def test_what_a_tape_server_lacks_is_told(settings, values, told):
    with pytest.raises(SettingsError, match=told):
        build_tape_store(settings(**values))


def test_the_token_is_a_secret(settings):
    held = settings(tape_store="https://x", tape_store_token="tape_very_secret")
    assert "tape_very_secret" in held.secrets()
    assert "tape_very_secret" not in repr(held)
