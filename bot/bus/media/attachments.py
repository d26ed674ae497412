"""Fetch, store and read attachments.

A bad file raises nothing: a note tells the person and the model what could not be done. A storage
error does raise, so that the platform sends the message again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal, Protocol

import anyio

from bot.bus import Attachment
from bot.bus.media.blobs import Blobs
from bot.bus.media.documents import MAX_CHARACTERS, UNREADABLE, read_document
from bot.bus.media.media_types import IMAGES, audio_name, media_type
from bot.bus.media.ports import AttachmentReceiver, RemoteFile
from bot.core.errors import BusError, FileUnavailable, ModelError
from bot.core.files import disk_error_text
from bot.core.reasons import Reason, reason_of
from bot.llm.spender import Spender, spends

logger = logging.getLogger(__name__)

FETCH_SECONDS = 60.0
"""The most seconds to fetch one file."""

SPARE_BYTES = 500_000_000
"""Bytes that stay free on the disk; with fewer, ``tapebot doctor`` warns."""

NO_SPACE = Reason("file_no_space")
PRIVATE = Reason("file_private")
NO_TRANSCRIPTION = Reason("file_no_transcription")
AttachmentKind = Literal["image", "voice", "audio", "video", "document"]
"""The values of ``Attachment.kind``."""

_LOST = Reason("file_lost")
_AT_ONCE = 8
_READERS = 2
_MEGABYTE = 1_000_000


class SpeechToText(Protocol):
    """Transcribes speech."""

    async def transcribe(self, audio: bytes, name: str) -> str:
        """Return the text of an audio file; the ending of its name states the format.

        Raises:
            ModelError: It could not be transcribed.
        """
        ...


async def _always(_: str) -> bool:
    """Allow everything."""
    return True


class AttachmentService(AttachmentReceiver):
    """Fetches, stores and reads files.

    Args:
        blobs: Stores the files.
        max_bytes: The size of the largest file that is accepted.
        transcriber: Transcribes voice messages and audio; None without a model for it.
        may_transcribe: Returns whether the transcriber may hear what is sent to a session.
        max_characters: The most characters of text from a document.
        fetch_seconds: The most seconds to fetch a file.
        spare_bytes: Bytes to leave free on the disk for the tapes, where free space is known.
    """

    def __init__(
        self,
        blobs: Blobs,
        *,
        max_bytes: int,
        transcriber: SpeechToText | None = None,
        may_transcribe: Callable[[str], Awaitable[bool]] = _always,
        max_characters: int = MAX_CHARACTERS,
        fetch_seconds: float = FETCH_SECONDS,
        spare_bytes: int = SPARE_BYTES,
    ) -> None:
        self._blobs = blobs
        self._max_bytes = max_bytes
        self._transcriber = transcriber
        self._may_transcribe = may_transcribe
        self._max_characters = max_characters
        self._fetch_seconds = fetch_seconds
        self._spare_bytes = spare_bytes
        # A task in a limiter holds a whole file in memory; none waits for another limiter in it.
        self._capacity = anyio.CapacityLimiter(_AT_ONCE)
        self._readers = anyio.CapacityLimiter(_READERS)
        self._listeners = anyio.CapacityLimiter(_AT_ONCE)

    async def receive(self, file: RemoteFile) -> Attachment:
        """Fetch, store and read a file; return the attachment, with a note on what failed.

        Raises:
            BusError: The storage refused the file; the platform must send the message again.
        """
        taken = Attachment(file.kind, file.name or file.kind, file.mime, file.size or 0)
        if file.size is not None and file.size > self._max_bytes:
            return replace(taken, note=self._too_large())
        async with self._capacity:
            data = await self._fetched(file)
            if isinstance(data, str):
                return replace(taken, note=data)
            taken = await self._kept(taken, data)
            del data
        if taken.blob is None:
            return taken
        who = f"{file.session.partition(':')[0]}:{file.sender}" if file.sender else ""
        with spends(Spender(who, file.session)):
            return await self._read(taken, taken.blob, file.session)

    def _too_large(self) -> str:
        return Reason("file_too_large", limit=f"{self._max_bytes / _MEGABYTE:g}")

    async def _fetched(self, file: RemoteFile) -> bytes | str:
        """Return a file's bytes, or a note on why there are none."""
        try:
            with anyio.fail_after(self._fetch_seconds):
                data = await file.fetch(self._max_bytes + 1)
        except FileUnavailable as error:
            logger.info("a file could not be fetched: %s", error)
            return Reason("file_not_fetched", error=reason_of(error))
        except TimeoutError:
            return Reason("file_fetch_slow", seconds=f"{self._fetch_seconds:g}")
        if len(data) > self._max_bytes:
            return self._too_large()
        return data or Reason("file_empty")

    async def _kept(self, taken: Attachment, data: bytes) -> Attachment:
        """Store a file, or note why not; ``blob`` is set if it was stored."""
        try:
            free = await self._blobs.free()
            if free is not None and free - len(data) < self._spare_bytes:
                logger.warning("a file was not kept: %s bytes must stay free", self._spare_bytes)
                return replace(taken, size=len(data), note=NO_SPACE)
            blob = await self._blobs.put(data)
        except OSError as error:
            logger.warning("a file that was sent cannot be kept: %s", error)
            raise BusError(
                f"a file that was sent cannot be kept: {disk_error_text(error)}"  # for the log
            ) from error
        mime = media_type(data, taken.mime)
        return replace(taken, mime=mime, size=len(data), blob=blob, kind=_kind(taken, mime))

    async def _read(self, taken: Attachment, blob: str, session: str) -> Attachment:
        if taken.kind in ("voice", "audio"):
            if self._transcriber is not None and not await self._may_transcribe(session):
                return replace(taken, note=PRIVATE)
            return await self._transcribe(taken, blob)
        if taken.kind == "document":
            async with self._readers:
                data = await self._blobs.get(blob)
                if data is None:
                    return replace(taken, note=_LOST)
                document_text = await read_document(data, taken.mime, limit=self._max_characters)
            return replace(taken, text=document_text.text, note=document_text.note)
        if taken.kind == "image" and taken.mime in IMAGES:
            return taken
        return replace(taken, note=UNREADABLE)

    async def _transcribe(self, taken: Attachment, blob: str) -> Attachment:
        if self._transcriber is None:
            return replace(taken, note=NO_TRANSCRIPTION)
        try:
            async with self._listeners:
                data = await self._blobs.get(blob)
                if data is None:
                    return replace(taken, note=_LOST)
                name = audio_name(taken.name, taken.mime)
                text = await self._transcriber.transcribe(data, name)
        except ModelError as error:
            return replace(taken, note=Reason("file_not_transcribed", error=reason_of(error)))
        if not text.strip():
            return replace(taken, note=Reason("file_silent"))
        if len(text) > self._max_characters:
            note = Reason("file_kept_in_part", limit=self._max_characters)
            return replace(taken, text=text[: self._max_characters], note=note)
        return replace(taken, text=text.strip())


def _kind(taken: Attachment, mime: str) -> AttachmentKind:
    """Return the kind by media type: photos and recordings are also sent as documents."""
    if taken.kind != "document":
        return taken.kind
    if mime in IMAGES:
        return "image"
    if mime.startswith("audio/"):
        return "audio"
    return "video" if mime.startswith("video/") else "document"
