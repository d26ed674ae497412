"""What Discord's Markdown lacks, written with what it has.

Rule 1: prose stays the source's; only what Discord would show wrongly is rewritten.
Rule 2: code leaves its list or quote and becomes a block of its own, so that a cut finds it.
Rule 3: prose holds no run of three backticks, so that every fence is ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from channels.text import LITERAL, SPOILER, Alignment, aligned, fence_info, visible, web_address

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
_BARS = re.compile(rf"(?P<hidden>{SPOILER.pattern})|(?<!\\)\|\|")
_CELL = re.compile(r"(?<!\\)\|")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Prose:
    """Text in Discord's Markdown, without fences."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A code block; its text holds no fence."""

    text: str
    language: str


Block = Prose | Code


def blocks(source: str) -> list[Block]:
    """Return clean Markdown as prose and code, in order, none of them blank."""
    lines = source.split("\n")
    found: list[Block] = []
    prose: list[str] = []
    last = 0
    for token, rows in _structure(source):
        start, end = token.map or [0, 0]
        if start < last:
            continue
        prose += _prose(lines[last:start])
        last = end
        if token.type in ("fence", "code_block", "table_open"):
            _flush(prose, found)
            _add(found, Code(*_code(token, rows, lines)))
        elif token.type == "hr":
            prose.append(_RULE)
        else:
            prose.append(_heading(token, lines[start:end]))
    prose += _prose(lines[last:])
    _flush(prose, found)
    return found


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table"])
    # The structure is enough, and most of the time goes into what is inside the lines.
    parser.core.ruler.disable(["inline"])
    # A definition of a link's target is text at Discord.
    parser.block.ruler.disable(["reference"])
    return parser


def _structure(source: str) -> Iterable[tuple[Token, list[Token]]]:
    """Return the tokens of blocks that are rewritten, tables with the tokens inside them."""
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
            # What the parser drops for want of a column is text that a model wrote.
            rows[-1] += _surplus(lines[line], len(rows[0])) if len(rows) > 1 else []
    return aligned(rows, alignments)


def _surplus(line: str, columns: int) -> list[str]:
    cells = _CELL.split(line.strip(" >").removeprefix("|").removesuffix("|"))
    return [_cell(cell.strip()) for cell in cells[columns:]]


def _cell(text: str) -> str:
    text = _LINK.sub(
        lambda match: f"{match[2]} ({match[3]})" if visible(match[2]) else match[3], text
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
    # Discord has one level of quotes, and takes ">>>" for a quote of all that follows.
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
    text = LITERAL.sub(_literal, text)
    text = _BARS.sub(lambda match: match["hidden"] or r"\|\|", text)
    return _LINK.sub(_link, _PICTURE_LINK.sub(r"[\1]", text))


def _literal(match: re.Match[str]) -> str:
    # Discord leaves addresses alone by itself.
    return match[0] if match["address"] else match[0].replace("_", r"\_")


def _link(match: re.Match[str]) -> str:
    label, url = match[2], match[3]
    if web_address(url):
        return f"[{label}]({url})" if visible(label) else url
    if not url or label in (url, url.removeprefix("mailto:")):
        return label
    return f"{label} (`{url.replace('`', '%60')}`)".lstrip()


def _flush(prose: list[str], found: list[Block]) -> None:
    text = _BLANK_LINES.sub("\n\n", "\n".join(prose)).strip("\n")
    prose.clear()
    if text.strip():
        found.append(Prose(text))


def _add(found: list[Block], code: Code) -> None:
    if code.text.strip():
        # Three backticks end a block wherever they stand.
        found.append(Code(code.text.replace("```", "`\u200b`\u200b`"), code.language))
