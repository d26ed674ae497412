"""Files that people send on the Telegram test server, as the Bot API describes them."""

from __future__ import annotations

from dataclasses import dataclass

from testkit.telegram.records import Json
from testkit.telegram.world import TelegramWorld

_FOLDERS = {
    "photo": ("photos", ".jpg", "image/jpeg"),
    "voice": ("voice", ".oga", "audio/ogg"),
    "audio": ("music", ".mp3", "audio/mpeg"),
    "video": ("videos", ".mp4", "video/mp4"),
    "animation": ("animations", ".mp4", "video/mp4"),
    "video_note": ("video_notes", ".mp4", ""),
    "document": ("documents", "", "application/octet-stream"),
    "sticker": ("stickers", ".webp", "image/webp"),
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
    duration: int = 3


def media_fields(world: TelegramWorld, media: TelegramMedia) -> Json:
    """Store a file, and return the message fields that describe it."""
    folder, suffix, usual = _FOLDERS[media.kind]
    if media.kind == "photo":
        return {"photo": [_picture(world, media, width, high) for width, high in _SIZES]}
    stored = world.add_file(folder, suffix, media.data, media.size)
    fields: Json = {"file_id": stored.id, "file_unique_id": stored.unique}
    fields |= {"file_size": stored.size}
    match media.kind:
        case "sticker":
            shape = {"type": "regular", "width": 512, "height": 512, "emoji": "🙂"}
            return {"sticker": fields | shape | {"is_animated": False, "is_video": False}}
        case "video_note":
            return {"video_note": fields | {"length": 240, "duration": media.duration}}
        case "voice" | "audio" | "video" | "animation":
            fields |= {"duration": media.duration, "mime_type": media.mime or usual}
            if media.kind in {"video", "animation"}:
                fields |= {"width": 640, "height": 360}
        case _:
            fields |= {"file_name": media.name, "mime_type": media.mime or usual}
    if media.kind == "animation":
        # Both fields are set, for clients that do not know animations.
        known = {"file_id", "file_unique_id", "file_size", "mime_type"}
        document = {name: one for name, one in fields.items() if name in known}
        return {"animation": fields, "document": document}
    return {media.kind: fields}


def _picture(world: TelegramWorld, media: TelegramMedia, width: int, height: int) -> Json:
    largest = width == _SIZES[-1][0]
    data = media.data if largest else media.data[: width + 12]
    stored = world.add_file("photos", ".jpg", data, media.size if largest else None)
    fields: Json = {"file_id": stored.id, "file_unique_id": stored.unique}
    return fields | {"width": width, "height": height, "file_size": stored.size}
