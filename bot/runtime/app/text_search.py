"""Search texts, files and archives for words, however they are spelled or escaped.

Rule 1: words and text are normalized alike: compatibility forms, case and spacing make no
    difference.
Rule 2: JSON escapes are decoded, also nested ones; archives are searched.
Rule 3: what cannot be searched counts as a match.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Collection
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from bot.core.text import normalize_unicode

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


class WordMatcher:
    """Matches any of some words.

    Attributes:
        words: The words, normalized.
        reach: Characters that a match may span, escaped.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.words = frozenset(word for word in map(normalize_text, words) if word)
        # A character escaped three times takes fewer than 32; the rest allows for spacing.
        self.reach = 4_096 + 32 * max(map(len, words), default=0)

    def matches(self, text: str) -> bool:
        """Return whether a text contains any of the words."""
        from bot.memory.erasure.text_matcher import MAX_ESCAPE_DEPTH, unescape_json

        for _ in range(MAX_ESCAPE_DEPTH + 1):
            plain = normalize_text(text)
            if any(word in plain for word in self.words):
                return True
            if "\\" not in text:
                return False
            text = unescape_json(text)
        return False


def normalize_text(text: str) -> str:
    """Return a text with case, compatibility forms and spacing normalized."""
    text = normalize_unicode("NFKC", normalize_unicode("NFKC", text).casefold())
    return " ".join(text.split())


def file_contains(path: Path, wording: WordMatcher) -> bool:
    """Return whether a file, or anything in it if it is an archive, contains any of the words.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return _stream_holds(file, wording, 0)


def _stream_holds(stream: IO[bytes], wording: WordMatcher, depth: int) -> bool:
    head = stream.read(4)
    stream.seek(0)
    packed = head.startswith(_GZIP)
    if not (packed or head in _ZIP):
        return _text_holds(stream, wording)
    if depth == _MOST_PACKED:
        return True
    try:
        if packed:
            with gzip.GzipFile(fileobj=stream) as unpacked:
                return _stream_holds(unpacked, wording, depth + 1)  # type: ignore[arg-type]
        return _zip_holds(stream, wording, depth)
    except _DAMAGE:
        return True


def _zip_holds(stream: IO[bytes], wording: WordMatcher, depth: int) -> bool:
    with zipfile.ZipFile(stream) as archive:
        if wording.matches(archive.comment.decode("utf-8", "replace")):
            return True
        for info in archive.infolist():
            if wording.matches(info.filename):
                return True
            with archive.open(info) as member:
                if _stream_holds(member, wording, depth + 1):
                    return True
    return False


def _text_holds(stream: IO[bytes], wording: WordMatcher) -> bool:
    # ``newline=""``: translate nothing; a lone carriage return counts as spacing, too.
    text = TextIOWrapper(stream, "utf-8", errors="replace", newline="")
    try:
        before = ""
        while portion := text.read(_PORTION):
            if wording.matches(before + portion):
                return True
            # A match may cross the end of a portion.
            before = (before + portion)[-wording.reach :]
        return False
    finally:
        text.detach()
