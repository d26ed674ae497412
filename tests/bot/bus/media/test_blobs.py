"""What a person may rely on where files are kept."""

from __future__ import annotations

import hashlib
import os
import stat

import psycopg
import pytest
from databases import drop, fresh_database

from bot.bus.media.blobs import FolderBlobs
from bot.bus.media.postgres_blobs import PostgresBlobs
from bot.core.database.connections import Database


def files(folder) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.slow)])
async def blobs(request, tmp_path):
    """What opens the same store again and again, as runs one after the other do, and what damages all of it."""
    if request.param == "folder":

        def spoil():
            for path in (tmp_path / "blobs").rglob("*"):
                if path.is_file():
                    path.write_bytes(b"wh")

        yield lambda: FolderBlobs(tmp_path / "blobs"), spoil
        return
    url = fresh_database()
    database = Database(url, connections=4)
    await database.open()

    def damage():
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("update tapebot.blob set data = 'wh'")

    yield lambda: PostgresBlobs(database), damage
    await database.close()
    drop(url)


async def test_bytes_of_every_kind_come_back_after_a_restart_until_they_are_removed(blobs):
    opened, _ = blobs
    for data in (b"", bytes(range(256)), b"\\x00", os.urandom(3_000_000)):
        name = await opened().put(data)
        assert name == hashlib.sha256(data).hexdigest()
        assert await opened().put(data) == name
        assert await opened().get(name) == data
        assert [await opened().remove(name), await opened().remove(name)] == [True, False]
        assert await opened().get(name) is None
        # What was removed may be sent again.
        assert await opened().get(await opened().put(data)) == data


async def test_a_name_that_is_none_or_unknown_gives_and_removes_nothing(blobs):
    opened, _ = blobs
    for name in ("../tapes/x", "", "A" * 64, "/etc/passwd", "a" * 64, "incoming"):
        assert await opened().get(name) is None
        assert not await opened().remove(name)


async def test_what_is_damaged_is_missing_and_mended_when_it_is_sent_again(blobs, caplog):
    opened, spoil = blobs
    name = await opened().put(b"whole")
    spoil()
    assert await opened().get(name) is None
    assert "damaged" in caplog.text
    await opened().put(b"whole")
    assert await opened().get(name) == b"whole"


async def test_nobody_else_on_the_machine_can_read_them(tmp_path):
    name = await FolderBlobs(tmp_path / "blobs").put(b"private")
    held = [tmp_path / "blobs", *(tmp_path / "blobs").rglob("*")]
    assert any(path.name == name for path in held)
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in held} == {0}


async def test_a_kill_between_writing_and_naming_leaves_nothing(tmp_path, monkeypatch):
    store = FolderBlobs(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            await store.put(b"never named")
    assert await store.get(hashlib.sha256(b"never named").hexdigest()) is None
    assert files(tmp_path)
    FolderBlobs(tmp_path)
    assert files(tmp_path) == []
