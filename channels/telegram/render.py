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
    TableBuilder,
    TextBuilder,
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
    check_limit,
    clean_text,
    fence_info,
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


class _Reader:
    """Convert the parser events of one document to text and spans."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._literal = _literals(source)
        self._sheet = TextBuilder()
        self._lists: list[int | None] = []
        self._quotes: list[int] = []
        self._links: list[tuple[str, int]] = []
        self._code: list[str] | None = None
        self._language = ""
        self._table = TableBuilder()

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

    def _take(self, event: Any, where: SourceRange) -> None:
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
            self._sheet.require_line_breaks(1)

    def _start(self, tag: Any, where: SourceRange) -> None:
        kind, value = tag_parts(tag)
        if kind in _STYLES:
            self._style(kind, where, begins=True)
        elif kind in ("Link", "Image"):
            self._links.append((value["dest_url"], self._position()))
        elif kind in ("Paragraph", "HtmlBlock"):
            self._open()
        elif kind == "Heading":
            self._open()
            self._sheet.open_style("bold")
        elif kind in ("List", "Item", "BlockQuote", "FootnoteDefinition"):
            self._start_container(kind, value)
        elif kind == "CodeBlock":
            self._language, more = code_fence(value)
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
            self._sheet.start_line()
            self._quotes.append(self._sheet.position())
            self._sheet.at_block_start = True
        else:
            self._open()
            self._write(f"[{value}] ")
            self._sheet.at_block_start = True

    def _end(self, tag: Any, where: SourceRange) -> None:
        kind, _ = tag_parts(tag)
        if kind in _STYLES:
            self._style(kind, where, begins=False)
        elif kind in ("Link", "Image"):
            self._end_link()
        elif kind in ("Paragraph", "HtmlBlock", "FootnoteDefinition"):
            self._close()
        elif kind == "Heading":
            self._sheet.close_style("bold")
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

    def _style(self, kind: str, where: SourceRange, *, begins: bool) -> None:
        start, end = where["start"], where["end"]
        literal = bisect_right(self._literal, (start, len(self._source))) - 1
        if literal >= 0 and start < self._literal[literal][1]:
            doubled = self._source[start : start + 1] == self._source[start + 1 : start + 2]
            count = 2 if kind != "Emphasis" and doubled else 1
            place = start if begins else end - count
            self._write(self._source[place : place + count].decode("utf-8"))
        # A single tilde means "about".
        elif kind == "Strikethrough" and self._source[start : start + 2] != b"~~":
            self._write("~")
        elif self._table.in_cell:
            return
        elif begins:
            self._sheet.open_style(_STYLES[kind])
        else:
            self._sheet.close_style(_STYLES[kind])

    def _open(self) -> None:
        self._sheet.begin_block(self._indent(inner=True))

    def _close(self, gap: int = 2) -> None:
        self._sheet.require_line_breaks(1 if self._lists else gap)

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
            self._sheet.add_span("blockquote", start)
        self._sheet.at_block_start = False
        self._close()

    def _end_code(self) -> None:
        text = "".join(self._code or ()).removesuffix("\n")
        self._code = None
        self._sheet.block("pre", text, language=self._language or None)
        self._close()

    def _end_table(self) -> None:
        self._sheet.block("pre", self._table.text())
        for label, url in self._table.links:
            self._sheet.require_line_breaks(1)
            start = self._sheet.position()
            self._sheet.write(label)
            self._sheet.add_span("text_link", start, url=url)
        self._table = TableBuilder()
        self._close()

    def _write(self, text: str) -> None:
        if self._table.in_cell:
            self._table.write(text)
        elif text.endswith("\n"):
            self._sheet.write(text[:-1])
            self._sheet.require_line_breaks(1)
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
            start = self._sheet.position()
            self._write(match[1])
            self._sheet.add_span("spoiler", start)
        self._write(text[last:])

    def _code_span(self, text: str) -> None:
        if _COMMAND.fullmatch(text):
            # As plain text, Telegram makes it a command that is sent with a tap.
            self._write(text)
        else:
            self._inline_code(text)

    def _inline_code(self, text: str) -> None:
        if self._table.in_cell or any(web_url(url) for url, _ in self._links):
            self._write(text)
        else:
            self._sheet.code(text)

    def _formula(self, tex: str, where: SourceRange, *, display: bool) -> None:
        start, end = where["start"], where["end"]
        before = self._source[max(0, start - 1) : start].decode("utf-8", "replace")
        after = self._source[end : end + 1].decode("utf-8", "replace")
        if not display and not is_formula(tex, before=before, after=after):
            self._write(self._source[start:end].decode("utf-8"))
            return
        text = latex_to_unicode(tex) or tex.strip()
        if display and not (self._table.in_cell or self._links):
            self._sheet.block("pre", text)
            self._sheet.require_line_breaks(1)
        else:
            self._write(text)

    def _position(self) -> int:
        return self._table.length if self._table.in_cell else self._sheet.position()

    def _end_link(self) -> None:
        url, start = self._links.pop()
        in_cell = self._table.in_cell
        label = self._table.text_from(start) if in_cell else self._sheet.text_from(start)
        address = web_url(url)
        if not has_visible_text(label):
            self._write(shorten_url(url))
            label = url
        if self._links:
            return
        if address is None:
            if url and label not in (url, url.removeprefix("mailto:")):
                self._write(" (")
                self._inline_code(shorten_url(url))
                self._write(")")
        elif in_cell:
            self._table.links.append((label, address))
        else:
            self._sheet.add_span("text_link", start, url=address)

    def _definitions(self, start: int, end: int, used: set[str]) -> None:
        """Write link reference definitions that no link uses, since they were meant as text."""
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
