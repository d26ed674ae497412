"""What becomes of office files and e-books, and of what only looks like them."""

from __future__ import annotations

import io
import zipfile
from itertools import pairwise

import pytest
from office_files import EPUB, SHEETS, TEXT, archive

from bot.bus.media.documents import read_document

ZIP = "application/zip"


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (SHEETS, ["sheet Income", "sheet Costs"]),
        (EPUB, ["chapter Whale", "chapter Loomings", "chapter The Carpet-Bag"]),
        (TEXT, ["section Deposit"]),
        (rb"{\rtf1 The rent is 950 euros.}", [""]),
    ],
    ids=["spreadsheet", "book", "text", "rtf"],
)
async def test_each_part_has_its_place(data, places):
    read = await read_document(data, ZIP)
    assert [place for place, _ in read.sections] == places
    assert read.note is None
    assert all(text in (read.text or "") for _, text in read.sections)


def expanding() -> bytes:
    """Return a text whose entities expand to a billion words."""
    names = "abcdefghij"
    entities = f'<!ENTITY a "{"lol " * 10}">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise(names)
    )
    with zipfile.ZipFile(io.BytesIO(TEXT)) as whole:
        parts = {name: whole.read(name).decode() for name in whole.namelist()}
    body = parts["word/document.xml"]
    head, _, rest = body.partition("?>")
    rest = rest.replace("Three months are the deposit.", "&j;")
    parts["word/document.xml"] = f"{head}?><!DOCTYPE w:document [{entities}]>{rest}"
    return archive(parts)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "made",
    [
        lambda: archive({"notes.txt": "an archive, no office file"}),
        lambda: archive({"../../etc/passwd": "root"}),
        lambda: b"PK\x03\x04" + bytes(500),
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5_000),
        lambda: SHEETS[: len(SHEETS) // 2],
        expanding,
    ],
    ids=["archive", "traversal", "zip-head", "ole-head", "torn", "entities"],
)
async def test_a_hostile_file_gives_a_reason_or_little_text(made):
    read = await read_document(made(), ZIP, seconds=8)
    assert len(read.text or "") < 10_000
    assert read.text is not None or read.note
