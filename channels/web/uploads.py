"""Store files that a page uploads before the message that they belong to.

Rule 1: uploads stay until they are ten minutes old, even after publishing: a page that missed the
    acceptance sends the message again with them.
Rule 2: only the user who uploaded a file can send it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal

import aiofiles
import anyio
import anyio.to_thread
from pydantic import TypeAdapter, ValidationError

from bot.bus import FileUnavailable, RemoteFile, create_or_replace_file
from bot.core.i18n import _, ngettext
from bot.core.reasons import Reason
from channels.text import clean_text
from channels.web.frames import MAX_FILES

logger = logging.getLogger(__name__)

UPLOAD_LIFETIME_SECONDS = 600
"""Seconds for which an upload is stored."""

MAX_CONCURRENT_UPLOADS = 4
"""The most uploads of one user that may run at once."""

_LONGEST_NAME = 200
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,100}")
_ID = re.compile(r"[0-9a-f]{32}")

Kind = Literal["image", "audio", "video", "document"]


class UploadRefused(Exception):
    """An upload was refused.

    Attributes:
        status: The HTTP status of the response.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """An uploaded file.

    Attributes:
        id: The id by which the page refers to it.
        name: The file's name on the user's machine.
        kind: As in ``Attachment``.
        mime: The media type that the browser stated.
        size: Bytes.
    """

    id: str
    name: str
    kind: Kind
    mime: str
    size: int


_UPLOAD = TypeAdapter(UploadedFile)


class UploadStore:
    """Store uploads in a directory per user."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self.most_bytes = most_bytes
        self._running: Counter[str] = Counter()
        self._taken: set[str] = set()

    async def save(
        self, user: str, name: str, mime: str, chunks: AsyncIterable[bytes]
    ) -> UploadedFile:
        """Store a file; a partial file is removed.

        Raises:
            UploadRefused: The file is empty or too large, or there are too many.
            OSError: It could not be written.
        """
        with self._running_one(user):
            folder = self._of(user)
            await anyio.to_thread.run_sync(self._check_room, folder)
            upload = secrets.token_hex(16)
            path = folder / upload
            try:
                size = await self._write(path, chunks)
                kind, mime = _kind(mime)
                uploaded_file = UploadedFile(upload, _name(name), kind, mime, size)
                data = json.dumps(asdict(uploaded_file)).encode()
                await anyio.to_thread.run_sync(
                    create_or_replace_file, path.with_suffix(".json"), data
                )
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(_remove, path)
                raise
        return uploaded_file

    async def find(self, user: str, upload: str) -> UploadedFile | None:
        """Return a user's upload; None if there is none with this id."""
        if not _ID.fullmatch(upload):
            return None
        return await anyio.to_thread.run_sync(_read, self._of(user) / upload)

    def remote_file(self, user: str, session: str, upload: UploadedFile) -> RemoteFile:
        """Return an upload to a conversation as a file for the ``AttachmentReceiver``."""
        path = self._of(user) / upload.id
        fetch = partial(self._fetch, path)
        return RemoteFile(
            upload.kind,
            upload.name,
            upload.mime,
            upload.size,
            fetch,
            session=session,
            sender=user,
        )

    def mark_taken(self, upload: UploadedFile) -> None:
        """Record that an upload's message was accepted, so that it no longer counts as waiting."""
        self._taken.add(upload.id)

    async def remove_expired(self) -> None:
        """Remove expired uploads."""
        gone = await anyio.to_thread.run_sync(self._sweep, time.time() - UPLOAD_LIFETIME_SECONDS)
        self._taken.difference_update(gone)

    async def _fetch(self, path: Path, most: int) -> bytes:
        try:
            async with aiofiles.open(path, "rb") as file:
                return await file.read(most)
        except OSError as exc:
            raise FileUnavailable(Reason("file_upload_gone")) from exc

    def _of(self, user: str) -> Path:
        return self._folder / sha256(user.encode()).hexdigest()[:32]

    @contextmanager
    def _running_one(self, user: str) -> Iterator[None]:
        if self._running[user] >= MAX_CONCURRENT_UPLOADS:
            raise UploadRefused(
                429,
                ngettext(
                    "{n} file is already being uploaded; wait for it",
                    "{n} files are already being uploaded; wait for one of them",
                    MAX_CONCURRENT_UPLOADS,
                ),
            )
        self._running[user] += 1
        try:
            yield
        finally:
            self._running[user] -= 1
            self._running += Counter()

    def _check_room(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        waiting = [path for path in folder.iterdir() if _ID.fullmatch(path.name)]
        if sum(path.name not in self._taken for path in waiting) >= MAX_FILES:
            raise UploadRefused(
                429,
                ngettext(
                    "{n} file is already attached; send its message first",
                    "{n} files are already attached; send their message first",
                    MAX_FILES,
                ),
            )

    async def _write(self, path: Path, chunks: AsyncIterable[bytes]) -> int:
        size = 0
        # Not with aiofiles: its thread would create the file after a cancelled upload was removed.
        with await anyio.to_thread.run_sync(_create, path) as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > self.most_bytes:
                    most = self.most_bytes / 1_000_000
                    raise UploadRefused(413, _("the file is larger than {most:g} MB", most=most))
                await anyio.to_thread.run_sync(file.write, chunk)
        if not size:
            raise UploadRefused(422, _("the file is empty"))
        return size

    def _sweep(self, oldest: float) -> list[str]:
        gone: list[str] = []
        if not self._folder.is_dir():
            return gone
        for folder in self._folder.iterdir():
            for path in folder.iterdir():
                try:
                    if path.stat().st_mtime < oldest:
                        path.unlink()
                        gone.append(path.name)
                except FileNotFoundError:
                    continue
        return gone


def _create(path: Path) -> BinaryIO:
    return open(path, "wb", opener=partial(os.open, mode=0o600))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_suffix(".json").unlink(missing_ok=True)


def _read(path: Path) -> UploadedFile | None:
    try:
        return _UPLOAD.validate_json(path.with_suffix(".json").read_bytes())
    except (OSError, ValidationError):
        return None


def _name(name: str) -> str:
    """Return a file's name without directories."""
    last = clean_text(name).replace("\\", "/").rpartition("/")[2].strip()
    return " ".join(last.split())[:_LONGEST_NAME] or "file"


def _kind(mime: str) -> tuple[Kind, str]:
    plain = mime.partition(";")[0].strip().lower()
    if not _MIME.fullmatch(plain):
        return "document", "application/octet-stream"
    kinds: dict[str, Kind] = {"image": "image", "audio": "audio", "video": "video"}
    return kinds.get(plain.partition("/")[0], "document"), plain
