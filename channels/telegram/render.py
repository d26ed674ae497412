"""Render an answer's Markdown as Telegram messages with entities.

Appending text to an answer changes only its last piece and adds pieces after it, unless the text is
markup that changes the meaning of what precedes it. The number of pieces of text without markup
never decreases.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from channels.telegram.entities import (
    Entity,
    FormattedText,
    StyledSpan,
    split_formatted_text,
)
from channels.telegram.latex import (
    has_latex_delimiters,
    is_formula,
    latex_to_unicode,
    use_dollar_delimiters,
)
from channels.text import (
    LITERAL_PATTERN,
    SPOILER_PATTERN,
    Alignment,
    check_limit,
    clean_text,
    fence_info,
    format_table,
    has_visible_text,
    split_plain_text,
    web_url,
)

__all__ = ["LIMIT", "Entity", "FormattedText", "render", "render_plain"]

LIMIT = 4096
"""The most UTF-16 code units of a text message (https://core.telegram.org/bots/api#sendmessage)."""

log = logging.getLogger(__name__)


def render(markdown: str, limit: int = LIMIT) -> list[FormattedText]:
    """Return the answer as texts with entities, to be sent in order and without a parse mode.

    Returns:
        The pieces; empty if nothing is visible.

    Raises:
        ValueError: The limit is below ``MIN_MESSAGE_LIMIT``.
    """
    check_limit(limit)

    try:
        text, spans = parse_markdown(clean_text(markdown))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        log.debug("an answer is shown without formatting: its markup was invalid", exc_info=exc)
        return [FormattedText(text) for text in render_plain(markdown, limit)]
    return split_formatted_text(text, spans, limit)


def render_plain(markdown: str, limit: int = LIMIT) -> list[str]:
    """Return the answer's source as pieces, for use when Telegram rejects its entities.

    Raises:
        ValueError: The limit is below ``MIN_MESSAGE_LIMIT``.
    """
    return split_plain_text(markdown, limit)


_SIDES: dict[str, Alignment] = {"Right": "right", "Center": "center"}
_STYLES = {"Strong": "bold", "Emphasis": "italic", "Strikethrough": "strikethrough"}
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_DEFINITION = re.compile(r"\[((?:[^\]\\]|\\.)+)\]:")
# Shown as code: a link of these schemes opens a person, a bot or a setting with one tap.
_SPECIAL = re.compile(rf"{SPOILER_PATTERN.pattern}|(?:tg|ton|tonsite)://\S+", re.IGNORECASE)
_COMMAND = re.compile(r"/[a-z][a-z0-9_]{0,31}")
_RULE = "———"


def parse_markdown(source: str) -> tuple[str, list[StyledSpan]]:
    """Return the text and the styled ranges of Markdown that ``clean_text`` returned."""
    data = source.encode("utf-8")
    parser_events = parse_events(source)
    if has_latex_delimiters(source):
        data = use_dollar_delimiters(data, code_ranges(parser_events))
        parser_events = parse_events(data.decode("utf-8"))
    return _Reader(data).read(parser_events)


class _Sheet:
    """Text with styles over it, while it is written.

    Attributes:
        spans: The styled ranges so far.
        links: The label and URL of each link in a table's cell, which cannot contain links.
        bullet: Written before the next text, such as a list marker or indentation.
        at_block_start: Whether the next block continues at the current position, like the first one
            of a quote.
        is_cell: Whether it is a table's cell: one line without styles.
    """

    def __init__(self, *, is_cell: bool = False) -> None:
        self.spans: list[StyledSpan] = []
        self.links: list[tuple[str, str]] = []
        self.bullet = ""
        self.at_block_start = False
        self.is_cell = is_cell
        self._parts: list[str] = []
        self._length = 0
        self._owed = 0
        self._styles: list[tuple[str, int]] = []

    def text(self, start: int = 0) -> str:
        """Return the text from an index on."""
        return "".join(self._parts)[start:]

    def owe(self, lines: int) -> None:
        """Require at least this many line breaks before the next text."""
        self._owed = max(self._owed, 0 if self.is_cell else lines)

    def write(self, text: str) -> None:
        """Append text, after pending line breaks and bullets."""
        if self.is_cell:
            text = text.replace("\n", " ")
        ended = text.removesuffix("\n")
        shown = ended.lstrip(" ") if self._owed else ended
        if shown:
            self.position()
            self._append(shown)
        if ended != text:
            self.owe(1)

    def position(self) -> int:
        """Write pending line breaks and bullets; return the index at which the next text begins."""
        owed, bullet = self._owed, self.bullet
        self._owed, self.bullet, self.at_block_start = 0, "", False
        if self._length:
            self._append("\n" * owed)
        self._append(bullet)
        return self._length

    def begin_block(self, indent: str) -> None:
        """Begin a block on its own line, unless a bullet or a quote has begun it already."""
        if not (self.bullet or self.at_block_start):
            self.owe(1)
            self.bullet = indent

    def end_line(self) -> None:
        """Begin a new line, after a bullet that has no text."""
        if self.bullet.strip():
            self.position()
        if not self.at_block_start:
            self.owe(1)

    def open_style(self, kind: str) -> None:
        """Begin a style."""
        if not self.is_cell:
            self._styles.append((kind, self.position()))

    def close_style(self, kind: str) -> None:
        """End the most recently begun style of this kind."""
        kinds = [style for style, _ in self._styles]
        if kind in kinds:
            _, start = self._styles.pop(len(kinds) - 1 - kinds[::-1].index(kind))
            # Nested styles of the same kind become one span.
            if kinds.count(kind) == 1:
                self.add_span(kind, start)

    def add_span(self, kind: str, start: int, url: str | None = None) -> None:
        """Style the text from an index on."""
        if start < self._length and not self.is_cell:
            self.spans.append(StyledSpan(kind, start, self._length, url))

    def code(self, kind: str, text: str, language: str | None = None) -> None:
        """Write code, which interrupts all styles."""
        start = self.position()
        for style, begun in dict(reversed(self._styles)).items():
            self.add_span(style, begun)
        self._append(text)
        self.spans.append(StyledSpan(kind, start, self._length, None, language))
        self._styles = [(style, self._length) for style, _ in self._styles]

    def code_block(self, text: str, language: str | None = None) -> None:
        """Write a code block on its own lines."""
        if text.strip():
            if self.bullet.strip():
                self.position()
            self.bullet = ""
            self.end_line()
            self.code("pre", text, language)

    def _append(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)


class _Reader:
    """Convert the parser events of one document to text and spans."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._literal = _literals(source)
        self._sheet = self._page = _Sheet()
        self._lists: list[int | None] = []
        self._quotes: list[int] = []
        self._links: list[tuple[str, int]] = []
        self._code: list[str] | None = None
        self._language = ""
        self._rows: list[list[str]] = []
        self._alignments: list[Alignment] = []
        self._cell_links: list[tuple[str, str]] = []
        self._cell_end = 0

    def read(self, parser_events: list[ParserEvent]) -> tuple[str, list[StyledSpan]]:
        depth, last = 0, 0
        used = link_labels(parser_events)
        for event, where in parser_events:
            opens = isinstance(event, dict) and "Start" in event
            if depth == 0 and (opens or event == "Rule"):
                self._definitions(last, where["start"], used)
                last = where["end"]
            depth += opens
            depth -= isinstance(event, dict) and "End" in event
            self._take(event, where)
        self._definitions(last, len(self._source), used)
        return self._sheet.text(), self._sheet.spans

    def _take(  # noqa: C901, PLR0912 - a branch for each event
        self, event: Any, where: SourceRange
    ) -> None:
        match event:
            case "Rule":
                self._paragraph(_RULE)
                self._close()
            case str() if self._sheet.is_cell:
                self._sheet.write(" ")
            case str():
                self._sheet.owe(1)
            case {"Start": tag}:
                self._start(*tag_parts(tag), where)
            case {"End": tag}:
                self._end(tag_parts(tag)[0], where)
            case {"Text": text}:
                self._text(text)
            case {"Code": text} if _COMMAND.fullmatch(text):
                # As plain text, Telegram makes it a command that is sent with a tap.
                self._sheet.write(text)
            case {"Code": text}:
                self._inline_code(text)
            case {"InlineHtml": text} | {"Html": text}:
                self._sheet.write(_LINE_BREAK.sub(" " if self._sheet.is_cell else "\n", text))
            case {"InlineMath": tex}:
                self._formula(tex, where, display=False)
            case {"DisplayMath": tex}:
                self._formula(tex, where, display=True)
            case {"TaskListMarker": done}:
                self._sheet.bullet = self._indent() + ("☑ " if done else "☐ ")
            case {"FootnoteReference": label}:
                self._sheet.write(f"[{label}]")

    def _start(self, kind: str, value: Any, where: SourceRange) -> None:  # noqa: C901, PLR0912 - a branch for each tag
        sheet = self._sheet
        match kind:
            case "Strong" | "Emphasis" | "Strikethrough":
                self._style(kind, where, begins=True)
            case "Link" | "Image":
                self._links.append((value["dest_url"], sheet.position()))
            case "Paragraph" | "HtmlBlock":
                self._open()
            case "Heading":
                self._open()
                sheet.open_style("bold")
            case "List":
                self._open()
                self._lists.append(value)
            case "Item":
                self._item()
            case "BlockQuote":
                if sheet.bullet.strip():
                    sheet.position()
                sheet.bullet = ""
                sheet.end_line()
                self._quotes.append(sheet.position())
                sheet.at_block_start = True
            case "FootnoteDefinition":
                self._paragraph(f"[{value}] ")
                sheet.at_block_start = True
            case "CodeBlock":
                self._language, more = code_fence(value)
                self._code = [f"{more}\n"] if more else []
            case "Table":
                self._rows, self._cell_links = [], []
                self._alignments = [_SIDES.get(side, "left") for side in value or ()]
            case "TableHead" | "TableRow":
                self._rows.append([])
            case "TableCell":
                self._sheet = _Sheet(is_cell=True)

    def _end(self, kind: str, where: SourceRange) -> None:  # noqa: C901, PLR0912 - a branch for each tag
        sheet = self._sheet
        match kind:
            case "Strong" | "Emphasis" | "Strikethrough":
                self._style(kind, where, begins=False)
            case "Link" | "Image":
                self._end_link()
            case "Paragraph" | "HtmlBlock" | "FootnoteDefinition":
                self._close()
            case "Heading":
                sheet.close_style("bold")
                self._close(1)
            case "List":
                self._lists.pop()
                self._close()
            case "Item":
                sheet.end_line()
            case "BlockQuote":
                start = self._quotes.pop()
                if not self._quotes:
                    sheet.add_span("blockquote", start)
                sheet.at_block_start = False
                self._close()
            case "CodeBlock":
                text = "".join(self._code or ()).removesuffix("\n")
                self._code = None
                sheet.code_block(text, self._language or None)
                self._close()
            case "TableCell":
                self._rows[-1].append(sheet.text())
                self._cell_links += sheet.links
                self._sheet, self._cell_end = self._page, where["end"]
            case "TableHead" | "TableRow":
                # The parser drops cells beyond the table's columns, which are text of the model.
                rest = self._source[self._cell_end : where["end"]].decode("utf-8")
                if rest.strip(" |\n>"):
                    self._rows[-1] += [cell.strip() for cell in rest.strip(" |\n").split("|")]
            case "Table":
                sheet.code_block(format_table(self._rows, self._alignments))
                for label, url in self._cell_links:
                    sheet.owe(1)
                    start = sheet.position()
                    sheet.write(label)
                    sheet.add_span("text_link", start, url)
                self._close()

    def _style(self, kind: str, where: SourceRange, *, begins: bool) -> None:
        start, end = where["start"], where["end"]
        literal = bisect_right(self._literal, (start, len(self._source))) - 1
        if literal >= 0 and start < self._literal[literal][1]:
            doubled = self._source[start : start + 1] == self._source[start + 1 : start + 2]
            count = 2 if kind != "Emphasis" and doubled else 1
            place = start if begins else end - count
            self._sheet.write(self._source[place : place + count].decode("utf-8"))
        # A single tilde means "about".
        elif kind == "Strikethrough" and self._source[start : start + 2] != b"~~":
            self._sheet.write("~")
        elif begins:
            self._sheet.open_style(_STYLES[kind])
        else:
            self._sheet.close_style(_STYLES[kind])

    def _open(self) -> None:
        self._sheet.begin_block(self._indent(inner=True))

    def _close(self, gap: int = 2) -> None:
        self._sheet.owe(1 if self._lists else gap)

    def _paragraph(self, text: str) -> None:
        self._open()
        self._sheet.write(text)

    def _indent(self, *, inner: bool = False) -> str:
        return "  " * (len(self._lists) - (not inner))

    def _item(self) -> None:
        number = self._lists[-1]
        self._sheet.end_line()
        self._sheet.bullet = self._indent() + ("• " if number is None else f"{number}. ")
        if number is not None:
            self._lists[-1] = number + 1

    def _text(self, text: str) -> None:
        sheet = self._sheet
        if self._code is not None:
            self._code.append(text)
            return
        if sheet.is_cell or ("||" not in text and "://" not in text):
            sheet.write(text)
            return
        last = 0
        for match in _SPECIAL.finditer(text):
            sheet.write(text[last : match.start()])
            last = match.end()
            if match[1] is None:
                self._inline_code(match[0])
                continue
            start = sheet.position()
            sheet.write(match[1])
            sheet.add_span("spoiler", start)
        sheet.write(text[last:])

    def _inline_code(self, text: str) -> None:
        if self._sheet.is_cell or any(web_url(url) for url, _ in self._links):
            self._sheet.write(text)
        elif text:
            self._sheet.code("code", text)

    def _formula(self, tex: str, where: SourceRange, *, display: bool) -> None:
        start, end = where["start"], where["end"]
        before = self._source[max(0, start - 1) : start].decode("utf-8", "replace")
        after = self._source[end : end + 1].decode("utf-8", "replace")
        if not display and not is_formula(tex, before=before, after=after):
            self._sheet.write(self._source[start:end].decode("utf-8"))
            return
        text = latex_to_unicode(tex) or tex.strip()
        if display and not (self._sheet.is_cell or self._links):
            self._sheet.code_block(text)
            self._sheet.owe(1)
        else:
            self._sheet.write(text)

    def _end_link(self) -> None:
        (url, start), sheet = self._links.pop(), self._sheet
        label, address = sheet.text(start), web_url(url)
        if not has_visible_text(label):
            sheet.write(shorten_url(url))
            label = url
        if self._links:
            return
        if address is not None and sheet.is_cell:
            sheet.links.append((label, address))
        elif address is not None:
            sheet.add_span("text_link", start, address)
        elif url and label not in (url, url.removeprefix("mailto:")):
            sheet.write(" (")
            self._inline_code(shorten_url(url))
            sheet.write(")")

    def _definitions(self, start: int, end: int, used: set[str]) -> None:
        """Write link reference definitions that no link uses, since they were meant as text."""
        text = self._source[start:end].decode("utf-8").strip()
        if not text:
            return
        for line in text.split("\n"):
            match = _DEFINITION.match(line.strip())
            if match is None or match[1].casefold() not in used:
                self._paragraph(line.strip())
                self._close(1)
        self._close()


def _literals(source: bytes) -> list[tuple[int, int]]:
    """Return the byte ranges of URLs and dunder names, in which emphasis characters are literal."""
    pattern = re.compile(LITERAL_PATTERN.pattern.encode())
    return [match.span() for match in pattern.finditer(source)]


_LONGEST_SHOWN = 200

SourceRange = dict[str, int]
"""The range of an event's source: ``start`` and ``end``, in bytes of UTF-8."""

ParserEvent = tuple[Any, SourceRange]


def parse_events(source: str) -> list[ParserEvent]:
    """Return the parser's events, each with its range in the source."""
    import pyromark

    known = pyromark.Options
    options = (
        known.ENABLE_TABLES
        | known.ENABLE_STRIKETHROUGH
        | known.ENABLE_TASKLISTS
        | known.ENABLE_MATH
        | known.ENABLE_FOOTNOTES
    )
    found: Iterable[Any] = pyromark.events_with_range(source, options=options)
    return list(found)


def code_ranges(parser_events: Iterable[ParserEvent]) -> Iterable[tuple[int, int]]:
    """Yield the byte ranges of code, in order."""
    for event, where in parser_events:
        if not isinstance(event, dict):
            continue
        start = event.get("Start")
        if "Code" in event or (isinstance(start, dict) and "CodeBlock" in start):
            yield where["start"], where["end"]


def link_labels(parser_events: Iterable[ParserEvent]) -> set[str]:
    """Return the case-folded reference labels that links and images use."""
    starts = (event.get("Start") for event, _ in parser_events if isinstance(event, dict))
    tags = (tag.get("Link") or tag.get("Image") for tag in starts if isinstance(tag, dict))
    return {tag["id"].casefold() for tag in tags if tag}


def code_fence(kind: Any) -> tuple[str, str]:
    """Return a code block's language, and the code on the line of its opening fence."""
    return fence_info(kind["Fenced"]) if isinstance(kind, dict) else ("", "")


def shorten_url(url: str) -> str:
    """Return a URL for display, shortened if long; a data URL may hold a whole file."""
    return url if len(url) <= _LONGEST_SHOWN else url[:_LONGEST_SHOWN] + "…"


def tag_parts(tag: Any) -> tuple[str, Any]:
    """Return a tag's name and its value."""
    if isinstance(tag, dict):
        ((kind, value),) = tag.items()
        return kind, value
    return tag, None
