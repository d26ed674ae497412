"""Render an answer's Markdown as Discord messages.

Appending text to an answer changes only its last piece and adds pieces after it, unless the text is
markup that changes the meaning of what precedes it. The number of pieces of text without markup
never decreases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from channels.text import (
    LITERAL_PATTERN,
    SPOILER_PATTERN,
    Alignment,
    check_limit,
    clean_text,
    fence_info,
    format_table,
    has_visible_text,
    piece_end,
    skip_space,
    utf16_length,
    web_url,
)

LIMIT = 2000
"""The most characters of a message
(https://discord.com/developers/docs/resources/message#create-message)."""

_LONGEST_LANGUAGE = 12


def render(markdown: str, limit: int = LIMIT) -> list[str]:
    """Return the answer in Discord's Markdown, as pieces to be sent in order.

    Each piece has whole code blocks: a block that is split is closed, and reopened in the next
    piece with the same language.

    Returns:
        The pieces; empty if nothing is visible.

    Raises:
        ValueError: The limit is below ``MIN_MESSAGE_LIMIT``.
    """
    check_limit(limit)
    pages = _Pages(limit)
    for block in parse_blocks(clean_text(markdown)):
        pages.add(block)
    return pages.finish()


class _Pages:
    """Fill pages one after the other, without changing earlier ones."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._done: list[str] = []
        self._page = ""

    def add(self, block: Block) -> None:
        if isinstance(block, CodeBlock):
            self._code(block)
        else:
            self._prose(block.text)

    def finish(self) -> list[str]:
        self._turn()
        return self._done

    def _prose(self, text: str) -> None:
        start = 0
        while start < len(text):
            room = self._room("\n")
            end = piece_end(text, start, room) if room >= 2 else start
            shown = text[start:end].rstrip()
            # Prefer a new page to a word that is split to fill this one.
            parted = end < len(text) and not text[end].isspace()
            if self._page and (not shown or parted):
                self._turn()
                continue
            self._put(shown, "\n")
            if end == len(text):
                return
            self._turn()
            start = skip_space(text, end)

    def _code(self, code: CodeBlock) -> None:
        language = code.language if len(code.language) <= _LONGEST_LANGUAGE else ""
        opening, closing = f"```{language}\n", "\n```"
        fences = utf16_length(opening) + len(closing)
        text, start = code.text, 0
        while start < len(text):
            room = self._room("\n") - fences
            fits = utf16_length(text[start : start + room + 1]) <= room if room > 0 else False
            if self._page and not fits and self._room("") < self._limit // 2:
                self._turn()
                continue
            end = piece_end(text, start, room)
            if text[start:end].strip():
                self._put(f"{opening}{text[start:end].rstrip()}{closing}", "\n")
            start = end + (text[end : end + 1] == "\n")
            if start < len(text):
                self._turn()

    def _room(self, joint: str) -> int:
        if not self._page:
            return self._limit
        return self._limit - utf16_length(self._page) - len(joint)

    def _put(self, text: str, joint: str) -> None:
        self._page = f"{self._page}{joint}{text}" if self._page else text

    def _turn(self) -> None:
        if has_visible_text(self._page):
            self._done.append(self._page)
        self._page = ""


_RULE = "⎯" * 12
_LINK = re.compile(
    r"(!?)\[((?:[^\[\]\\\n]|\\.){0,500})\]\(\s*+<?([^\s()<>]*+(?:\([^\s()]*+\)[^\s()<>]*+)*+)>?"
    r"(?:\s++(?:\"[^\"\n]*+\"|'[^'\n]*+'))?\s*+\)"
)
_PICTURE_LINK = re.compile(r"\[!\[([^\[\]\n]{0,500})\]\([^\s()]{0,2000}\)\](?=\()")
_QUOTES = re.compile(r"^ {0,3}>[> ]*>")
_TASK = re.compile(r"^((?:[ \t>]*+(?:[-*+]|\d{1,9}[.)])[ \t]++)++)\[([ xX])\](?=\s)")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(?:[^`\n]|(?<!`)`(?!\1)|``(?!\1))*?(?<!`)\1(?!`)")
_BACKTICKS = re.compile(r"`{3,}")
_BARS = re.compile(rf"(?P<hidden>{SPOILER_PATTERN.pattern})|(?<!\\)\|\|")
_CELL = re.compile(r"(?<!\\)\|")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class ProseBlock:
    """Text in Discord's Markdown, without fences."""

    text: str


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A code block; its text contains no fence."""

    text: str
    language: str


Block = ProseBlock | CodeBlock


def parse_blocks(source: str) -> list[Block]:
    """Return Markdown as prose and code blocks, in order, none of them blank."""
    lines = source.split("\n")
    blocks: list[Block] = []
    prose: list[str] = []
    last = 0
    for token, rows in _structure(source):
        start, end = token.map or [0, 0]
        if start < last:
            continue
        prose += _prose(lines[last:start])
        last = end
        if token.type in ("fence", "code_block", "table_open"):
            _flush(prose, blocks)
            _add(blocks, CodeBlock(*_code(token, rows, lines)))
        elif token.type == "hr":
            prose.append(_RULE)
        else:
            prose.append(_heading(token, lines[start:end]))
    prose += _prose(lines[last:])
    _flush(prose, blocks)
    return blocks


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table"])
    # The block structure suffices, and inline parsing takes most of the time.
    parser.core.ruler.disable(["inline"])
    # Discord shows a link reference definition as text.
    parser.block.ruler.disable(["reference"])
    return parser


def _structure(source: str) -> Iterable[tuple[Token, list[Token]]]:
    """Yield the tokens of blocks to rewrite, with the inner tokens of tables."""
    tokens = _parser().parse(source)
    table: Token | None = None
    inside: list[Token] = []
    for token, following in pairwise([*tokens, Token("end", "", 0)]):
        if token.type == "table_open":
            table, inside = token, []
        elif token.type == "table_close" and table is not None:
            yield table, inside
            table = None
        elif table is not None:
            inside.append(token)
        elif token.type in ("fence", "code_block") or (token.type == "hr" and not token.level):
            yield token, []
        elif token.type == "heading_open" and token.level == 0:
            token.content = following.content
            yield token, []


def _code(token: Token, inside: list[Token], lines: list[str]) -> tuple[str, str]:
    if token.type == "table_open":
        return _table(inside, lines), ""
    language, more = fence_info(token.info)
    return "\n".join(part for part in (more, token.content.removesuffix("\n")) if part), language


def _table(inside: list[Token], lines: list[str]) -> str:
    rows: list[list[str]] = []
    alignments: list[Alignment] = []
    line = 0
    for token in inside:
        if token.type == "tr_open":
            rows.append([])
            line = token.map[0] if token.map else 0
        elif token.type == "th_open":
            style = str(token.attrs.get("style", ""))
            alignments.append(
                "right" if "right" in style else "center" if "center" in style else "left"
            )
        elif token.type == "inline":
            rows[-1].append(_cell(token.content))
        elif token.type == "tr_close":
            # The parser drops cells beyond the table's columns, which are text of the model.
            rows[-1] += _surplus(lines[line], len(rows[0])) if len(rows) > 1 else []
    return format_table(rows, alignments)


def _surplus(line: str, columns: int) -> list[str]:
    cells = _CELL.split(line.strip(" >").removeprefix("|").removesuffix("|"))
    return [_cell(cell.strip()) for cell in cells[columns:]]


def _cell(text: str) -> str:
    text = _LINK.sub(
        lambda match: f"{match[2]} ({match[3]})" if has_visible_text(match[2]) else match[3], text
    )
    text = re.sub(r"<br\s*/?>", " ", text, flags=re.IGNORECASE)
    return re.sub(r"(\*\*|__|~~|`)(.+?)\1", r"\2", text)


def _heading(token: Token, lines: list[str]) -> str:
    level = int(token.tag[1:])
    text = _inline(token.content.replace("\n", " ").strip())
    if level <= 3:
        return f"{'#' * level} {text}" if text else "\n".join(lines)
    bare = text.replace("**", "")
    return f"**{bare}**" if bare.strip() else bare


def _prose(lines: list[str]) -> list[str]:
    # Discord has one level of quotes, and applies ">>>" to all text that follows.
    return [_inline(_TASK.sub(_box, _QUOTES.sub(">", line))) for line in lines]


def _box(match: re.Match[str]) -> str:
    return match[1] + ("☐" if match[2] == " " else "☑")


def _inline(line: str) -> str:
    if "`" in line:
        line = _BACKTICKS.sub("``", line)
    if "](" not in line and "||" not in line and "__" not in line:
        return line
    parts: list[str] = []
    last = 0
    for span in _CODE_SPAN.finditer(line):
        parts += [_outside_code(line[last : span.start()]), span[0]]
        last = span.end()
    return "".join([*parts, _outside_code(line[last:])])


def _outside_code(text: str) -> str:
    text = LITERAL_PATTERN.sub(_literal, text)
    text = _BARS.sub(lambda match: match["hidden"] or r"\|\|", text)
    return _LINK.sub(_link, _PICTURE_LINK.sub(r"[\1]", text))


def _literal(match: re.Match[str]) -> str:
    # Discord does not apply emphasis inside URLs.
    return match[0] if match["address"] else match[0].replace("_", r"\_")


def _link(match: re.Match[str]) -> str:
    label, url = match[2], match[3]
    if web_url(url):
        return f"[{label}]({url})" if has_visible_text(label) else url
    if not url or label in (url, url.removeprefix("mailto:")):
        return label
    return f"{label} (`{url.replace('`', '%60')}`)".lstrip()


def _flush(prose: list[str], blocks: list[Block]) -> None:
    text = _BLANK_LINES.sub("\n\n", "\n".join(prose)).strip("\n")
    prose.clear()
    if text.strip():
        blocks.append(ProseBlock(text))


def _add(blocks: list[Block], code: CodeBlock) -> None:
    if code.text.strip():
        # Three backticks would end the block at any position.
        blocks.append(CodeBlock(code.text.replace("```", "`\u200b`\u200b`"), code.language))
