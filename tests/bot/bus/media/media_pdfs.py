"""PDFs made for tests."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence

from pypdf import PdfWriter
from pypdf.generic import (
    DecodedStreamObject,
    DictionaryObject,
    EncodedStreamObject,
    NameObject,
    StreamObject,
)


def pdf(pages: Sequence[str], *, password: str | None = None) -> bytes:
    """Return a PDF with a line of text on each page; an empty line is a page without text."""
    return _written([_page(text) for text in pages], password)


def bomb(megabytes: int, *, after: Sequence[str] = ()) -> bytes:
    """Return a small PDF whose last page unpacks to so much; three of them keep a reader busy."""
    packer = zlib.compressobj(9)
    block = b"(x) Tj ".ljust(8) * 131_072
    packed = [
        packer.compress(b"BT /F1 12 Tf "),
        *(packer.compress(block) for _ in range(megabytes)),
    ]
    stream = EncodedStreamObject()
    stream._data = b"".join([*packed, packer.flush()])
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    return _written([*(_page(text) for text in after), stream], None)


def _page(text: str) -> StreamObject:
    stream = DecodedStreamObject()
    if text:
        stream.set_data(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1"))
    return stream


def _written(streams: Sequence[StreamObject], password: str | None) -> bytes:
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    reference = writer._add_object(font)
    for stream in streams:
        page = writer.add_blank_page(612, 792)
        fonts = DictionaryObject({NameObject("/F1"): reference})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
