"""Build what keeps, shows and sends the folders of files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.agent.files.service import EraseBlobs, FileService
from bot.bus.media.blobs import Blobs, FolderBlobs
from bot.memory.session.file_folder import FileFolders
from bot.runtime.app.file_mirror import FolderMirror
from bot.runtime.sessions.sent_files import SentFiles
from bot.tape.store import TapeStore


@dataclass(frozen=True, slots=True)
class FileServices:
    """The parts for folders of files.

    Attributes:
        service: Keeps, writes and deletes files.
        sent: Places the files that answers send.
        mirror: Readable copies of the folders; None if there are none.
    """

    service: FileService
    sent: SentFiles
    mirror: FolderMirror | None


def make_file_services(
    home: Path,
    store: TapeStore,
    blobs: Blobs,
    *,
    max_bytes: int,
    erase_blobs: EraseBlobs,
) -> FileServices:
    """Return the parts for folders of files; on one machine, readable copies are in ``home/files``."""
    folders = FileFolders(store)
    mirror = None
    if isinstance(blobs, FolderBlobs):
        mirror = FolderMirror(home / "files", blobs, folders)
    service = FileService(
        folders, store, blobs, max_bytes=max_bytes, erase_blobs=erase_blobs, mirror=mirror
    )
    sent = SentFiles(blobs, home / "exports", copied=mirror is None)
    return FileServices(service, sent, mirror)
