"""Files that people send on the Telegram test server, as the Bot API describes them."""

from __future__ import annotations

from dataclasses import dataclass

from testkit.telegram.records import Json
from testkit.telegram.world import TelegramWorld

_FOLDERS = {
    "photo": ("photos", ".jpg", "image/jpeg"),
    "voice": ("voice", ".oga", "audio/ogg"),
    "video_note": ("video_notes", ".mp4", ""),
    "document": ("documents", "", "application/octet-stream"),
}
_SIZES = ((90, 67), (320, 240), (800, 600), (1280, 960))


@dataclass(frozen=True, slots=True)
class TelegramMedia:
    """A file to send."""

    kind: str
    data: bytes = b"\xff\xd8\xff\xe0 a picture"
    caption: str = ""
    name: str = "file"
    mime: str = ""
    size: int | None = None


def media_fields(world: TelegramWorld, media: TelegramMedia) -> Json:
    """Store a file, and return the message fields that describe it."""
    folder, suffix, usual = _FOLDERS[media.kind]
    if media.kind == "photo":
        return {"photo": [_picture(world, media, width, high) for width, high in _SIZES]}
    fields = world.add_file(folder, suffix, media.data, media.size).as_json()
    more: dict[str, Json] = {
        "video_note": {"length": 240, "duration": 3},
        "voice": {"duration": 3, "mime_type": media.mime or usual},
        "document": {"file_name": media.name, "mime_type": media.mime or usual},
    }
    return {media.kind: fields | more[media.kind]}


def _picture(world: TelegramWorld, media: TelegramMedia, width: int, height: int) -> Json:
    largest = width == _SIZES[-1][0]
    data = media.data if largest else media.data[: width + 12]
    stored = world.add_file("photos", ".jpg", data, media.size if largest else None)
    return stored.as_json() | {"width": width, "height": height}
