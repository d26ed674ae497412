"""Looks for words in the raw bytes of every file below a folder, packed ones unpacked."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from bot.testing.host import Host


async def erase(host: Host, asked: str, **who: Any) -> str:
    """Ask for something to be forgotten, and press the button; return what is answered."""
    question = await host.channel.send(f"/memory forget {asked}", **who)
    text = await host.channel.wait_for_answer(question)
    buttons = [one.command for one in host.channel.answers[-1].buttons]
    assert buttons, text
    pressed = await host.channel.send(buttons[0], **who)
    return await host.channel.wait_for_answer(pressed, within=20)


async def until_clean(host: Host, folder: Path, words: list[str]) -> None:
    """Wait until the bus has let go of the last message, and see that nothing else holds a word."""
    await host.bus.drain()
    await host.wait_until(lambda: not traces(folder / "bus", words))
    left = traces(folder, words)
    assert left == [], left


def traces(folder: Path, words: Collection[str]) -> list[tuple[str, str]]:
    """Return each file with each word that it holds, in any case, as it stands or as JSON escapes."""
    # Chance puts shorter words into digests.
    assert all(len(word.encode()) >= 6 for word in words), words
    while True:
        try:
            return _traces(folder, words)
        except FileNotFoundError:
            # A part was packed between two looks: what it held is in a file that was perhaps not there yet.
            continue


def _traces(folder: Path, words: Collection[str]) -> list[tuple[str, str]]:
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        for name, data in _unpacked(str(path.relative_to(folder)), path.read_bytes()):
            held = data.lower()
            found += [(name, word) for word in words if any(one in held for one in _forms(word))]
            found += [(name, word) for word in words if word.lower() in name.lower()]
    return found


def _forms(word: str) -> Iterator[bytes]:
    # Bytes are put in lower case, which touches ASCII alone.
    for plain in {word.lower(), word.upper(), word}:
        yield plain.encode().lower()
        escaped = (f"\\u{ord(sign):04x}" if ord(sign) > 127 else sign for sign in plain)
        yield "".join(escaped).encode().lower()


def _unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    yield name, data
    if data[:2] == b"\x1f\x8b":
        yield from _unpacked(f"{name}!", gzip.decompress(data))
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from _unpacked(f"{name}!{member}", archive.read(member))
