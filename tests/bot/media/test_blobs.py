"""What a person may rely on where files are kept."""

from __future__ import annotations

import hashlib
import logging
import os
import stat

import pytest

from bot.media.blobs import BlobStore


def files(folder) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


async def test_what_was_put_is_got_again_also_after_a_restart(tmp_path):
    name = await BlobStore(tmp_path / "blobs").put(b"a picture")
    assert name == hashlib.sha256(b"a picture").hexdigest()
    assert await BlobStore(tmp_path / "blobs").get(name) == b"a picture"


async def test_the_same_bytes_are_kept_once(tmp_path):
    store = BlobStore(tmp_path)
    name = await store.put(b"twice")
    before = store.path(name).stat().st_ino
    assert await store.put(b"twice") == name
    assert store.path(name).stat().st_ino == before
    assert files(tmp_path) == [f"{name[:2]}/{name}"]


async def test_nobody_else_on_the_machine_can_read_them(tmp_path):
    store = BlobStore(tmp_path / "blobs")
    path = store.path(await store.put(b"private"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    folders = (path.parent, path.parent.parent, tmp_path / "blobs" / "incoming")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3


async def test_a_damaged_file_is_reported_as_missing_and_mended_when_it_is_sent_again(
    tmp_path, caplog
):
    store = BlobStore(tmp_path)
    name = await store.put(b"whole")
    store.path(name).write_bytes(b"wh")
    with caplog.at_level(logging.WARNING):
        assert await store.get(name) is None
    assert "damaged" in caplog.text
    await store.put(b"whole")
    assert await store.get(name) == b"whole"


@pytest.mark.parametrize("name", ["../tapes/x", "", "A" * 64, "a" * 63, "/etc/passwd", "a" * 64])
async def test_a_name_that_is_none_or_unknown_gives_nothing(tmp_path, name):
    assert await BlobStore(tmp_path).get(name) is None


async def test_no_path_can_be_made_of_a_name_that_is_no_hash(tmp_path):
    with pytest.raises(ValueError, match="SHA-256"):
        BlobStore(tmp_path).path("../../etc/passwd")


async def test_what_a_kill_left_half_written_is_gone_at_the_next_start(tmp_path):
    BlobStore(tmp_path)
    (tmp_path / "incoming" / "blob-torn").write_bytes(b"half")
    BlobStore(tmp_path)
    assert files(tmp_path) == []


async def test_a_kill_between_writing_and_naming_leaves_nothing_under_the_name(
    tmp_path, monkeypatch
):
    store = BlobStore(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        await store.put(b"never named")
    monkeypatch.undo()
    assert await store.get(hashlib.sha256(b"never named").hexdigest()) is None
    assert files(tmp_path)
    BlobStore(tmp_path)
    assert files(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_may_not_be_written_is_an_error(tmp_path):
    store = BlobStore(tmp_path)
    (tmp_path / "incoming").chmod(0o500)
    with pytest.raises(OSError, match="ermission"):
        await store.put(b"x")


async def test_what_was_removed_is_gone_with_its_name_and_its_bytes(tmp_path):
    store = BlobStore(tmp_path)
    name, other = await store.put(b"a secret picture"), await store.put(b"another")
    assert await store.remove(name)
    assert await store.get(name) is None
    assert files(tmp_path) == [f"{other[:2]}/{other}"]
    assert await store.get(other) == b"another"


async def test_removing_twice_or_what_never_was_does_nothing(tmp_path):
    store = BlobStore(tmp_path)
    name = await store.put(b"once")
    assert [await store.remove(name), await store.remove(name)] == [True, False]
    for none in ("../tapes/x", "", "incoming", "A" * 64, "b" * 64):
        assert not await store.remove(none)


async def test_what_was_removed_may_be_sent_again(tmp_path):
    store = BlobStore(tmp_path)
    await store.remove(await store.put(b"again"))
    assert await store.get(await store.put(b"again")) == b"again"


async def test_what_is_put_while_it_is_removed_is_there_or_was_removed_after_it(
    tmp_path, monkeypatch
):
    """A removal between looking and answering: what ``put`` has returned is there."""
    store = BlobStore(tmp_path)
    name = await store.put(b"both at once")
    removed = []

    def sync_directory(path):
        if not removed:
            removed.append(path)
            store.path(name).unlink()

    monkeypatch.setattr("bot.media.blobs.sync_directory", sync_directory)
    assert await store.put(b"both at once") == name
    assert removed
    assert await store.get(name) == b"both at once"
