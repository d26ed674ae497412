"""Files that answers send: placed under a name that the disk takes, and safe from changes."""

from __future__ import annotations

import stat

import pytest

from bot.bus import OutgoingFile
from bot.bus.media.blobs import FolderBlobs
from bot.memory.records.file_names import sent_name
from bot.runtime.sessions.sent_files import SentFiles


@pytest.mark.parametrize("name", ["report.csv", "報告書" * 40 + ".csv", "a/b/report.csv"])
async def test_a_sent_file_has_a_name_that_the_disk_takes_and_cannot_be_written(tmp_path, name):
    """A name of any length is sent; who opens the file cannot write into the blob store."""
    blobs = FolderBlobs(tmp_path / "blobs")
    blob = await blobs.put(b"nine")
    sent = OutgoingFile(name, tmp_path / "exports" / sent_name(blob, name))
    async with SentFiles(blobs, tmp_path / "exports").placed((sent,)) as [placed]:
        assert placed.path.read_bytes() == b"nine"
        assert placed.path.name.endswith(".csv")
    assert stat.S_IMODE(placed.path.stat().st_mode) == 0o400


async def test_an_answer_is_given_though_its_file_cannot_be_placed(tmp_path, caplog):
    """Such as on a full disk; the channel says that the file is missing."""
    blobs = FolderBlobs(tmp_path / "blobs")
    blob = await blobs.put(b"nine")
    (tmp_path / "exports").write_text("no folder")
    sent = OutgoingFile("a.csv", tmp_path / "exports" / sent_name(blob, "a.csv"))
    async with SentFiles(blobs, tmp_path / "exports").placed((sent,)) as [placed]:
        assert not placed.path.exists()
    assert "a file is not sent" in caplog.text


async def test_two_chats_that_are_sent_the_same_file_both_get_it(tmp_path):
    """Where the bus copies files, the last one to be given removes what was placed."""
    blobs, exports = FolderBlobs(tmp_path / "blobs"), tmp_path / "exports"
    blob = await blobs.put(b"nine")
    sent = (OutgoingFile("a.csv", exports / sent_name(blob, "a.csv")),)
    files = SentFiles(blobs, exports, copied=True)
    async with files.placed(sent) as [second]:
        async with files.placed(sent) as [first]:
            assert first == second
        assert second.path.read_bytes() == b"nine"
    assert list(exports.rglob("*.csv")) == []
