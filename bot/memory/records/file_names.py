"""Make names that senders, models and people give safe to show, compare and store. Pure.

Rule 1: a name is one part of a path: no separator, no drive, no parent folder.
Rule 2: what is not seen, or changes how the rest is seen, is no part of a name.
Rule 3: two names that a file system may take for one are one.
"""

from __future__ import annotations

import unicodedata

from bot.core.patterns import LazyPattern

LONGEST_NAME = 150
"""The most bytes of a name in UTF-8: file systems take 255."""

_LONGEST_ENDING = 20
_SEPARATORS = LazyPattern(r"[/\\]")
_UNSAFE = LazyPattern(r'[<>:"|?*`\[\]]')
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
)
"""Names of devices on Windows, where a person may unpack an export."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean_name(name: str) -> str:
    """Return a safe name that looks like the given one; ``file`` if nothing is left of it."""
    last = _SEPARATORS.split(name[-4 * LONGEST_NAME :])[-1]
    seen = "".join(
        " " if unicodedata.category(one) in ("Zs", "Cc") else one
        for one in unicodedata.normalize("NFC", last)
        if one in "\t\n" or unicodedata.category(one) not in _UNSEEN
    )
    plain = " ".join(_UNSAFE.sub("_", seen).split()).strip(". ")
    if plain.partition(".")[0].strip().casefold() in _RESERVED:
        plain = f"_{plain}"
    return _shortened(plain) or "file"


def name_key(name: str) -> str:
    """Return a key that is equal for names that a file system may take for one."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return unicodedata.normalize("NFKC", folded.strip())


def sent_name(blob: str, name: str) -> str:
    """Return the name in the folder for exports under which a blob is sent; its length fits a disk."""
    return f"{blob}-{clean_name(name.replace('/', '_'))}"


def numbered_name(name: str, number: int) -> str:
    """Return a name with a number before its ending, such as ``notes (2).md``."""
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > _LONGEST_ENDING:
        stem, dot, ending = name, "", ""
    return f"{stem} ({number}){dot}{ending}"


def _shortened(name: str) -> str:
    if len(name.encode()) <= LONGEST_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending.encode()) > _LONGEST_ENDING:
        stem, dot, ending = name, "", ""
    room = LONGEST_NAME - len(f"{dot}{ending}".encode()) - len("…".encode())
    return f"{stem.encode()[:room].decode('utf-8', 'ignore').rstrip('. ')}…{dot}{ending}"
