"""Detect a file's media type by its first bytes. Pure.

Rule 1: a recognised content decides; otherwise the platform's media type counts.
"""

from __future__ import annotations

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Media types of the images that models take."""

PDF = "application/pdf"

_VAGUE = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/binary"})
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"%PDF-", PDF),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
)
_ENDINGS = {
    "audio/ogg": ".ogg",
    "audio/mpeg": ".mp3",
    "audio/flac": ".flac",
    "audio/wav": ".wav",
    "audio/mp4": ".m4a",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
}


def media_type(data: bytes, said: str) -> str:
    """Return a file's media type.

    Args:
        data: The file's bytes.
        said: The platform's media type; may have parameters, or be vague or wrong.
    """
    plain = said.partition(";")[0].strip().lower()
    found = next((kind for at, sign, kind in _MAGIC if data.startswith(sign, at)), None)
    if found is None:
        # Models refuse an image type whose content is no image.
        return "application/octet-stream" if not plain or plain in IMAGES else plain
    same_family = plain.partition("/")[0] in ("audio", "video") and found[:6] in (
        "audio/",
        "video/",
    )
    # Containers hold audio or video; office documents are archives.
    if same_family or (found == "application/zip" and plain not in _VAGUE):
        return plain
    return found


def audio_name(name: str, mime: str) -> str:
    """Return a file name whose ending states the audio format, which is all transcribers go by."""
    ending = _ENDINGS.get(mime, "")
    _, dot, given = name.rpartition(".")
    known = dot and f".{given.lower()}" in {*_ENDINGS.values(), ".oga", ".opus", ".mpga", ".mpeg"}
    return "voice" + (ending or (f".{given.lower()}" if known else ".ogg"))
