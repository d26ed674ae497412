"""Search files and archives for erased words; what cannot be searched counts as a match."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from bot.memory.erasure.text_matcher import TextMatcher

_MOST_PACKED = 4
"""How deep archives may be nested."""

_PORTION = 1 << 20
_GZIP, _ZIP = b"\x1f\x8b\x08", (b"PK\x03\x04", b"PK\x05\x06")
_DAMAGE = (
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # an unsupported compression method
    RuntimeError,  # password-protected
    ValueError,  # impossible headers
)


def file_holds(path: Path, words: TextMatcher) -> bool:
    """Return whether a file, or anything in it if it is an archive, holds erased words.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return _stream_holds(file, words, 0)


def _stream_holds(stream: IO[bytes], words: TextMatcher, depth: int) -> bool:
    head = stream.read(4)
    stream.seek(0)
    packed = head.startswith(_GZIP)
    if not (packed or head in _ZIP):
        return _text_holds(stream, words)
    if depth == _MOST_PACKED:
        return True
    try:
        if packed:
            with gzip.GzipFile(fileobj=stream) as unpacked:
                return _stream_holds(unpacked, words, depth + 1)  # type: ignore[arg-type]
        return _zip_holds(stream, words, depth)
    except _DAMAGE:
        return True


def _zip_holds(stream: IO[bytes], words: TextMatcher, depth: int) -> bool:
    with zipfile.ZipFile(stream) as archive:
        if words.holds([archive.comment.decode("utf-8", "replace")]):
            return True
        for info in archive.infolist():
            if words.holds([info.filename]):
                return True
            with archive.open(info) as member:
                if _stream_holds(member, words, depth + 1):
                    return True
    return False


def _text_holds(stream: IO[bytes], words: TextMatcher) -> bool:
    # ``newline=""``: translate nothing; a lone carriage return counts as spacing, too.
    text = TextIOWrapper(stream, "utf-8", errors="replace", newline="")
    try:
        before = ""
        while portion := text.read(_PORTION):
            if words.holds([before + portion]):
                return True
            # A match may cross the end of a portion.
            before = (before + portion)[-words.reach :]
        return False
    finally:
        text.detach()
