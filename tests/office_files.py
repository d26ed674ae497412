"""Small documents of several kinds, as office programs write them."""

from __future__ import annotations

import io
import zipfile

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def archive(parts: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, text in parts.items():
            file.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()


def _types(*overrides: tuple[str, str]) -> str:
    parts = "".join(
        f'<Override PartName="{part}" ContentType="application/vnd.openxmlformats-officedocument.{kind}+xml"/>'
        for part, kind in overrides
    )
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/>{parts}</Types>'
    )


def _relations(*targets: tuple[str, str]) -> str:
    parts = "".join(
        f'<Relationship Id="r{number}" Type="{_LINKS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{parts}</Relationships>'


def _sheet(*rows: tuple[str, ...]) -> str:
    lines = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row) + "</row>"
        for row in rows
    )
    return f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'


SHEETS = archive(
    {
        "[Content_Types].xml": _types(
            ("/xl/workbook.xml", "spreadsheetml.sheet.main"),
            ("/xl/worksheets/sheet1.xml", "spreadsheetml.worksheet"),
            ("/xl/worksheets/sheet2.xml", "spreadsheetml.worksheet"),
        ),
        "_rels/.rels": _relations(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": (
            f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets><sheet name="Income" sheetId="1" '
            'r:id="r1"/><sheet name="Costs" sheetId="2" r:id="r2"/></sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": _relations(
            ("worksheet", "worksheets/sheet1.xml"), ("worksheet", "worksheets/sheet2.xml")
        ),
        "xl/worksheets/sheet1.xml": _sheet(("month", "sum"), ("May", "1200")),
        "xl/worksheets/sheet2.xml": _sheet(("what", "sum"), ("plumber", "340")),
    }
)
"""A spreadsheet with the sheets Income and Costs."""

TEXT = archive(
    {
        "[Content_Types].xml": _types(("/word/document.xml", "wordprocessingml.document.main")),
        "_rels/.rels": _relations(("officeDocument", "word/document.xml")),
        "word/document.xml": (
            f'{_HEAD}<w:document xmlns:w="{_WORD}"><w:body><w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r>'
            "<w:t>Deposit</w:t></w:r></w:p><w:p><w:r><w:t>Three months are the deposit.</w:t></w:r></w:p>"
            "</w:body></w:document>"
        ),
    }
)
"""A text."""

_CHAPTERS = {
    "a": ("Loomings", "Call me Ishmael."),
    "b": ("The Carpet-Bag", "Queequeg comes later."),
}

EPUB = archive(
    {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            f'{_HEAD}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
        ),
        "book.opf": (
            f'{_HEAD}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">w</dc:identifier><dc:title>Whale'
            "</dc:title><dc:language>en</dc:language></metadata><manifest>"
            + "".join(
                f'<item id="{key}" href="{key}.xhtml" media-type="application/xhtml+xml"/>'
                for key in _CHAPTERS
            )
            + "</manifest><spine>"
            + "".join(f'<itemref idref="{key}"/>' for key in _CHAPTERS)
            + "</spine></package>"
        ),
        **{
            f"{key}.xhtml": (
                f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title></head><body>'
                f"<h1>{title}</h1><p>{text}</p></body></html>"
            )
            for key, (title, text) in _CHAPTERS.items()
        },
    }
)
"""A book with two chapters."""


def pdf(*pages: str) -> bytes:
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {4 + 2 * number} 0 R/Resources<</Font<</F1"
            "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
        )
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    body, places = "%PDF-1.4\n", []
    for number, told in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj{told}endobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    return (
        f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}"
        f"/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF\n"
    ).encode()
