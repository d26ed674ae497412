"""Render answers for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Markdown
from wcwidth import width

from channels.console.terminal_text import strip_controls

_PADDING = re.compile(r"(?<! ) ++$", re.MULTILINE)


class AnswerRenderer:
    """Render Markdown for one terminal, with its width and colours."""

    def __init__(self, terminal: TextIO) -> None:
        self._console = Console(file=terminal, highlight=False)
        # HTML tags in an answer are displayed as text; the default drops them.
        self._parser = MarkdownIt("commonmark", {"html": False})
        self._parser.enable(["strikethrough", "table"])

    def render(self, text: str) -> str:
        """Return Markdown as text with escape sequences and a final newline.

        Line breaks are kept, and a link's URL is displayed beside its text: no target is hidden.
        """
        safe = strip_controls(text)
        markdown = Markdown(safe, hyperlinks=False)
        markdown.parsed = self._parser.parse(safe)
        _keep_line_breaks(markdown.parsed)
        with self._console.capture() as capture:
            self._console.print(markdown)
        # Padded lines would wrap when the window gets narrower.
        return _PADDING.sub("", capture.get()).rstrip("\n") + "\n"


def last_rows(text: str, *, columns: int, rows: int) -> list[str]:
    """Return the last rows of a text when wrapped at that many columns."""
    # Only the end is read, so that the cost of a redraw does not grow with the answer.
    newest = strip_controls(text[-columns * rows :]).expandtabs(4)
    lines = [part for line in newest.rstrip("\n").split("\n") for part in _wrap(line, columns)]
    return lines[-rows:]


def _wrap(line: str, columns: int) -> Iterable[str]:
    start, used = 0, 0
    for index, char in enumerate(line):
        cells = width(char)
        if used + cells > columns:
            yield line[start:index]
            start, used = index, 0
        used += cells
    yield line[start:]


def _keep_line_breaks(tokens: Iterable[Token]) -> None:
    for token in tokens:
        if token.type == "softbreak":
            token.type, token.tag = "hardbreak", "br"
        if token.children:
            _keep_line_breaks(token.children)
