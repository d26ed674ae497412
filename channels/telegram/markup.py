"""Markdown as text and the styles that Telegram knows.

Rule 1: nothing but markup is lost: HTML is text, a picture is a link, tables are monospaced, and
what has no style is shown as it was written.
Rule 2: no address but those of the web becomes a link; other addresses are shown, and as code, so
that Telegram makes nothing of them either.
Rule 3: blank lines are ours, not the source's, so that text which is appended moves nothing above.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from channels.telegram.blocks import Sheet, TableDraft
from channels.telegram.entities import Span
from channels.telegram.events import Event, Range, code, events, fence, labels, named, shown
from channels.telegram.formulae import is_formula, may_have_formulae, readable, with_dollars
from channels.text import LITERAL, SPOILER, visible, web_address

_STYLES = {"Strong": "bold", "Emphasis": "italic", "Strikethrough": "strikethrough"}
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_DEFINITION = re.compile(r"\[((?:[^\]\\]|\\.)+)\]:")
# A link of Telegram's own opens a person, a bot or a setting at one touch.
_SPECIAL = re.compile(rf"{SPOILER.pattern}|(?:tg|ton|tonsite)://\S+", re.IGNORECASE)
_COMMAND = re.compile(r"/[a-z][a-z0-9_]{0,31}")
_RULE = "———"


def read(source: str) -> tuple[str, list[Span]]:
    """Return the text of clean Markdown and its styles."""
    data = source.encode("utf-8")
    found = events(source)
    if may_have_formulae(source):
        data = with_dollars(data, code(found))
        found = events(data.decode("utf-8"))
    return _Reader(data).read(found)


class _Reader:
    """Writes the events of one document to a sheet."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._literal = _literals(source)
        self._sheet = Sheet()
        self._lists: list[int | None] = []
        self._quotes: list[int] = []
        self._links: list[tuple[str, int]] = []
        self._code: list[str] | None = None
        self._language = ""
        self._table = TableDraft()

    def read(self, found: list[Event]) -> tuple[str, list[Span]]:
        depth, last = 0, 0
        used = labels(found)
        for event, where in found:
            opens = isinstance(event, dict) and "Start" in event
            if depth == 0 and (opens or event == "Rule"):
                self._definitions(last, where["start"], used)
                last = where["end"]
            depth += opens
            depth -= isinstance(event, dict) and "End" in event
            self._take(event, where)
        self._definitions(last, len(self._source), used)
        return self._sheet.text(), self._sheet.spans

    def _take(self, event: Any, where: Range) -> None:
        if isinstance(event, str):
            self._break(event)
            return
        ((kind, value),) = event.items()
        if kind == "Start":
            self._start(value, where)
        elif kind == "End":
            self._end(value, where)
        elif kind == "Text":
            self._text(value)
        elif kind == "Code":
            self._code_span(value)
        elif kind in ("InlineHtml", "Html"):
            self._write(_LINE_BREAK.sub(" " if self._table.in_cell else "\n", value))
        elif kind in ("InlineMath", "DisplayMath"):
            self._formula(value, where, display=kind == "DisplayMath")
        elif kind == "TaskListMarker":
            self._sheet.bullet = self._indent() + ("☑ " if value else "☐ ")
        elif kind == "FootnoteReference":
            self._write(f"[{value}]")

    def _break(self, event: str) -> None:
        if event == "Rule":
            self._open()
            self._write(_RULE)
            self._close()
        elif self._table.in_cell:
            self._table.write(" ")
        else:
            self._sheet.need(1)

    def _start(self, tag: Any, where: Range) -> None:
        kind, value = named(tag)
        if kind in _STYLES:
            self._style(kind, where, begins=True)
        elif kind in ("Link", "Image"):
            self._links.append((value["dest_url"], self._position()))
        elif kind in ("Paragraph", "HtmlBlock"):
            self._open()
        elif kind == "Heading":
            self._open()
            self._sheet.style("bold")
        elif kind in ("List", "Item", "BlockQuote", "FootnoteDefinition"):
            self._start_container(kind, value)
        elif kind == "CodeBlock":
            self._language, more = fence(value)
            self._code = [f"{more}\n"] if more else []
        else:
            self._table.start(kind, value)

    def _start_container(self, kind: str, value: Any) -> None:
        if kind == "List":
            self._open()
            self._lists.append(value)
        elif kind == "Item":
            self._item()
        elif kind == "BlockQuote":
            self._sheet.own_line()
            self._quotes.append(self._sheet.mark())
            self._sheet.fresh = True
        else:
            self._open()
            self._write(f"[{value}] ")
            self._sheet.fresh = True

    def _end(self, tag: Any, where: Range) -> None:
        kind, _ = named(tag)
        if kind in _STYLES:
            self._style(kind, where, begins=False)
        elif kind in ("Link", "Image"):
            self._end_link()
        elif kind in ("Paragraph", "HtmlBlock", "FootnoteDefinition"):
            self._close()
        elif kind == "Heading":
            self._sheet.plain("bold")
            self._close(1)
        elif kind in ("List", "Item", "BlockQuote"):
            self._end_container(kind)
        elif kind == "CodeBlock":
            self._end_code()
        elif kind == "Table":
            self._end_table()
        elif kind == "TableCell":
            self._table.end_cell(where["end"])
        elif kind in ("TableHead", "TableRow"):
            rest = self._source[self._table.cell_end : where["end"]].decode("utf-8")
            self._table.end_row(rest)

    def _end_container(self, kind: str) -> None:
        if kind == "List":
            self._lists.pop()
            self._close()
        elif kind == "Item":
            self._sheet.end_item()
        else:
            self._end_quote()

    def _style(self, kind: str, where: Range, *, begins: bool) -> None:
        start, end = where["start"], where["end"]
        literal = bisect_right(self._literal, (start, len(self._source))) - 1
        if literal >= 0 and start < self._literal[literal][1]:
            doubled = self._source[start : start + 1] == self._source[start + 1 : start + 2]
            count = 2 if kind != "Emphasis" and doubled else 1
            place = start if begins else end - count
            self._write(self._source[place : place + count].decode("utf-8"))
        # A single tilde reads as "about".
        elif kind == "Strikethrough" and self._source[start : start + 2] != b"~~":
            self._write("~")
        elif self._table.in_cell:
            return
        elif begins:
            self._sheet.style(_STYLES[kind])
        else:
            self._sheet.plain(_STYLES[kind])

    def _open(self) -> None:
        self._sheet.begin_block(self._indent(inner=True))

    def _close(self, gap: int = 2) -> None:
        self._sheet.need(1 if self._lists else gap)

    def _indent(self, *, inner: bool = False) -> str:
        return "  " * (len(self._lists) - (not inner))

    def _item(self) -> None:
        number = self._lists[-1]
        self._sheet.end_item()
        self._sheet.bullet = self._indent() + ("• " if number is None else f"{number}. ")
        if number is not None:
            self._lists[-1] = number + 1

    def _end_quote(self) -> None:
        start = self._quotes.pop()
        if not self._quotes:
            self._sheet.add("blockquote", start)
        self._sheet.fresh = False
        self._close()

    def _end_code(self) -> None:
        text = "".join(self._code or ()).removesuffix("\n")
        self._code = None
        self._sheet.block("pre", text, language=self._language or None)
        self._close()

    def _end_table(self) -> None:
        self._sheet.block("pre", self._table.text())
        for label, url in self._table.links:
            self._sheet.need(1)
            start = self._sheet.mark()
            self._sheet.write(label)
            self._sheet.add("text_link", start, url=url)
        self._table = TableDraft()
        self._close()

    def _write(self, text: str) -> None:
        if self._table.in_cell:
            self._table.write(text)
        elif text.endswith("\n"):
            self._sheet.write(text[:-1])
            self._sheet.need(1)
        else:
            self._sheet.write(text)

    def _text(self, text: str) -> None:
        if self._code is not None:
            self._code.append(text)
            return
        if self._table.in_cell or ("||" not in text and "://" not in text):
            self._write(text)
            return
        last = 0
        for match in _SPECIAL.finditer(text):
            self._write(text[last : match.start()])
            last = match.end()
            if match[1] is None:
                self._inline_code(match[0])
                continue
            start = self._sheet.mark()
            self._write(match[1])
            self._sheet.add("spoiler", start)
        self._write(text[last:])

    def _code_span(self, text: str) -> None:
        if _COMMAND.fullmatch(text):
            # Plain, Telegram makes it a command that a tap sends.
            self._write(text)
        else:
            self._inline_code(text)

    def _inline_code(self, text: str) -> None:
        if self._table.in_cell or any(web_address(url) for url, _ in self._links):
            self._write(text)
        else:
            self._sheet.code(text)

    def _formula(self, tex: str, where: Range, *, display: bool) -> None:
        start, end = where["start"], where["end"]
        before = self._source[max(0, start - 1) : start].decode("utf-8", "replace")
        after = self._source[end : end + 1].decode("utf-8", "replace")
        if not display and not is_formula(tex, before=before, after=after):
            self._write(self._source[start:end].decode("utf-8"))
            return
        text = readable(tex) or tex.strip()
        if display and not (self._table.in_cell or self._links):
            self._sheet.block("pre", text)
            self._sheet.need(1)
        else:
            self._write(text)

    def _position(self) -> int:
        return self._table.length if self._table.in_cell else self._sheet.mark()

    def _end_link(self) -> None:
        url, start = self._links.pop()
        in_cell = self._table.in_cell
        label = self._table.since(start) if in_cell else self._sheet.since(start)
        address = web_address(url)
        if not visible(label):
            self._write(shown(url))
            label = url
        if self._links:
            return
        if address is None:
            if url and label not in (url, url.removeprefix("mailto:")):
                self._write(" (")
                self._inline_code(shown(url))
                self._write(")")
        elif in_cell:
            self._table.links.append((label, address))
        else:
            self._sheet.add("text_link", start, url=address)

    def _definitions(self, start: int, end: int, used: set[str]) -> None:
        """Show the targets of links that no link uses: they were meant as text."""
        text = self._source[start:end].decode("utf-8").strip()
        if not text:
            return
        for line in text.split("\n"):
            match = _DEFINITION.match(line.strip())
            if match is None or match[1].casefold() not in used:
                self._open()
                self._write(line.strip())
                self._close(1)
        self._close()


def _literals(source: bytes) -> list[tuple[int, int]]:
    """Return the places of addresses and Python names, whose signs of emphasis are their own."""
    pattern = re.compile(LITERAL.pattern.encode())
    return [match.span() for match in pattern.finditer(source)]
