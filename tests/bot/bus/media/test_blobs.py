"""What a person may rely on where files are kept."""

from __future__ import annotations

import hashlib
import logging
import os
import stat

import anyio
import psycopg
import pytest
from databases import WAITING, drop, fresh_database
from waiting import until

from bot.bus.media.blobs import FolderBlobs
from bot.bus.media.postgres_blobs import PostgresBlobs
from bot.core.database.connections import Database


def files(folder) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def url():
    url = fresh_database()
    yield url
    drop(url)


@pytest.fixture
async def database(url):
    database = Database(url, connections=4)
    await database.open()
    yield database
    await database.close()


@pytest.fixture(params=["folder", "postgres"])
def opened(request, tmp_path):
    """Opens the same store again and again, as runs one after the other do."""
    if request.param == "folder":
        return lambda: FolderBlobs(tmp_path / "blobs")
    database = request.getfixturevalue("database")
    return lambda: PostgresBlobs(database)


async def test_what_was_put_is_got_again_also_after_a_restart(opened):
    name = await opened().put(b"a picture")
    assert name == hashlib.sha256(b"a picture").hexdigest()
    assert await opened().get(name) == b"a picture"


async def test_the_same_bytes_are_kept_once(tmp_path):
    store = FolderBlobs(tmp_path)
    name = await store.put(b"twice")
    before = store.path(name).stat().st_ino
    assert await store.put(b"twice") == name
    assert store.path(name).stat().st_ino == before
    assert files(tmp_path) == [f"{name[:2]}/{name}"]


async def test_nobody_else_on_the_machine_can_read_them(tmp_path):
    store = FolderBlobs(tmp_path / "blobs")
    path = store.path(await store.put(b"private"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    folders = (path.parent, path.parent.parent, tmp_path / "blobs" / "incoming")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3


async def test_a_damaged_file_is_reported_as_missing_and_mended_when_it_is_sent_again(
    tmp_path, caplog
):
    store = FolderBlobs(tmp_path)
    name = await store.put(b"whole")
    store.path(name).write_bytes(b"wh")
    with caplog.at_level(logging.WARNING):
        assert await store.get(name) is None
    assert "damaged" in caplog.text
    await store.put(b"whole")
    assert await store.get(name) == b"whole"


@pytest.mark.parametrize("name", ["../tapes/x", "", "A" * 64, "a" * 63, "/etc/passwd", "a" * 64])
async def test_a_name_that_is_none_or_unknown_gives_nothing(opened, name):
    assert await opened().get(name) is None


async def test_what_a_kill_left_half_written_is_gone_at_the_next_start(tmp_path):
    FolderBlobs(tmp_path)
    (tmp_path / "incoming" / "blob-torn").write_bytes(b"half")
    FolderBlobs(tmp_path)
    assert files(tmp_path) == []


async def test_a_kill_between_writing_and_naming_leaves_nothing_under_the_name(
    tmp_path, monkeypatch
):
    store = FolderBlobs(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        await store.put(b"never named")
    monkeypatch.undo()
    assert await store.get(hashlib.sha256(b"never named").hexdigest()) is None
    assert files(tmp_path)
    FolderBlobs(tmp_path)
    assert files(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_may_not_be_written_is_an_error(tmp_path):
    store = FolderBlobs(tmp_path)
    (tmp_path / "incoming").chmod(0o500)
    with pytest.raises(OSError, match="ermission"):
        await store.put(b"x")


async def test_what_was_removed_is_gone_with_its_name_and_its_bytes(tmp_path):
    store = FolderBlobs(tmp_path)
    name, other = await store.put(b"a secret picture"), await store.put(b"another")
    assert await store.remove(name)
    assert await store.get(name) is None
    assert files(tmp_path) == [f"{other[:2]}/{other}"]
    assert await store.get(other) == b"another"


async def test_removing_twice_or_what_never_was_does_nothing(opened):
    store = opened()
    name = await store.put(b"once")
    assert [await store.remove(name), await store.remove(name)] == [True, False]
    for none in ("../tapes/x", "", "incoming", "A" * 64, "b" * 64):
        assert not await store.remove(none)


async def test_what_was_removed_may_be_sent_again(opened):
    store = opened()
    await store.remove(await store.put(b"again"))
    assert await store.get(await store.put(b"again")) == b"again"


async def test_what_is_put_while_it_is_removed_is_there_or_was_removed_after_it(
    tmp_path, monkeypatch
):
    """A removal between looking and answering: what ``put`` has returned is there."""
    store = FolderBlobs(tmp_path)
    name = await store.put(b"both at once")
    removed = []

    def sync_directory(path):
        if not removed:
            removed.append(path)
            store.path(name).unlink()

    monkeypatch.setattr("bot.bus.media.blobs.sync_directory", sync_directory)
    assert await store.put(b"both at once") == name
    assert removed
    assert await store.get(name) == b"both at once"


async def test_bytes_of_every_kind_and_size_come_back_as_they_were(opened):
    for data in (b"", bytes(range(256)), b"\\x00", os.urandom(3_000_000)):
        assert await opened().get(await opened().put(data)) == data


async def test_in_a_database_the_same_bytes_are_kept_once_whoever_puts_them(database, url):
    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(PostgresBlobs(database).put, b"twice")
    assert sql(url, "select data from tapebot.blob") == [(b"twice",)]


async def test_what_is_damaged_in_a_database_is_missing_and_mended_when_it_is_sent_again(
    database, url, caplog
):
    store = PostgresBlobs(database)
    name = await store.put(b"whole")
    sql(url, "update tapebot.blob set data = 'wh'")
    assert await store.get(name) is None
    assert "damaged" in caplog.text
    await store.put(b"whole")
    assert await store.get(name) == b"whole"


async def test_what_is_put_while_another_removes_it_is_there_afterwards(database, url):
    store = PostgresBlobs(database)
    name = await store.put(b"both at once")
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("delete from tapebot.blob")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.put, b"both at once")
            await until_waiting(url)
            await other.commit()
    assert await store.get(name) == b"both at once"


async def test_a_database_that_refuses_is_an_error_for_people_and_nothing_is_read(
    database, url, caplog
):
    store = PostgresBlobs(database)
    name = await store.put(b"kept")
    sql(url, "alter table tapebot.blob rename to away")
    for act in (store.put(b"x"), store.remove(name)):
        with pytest.raises(OSError, match="refused") as refused:
            await act
        assert "127.0.0.1" in (refused.value.strerror or "")
    assert await store.get(name) is None
    assert "cannot be read" in caplog.text


async def test_nobody_knows_how_much_room_a_server_has(database):
    assert await PostgresBlobs(database).free() is None


def sql(url: str, statement: str) -> list:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description is not None else []


async def until_waiting(url: str) -> None:
    """Wait until somebody waits for a lock."""
    await until(lambda: sql(url, WAITING))
