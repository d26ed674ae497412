"""Where Telegram's text is written: a sheet, and the table that is being read.

Rule 1: line breaks are owed, and written with the next text: a sheet never ends with one.
Rule 2: code ends every style before it, and they go on after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from channels.telegram.entities import Span
from channels.text import Alignment, aligned


class Sheet:
    """Text that grows, and its styles.

    Attributes:
        spans: The styles so far.
        bullet: What stands before the next text on its line.
        fresh: Whether the next block begins where the text ends, as the first one of a quote.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.bullet = ""
        self.fresh = False
        self._parts: list[str] = []
        self._length = 0
        self._owed = 0
        self._styles: list[list[str | int]] = []

    def text(self) -> str:
        """Return all that was written."""
        return "".join(self._parts)

    def since(self, start: int) -> str:
        """Return what was written from that index on."""
        return self.text()[start:]

    def need(self, lines: int) -> None:
        """Owe at least that many line breaks before the next text."""
        self._owed = max(self._owed, lines)

    def write(self, text: str) -> None:
        """Append text, after what is owed."""
        if self._owed:
            text = text.lstrip(" ")
        if text:
            self._settle()
            self._append(text)

    def mark(self) -> int:
        """Write what is owed, and return the index where the next text begins."""
        self._settle()
        return self._length

    def begin_block(self, indent: str) -> None:
        """Begin a block on a line of its own, unless a bullet or a quote has begun one."""
        if self.bullet or self.fresh:
            return
        self.need(1)
        self.bullet = indent

    def own_line(self) -> None:
        """Begin a line on which not even a bullet stands."""
        if self.bullet.strip():
            self._settle()
        self.bullet = ""
        if not self.fresh:
            self.need(1)

    def end_item(self) -> None:
        """Write a bullet that has no text, so that another may follow."""
        if self.bullet.strip():
            self._settle()
        if not self.fresh:
            self.need(1)

    def block(self, kind: str, text: str, *, language: str | None = None) -> None:
        """Write code on lines of its own."""
        if not text.strip():
            return
        self.own_line()
        self._solid(kind, text, language)

    def code(self, text: str) -> None:
        """Write code inside a line."""
        if text:
            self._solid("code", text, None)

    def style(self, kind: str) -> None:
        """Begin a style."""
        self._styles.append([kind, self.mark()])

    def plain(self, kind: str) -> None:
        """End the style that began last of this kind."""
        for index in range(len(self._styles) - 1, -1, -1):
            if self._styles[index][0] == kind:
                _, start = self._styles.pop(index)
                # Bold in a bold heading is bold once.
                if all(other != kind for other, _ in self._styles):
                    self.add(kind, cast(int, start))
                return

    def add(self, kind: str, start: int, *, url: str | None = None) -> None:
        """Style what was written from that index on."""
        if start < self._length:
            self.spans.append(Span(kind, start, self._length, url))

    def _solid(self, kind: str, text: str, language: str | None) -> None:
        start = self.mark()
        for number, (style, begun) in enumerate(self._styles):
            if all(other != style for other, _ in self._styles[:number]):
                self.add(cast(str, style), cast(int, begun))
        self._append(text)
        self.spans.append(Span(kind, start, self._length, None, language))
        for entry in self._styles:
            entry[1] = self._length

    def _settle(self) -> None:
        owed, bullet = self._owed, self.bullet
        self._owed, self.bullet, self.fresh = 0, "", False
        if self._length:
            self._append("\n" * owed)
        self._append(bullet)

    def _append(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)


class TableDraft:
    """A table whose cells are being read.

    Attributes:
        in_cell: Whether text belongs to a cell now.
        cell_end: Where the source of the cell that was read last ends, in bytes.
        links: The links of its cells, label and address: code holds no links.
    """

    def __init__(self) -> None:
        self.in_cell = False
        self.cell_end = 0
        self.links: list[tuple[str, str]] = []
        self._alignments: list[Alignment] = []
        self._rows: list[list[str]] = []

    def start(self, kind: str, value: Sequence[str] | None) -> None:
        """Begin the table, a row or a cell, by the parser's name of it."""
        if kind == "Table":
            sides = {"Right": "right", "Center": "center"}
            self._alignments = [cast(Alignment, sides.get(v, "left")) for v in value or ()]
        elif kind in ("TableHead", "TableRow"):
            self._rows.append([])
        elif kind == "TableCell":
            self._rows[-1].append("")
            self.in_cell = True

    def end_cell(self, where: int) -> None:
        """End the cell; the source goes on after it at that place."""
        self.in_cell, self.cell_end = False, where

    def end_row(self, rest: str) -> None:
        """End the row; cells that its table has no columns for are in the rest of its source."""
        # What the parser drops there is text that a model wrote.
        if rest.strip(" |\n>"):
            self._rows[-1] += [cell.strip() for cell in rest.strip(" |\n").split("|")]

    @property
    def length(self) -> int:
        """How much text the cell has."""
        return len(self._rows[-1][-1])

    def write(self, text: str) -> None:
        """Append text to the cell."""
        self._rows[-1][-1] += text.replace("\n", " ")

    def since(self, start: int) -> str:
        """Return the cell's text from that index on."""
        return self._rows[-1][-1][start:]

    def text(self) -> str:
        """Return the table for a monospaced font."""
        return aligned(self._rows, self._alignments)
