"""Whether a text, or a file, holds some words, in whatever way they are written there.

Rule 1: what is looked for and what is looked through are folded alike: compatibility forms, case and
spacing make no difference.
Rule 2: JSON's escapes are read, also within one another; archives are looked into.
Rule 3: what cannot be looked into counts as holding the words.
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
from bot.memory.forgetting.text_matcher import MAX_ESCAPE_DEPTH, unescape_json

_MOST_PACKED = 4
"""How deep archives may lie within one another."""

_PORTION = 1 << 20
_GZIP, _ZIP = b"\x1f\x8b\x08", (b"PK\x03\x04", b"PK\x05\x06")
_DAMAGE = (
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a way of packing that is not known here
    RuntimeError,  # a password
    ValueError,  # headers that say what cannot be
)


class WordMatcher:
    """Words that are looked for.

    Attributes:
        words: The words, folded.
        reach: How many characters may lie between the first and the last that make up a word.

    Args:
        words: Words or passages; those that are only spacing are nothing.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.words = frozenset(word for word in map(normalize_text, words) if word)
        # Escaped thrice, a character takes fewer than these; and some spacing.
        self.reach = 4_096 + 32 * max(map(len, words), default=0)

    def matches(self, text: str) -> bool:
        """Return whether a text holds any of the words."""
        for _ in range(MAX_ESCAPE_DEPTH + 1):
            plain = normalize_text(text)
            if any(word in plain for word in self.words):
                return True
            if "\\" not in text:
                return False
            text = unescape_json(text)
        return False


def normalize_text(text: str) -> str:
    """Return a text without what makes no difference."""
    text = normalize_unicode("NFKC", normalize_unicode("NFKC", text).casefold())
    return " ".join(text.split())


def file_contains(path: Path, wording: WordMatcher) -> bool:
    """Return whether a file holds any of the words; of an archive, whether anything in it does.

    Raises:
        OSError: It cannot be read.
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
    # ``newline``: nothing is to be translated, and a lone carriage return is spacing as well.
    text = TextIOWrapper(stream, "utf-8", errors="replace", newline="")
    try:
        before = ""
        while portion := text.read(_PORTION):
            if wording.matches(before + portion):
                return True
            # Words may stand on both sides of a portion's end.
            before = (before + portion)[-wording.reach :]
        return False
    finally:
        text.detach()
