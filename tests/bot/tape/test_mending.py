"""A line of which one bit is wrong is mended, and what is mended is proved."""

from __future__ import annotations

import random

from tape_files import opened

from bot.cli.tape_repair import repair_tapes
from bot.runtime.settings import Settings
from bot.tape.chain import CHAIN_START
from bot.tape.codec import encode_chained
from bot.tape.entries import TapeEntry, message
from bot.tape.line_repair import repair_lines

ENTRIES = [
    TapeEntry(number, "message", message("user", text).payload, {"ts": "then"})
    for number, text in enumerate(["Grüße", "a dog called Rex", '{"id":3}'], start=1)
]
DATA = encode_chained(ENTRIES, CHAIN_START)[0]


def mended(data: bytes) -> bytes:
    """A file's lines as they are after mending."""
    *lines, rest = data.split(b"\n")
    return b"".join(line + b"\n" for _, line, _ in repair_lines(lines)) + rest


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_each_bit_that_flips_in_a_file_is_flipped_back():
    chance = random.Random(3)
    bits = chance.sample(range(len(DATA) * 8 - 8), 200)
    newlines = [place for place, byte in enumerate(DATA[:-1]) if byte == ord("\n")]
    bits += [place * 8 + bit for place in newlines for bit in range(8)]
    # A character that becomes a newline cuts its line in two.
    place = DATA.index(b"*") if b"*" in DATA else DATA.index(b"J") if b"J" in DATA else None
    bits += [] if place is None else [place * 8 + (DATA[place] ^ ord("\n")).bit_length() - 1]
    for bit in bits:
        assert mended(flipped(DATA, bit)) == DATA, bit


async def test_the_command_mends_a_live_file_byte_for_byte(tmp_path, capsys):
    folder = tmp_path / "tapes"
    async with opened(folder) as store:
        await store.create_tape("telegram:42")
        for text in ("one", "two", "three"):
            await store.append(
                "telegram:42", TapeEntry(0, "message", {"role": "user", "content": text})
            )
    [path] = folder.glob("*.jsonl")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"two", b"twn"))
    settings = Settings(home=tmp_path)
    assert repair_tapes(settings, None, dry_run=True) == 1
    assert "a bit was wrong in line 3; can be repaired" in capsys.readouterr().out
    assert b"twn" in path.read_bytes()
    assert repair_tapes(settings, None, dry_run=False) == 0
    assert "repaired, byte for byte" in capsys.readouterr().out
    assert path.read_bytes() == data
    # What no single bit explains stays, and is told.
    path.write_bytes(data.replace(b"two", b"ttt"))
    assert repair_tapes(settings, None, dry_run=False) == 1
    assert "line 3 cannot be read; cannot be repaired" in capsys.readouterr().out
    assert repair_tapes(settings, None, dry_run=True) == 1
