"""The files of a Telegram message, not fetched yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from aiogram.types import Document, Message, PhotoSize

Kind = Literal["image", "voice", "audio", "video", "document"]

_LONGEST_SIDE = 1_280
_LARGEST_PHOTO = 5 * 1024 * 1024
_UNKNOWN = "application/octet-stream"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of a message.

    Attributes:
        file_id: Names it to Telegram, for this bot.
        kind: As in ``bot.bus.Attachment``.
        name: Its name, or a word for it.
        mime: Its media type by Telegram.
        size: Bytes by Telegram; None where it does not say.
    """

    file_id: str
    kind: Kind
    name: str
    mime: str
    size: int | None


def files_of(message: Message) -> tuple[Wanted, ...]:
    """Return a message's files; it has at most one, which Telegram may name twice."""
    return tuple(_files(message))[:1]


def _files(message: Message) -> Iterator[Wanted]:
    if voice := message.voice:
        mime = voice.mime_type or "audio/ogg"
        yield Wanted(voice.file_id, "voice", "voice.ogg", mime, voice.file_size)
    if audio := message.audio:
        name = audio.file_name or audio.title or "audio.mp3"
        yield Wanted(audio.file_id, "audio", name, audio.mime_type or "audio/mpeg", audio.file_size)
    if note := message.video_note:
        yield Wanted(note.file_id, "video", "video_note.mp4", "video/mp4", note.file_size)
    if video := message.video or message.animation:
        word = "video.mp4" if message.video else "animation.mp4"
        mime = video.mime_type or "video/mp4"
        yield Wanted(video.file_id, "video", video.file_name or word, mime, video.file_size)
    if document := message.document:
        yield _document(document)
    photo = message.photo
    if photo is None and message.live_photo is not None:
        photo = message.live_photo.photo
    if photo:
        size = _size(photo)
        yield Wanted(size.file_id, "image", "photo.jpg", "image/jpeg", size.file_size)


def _document(document: Document) -> Wanted:
    mime = document.mime_type or _UNKNOWN
    kind: Kind = "image" if mime in _IMAGES else "document"
    return Wanted(
        document.file_id, kind, document.file_name or "document", mime, document.file_size
    )


def _size(sizes: list[PhotoSize]) -> PhotoSize:
    """Return the largest that a model has any use of, else the smallest there is."""
    by_area = sorted(sizes, key=lambda one: one.width * one.height)
    useful = [
        one
        for one in by_area
        if max(one.width, one.height) <= _LONGEST_SIDE and (one.file_size or 0) <= _LARGEST_PHOTO
    ]
    return useful[-1] if useful else by_area[0]
