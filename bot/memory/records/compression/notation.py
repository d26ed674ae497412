"""How values are written for a model: few quotes, short numbers; and read back. Pure.

Rule 1: what is written is read back exactly, whatever it holds.
Rule 2: no value holds a raw line break, so none can begin a line of its own.
Rule 3: text stands bare only where it can be read as nothing else; otherwise as a JSON string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

CELL_SEPARATOR = " | "
"""Between the cells of a line."""

KEY_SEPARATOR = ":|"
"""What a line's key holds only in quotes."""

# What ends a line for some reader, what nobody sees, and halves of characters, which have no UTF-8.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_HIDDEN = re.compile(f"[{_UNSAFE}]")
_ESCAPED = re.compile(rf'["\\{_UNSAFE}]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LONG = {short[1]: char for char, short in _SHORT.items()}
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
_NUMBER = re.compile(r"(-?[0-9]+)|-?(?:[0-9]*\.[0-9]+|[0-9]+(?:\.[0-9]+)?e[+-]?[0-9]+|inf|nan)")
_OF_WORDS = frozenset({"ev", "tags", "supersedes", "view"})
_NAMED: dict[str, Any] = {"null": None, "true": True, "false": False}


def quote_text(text: str) -> str:
    """Return text as a JSON string without raw line breaks, control characters or lone surrogates."""
    escaped = _ESCAPED.sub(lambda hit: _SHORT.get(hit[0]) or f"\\u{ord(hit[0]):04x}", text)
    return f'"{escaped}"'


def encode_word(text: str, stops: str) -> str:
    """Return text that is known to be text: bare where no character of ``stops`` is in it."""
    bare = (
        text
        and text == text.strip()
        and not text.startswith('"')
        and not _HIDDEN.search(text)
        and not any(stop in text for stop in stops)
    )
    return text if bare else quote_text(text)


def encode_value(anything: Any, stops: str) -> str:
    """Return any JSON value; bare text in it holds no character of ``stops``."""
    if isinstance(anything, str):
        literal = anything in _NAMED or _NUMBER.fullmatch(anything)
        return (
            quote_text(anything)
            if literal or anything[:1] in ("[", "{")
            else encode_word(anything, stops)
        )
    if isinstance(anything, dict):
        pairs = (
            f"{encode_word(key, ':}')}: {encode_value(held, ';}')}"
            for key, held in anything.items()
        )
        return f"{{{'; '.join(pairs)}}}"
    if isinstance(anything, (list, tuple)):
        return f"[{encode_items(anything, ';]')}]"
    if anything is None or isinstance(anything, bool):
        return {None: "null", True: "true", False: "false"}[anything]
    return re.sub(r"^(-?)0\.", r"\1.", repr(anything))


def encode_items(values: Iterable[Any], stops: str = ";") -> str:
    """Return JSON values with semicolons between them."""
    return "; ".join(encode_value(one, stops) for one in values)


def encode_cell(name: str, anything: Any) -> str:
    """Return a cell that holds any JSON value."""
    return f"{name} {encode_value(anything, '|')}"


def encode_words(
    name: str, texts: Iterable[str], write: Callable[[str], str] | None = None
) -> list[str]:
    """Return a cell of texts with spaces between them; none where there are none."""
    written = [write(one) if write else encode_word(one, " |") for one in texts]
    return [f"{name} {' '.join(written)}"] if written else []


def split_content(content: dict[str, Any], key: str, stops: str = "|") -> tuple[str, list[str]]:
    """Return content's text as a line's first cell, and the cells of what else it holds.

    Content without such a text is the first cell as a whole.
    """
    if not isinstance(content.get(key), str):
        return encode_value(content, stops), []
    rest = {name: held for name, held in content.items() if name != key}
    return encode_value(content[key], stops), [encode_value(rest, "|")] if rest else []


def join_content(main: Any, key: str, rest: dict[str, Any] | None) -> dict[str, Any]:
    """Return the content that ``split_content`` took apart."""
    return main if isinstance(main, dict) else {key: main, **(rest or {})}


@dataclass(slots=True)
class LineParser:
    """Reads a line from its beginning.

    Attributes:
        line: What was written.
        at: Where the next read begins.
    """

    line: str
    at: int = 0

    def skip_sign(self, sign: str) -> bool:
        """Pass over a sign; False where something else stands there."""
        if not self.line.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def require_sign(self, sign: str) -> None:
        """Pass over a sign.

        Raises:
            ValueError: Something else stands there.
        """
        if not self.skip_sign(sign):
            raise ValueError(f"not in this notation, {sign!r} is missing at {self.at}: {self.line}")

    def read_text(self, stops: str) -> tuple[str, bool]:
        """Return the text up to one of ``stops``, and whether it was quoted."""
        if not self.line.startswith('"', self.at):
            hit = _until(stops).match(self.line, self.at)
            self.at = hit.end() if hit else self.at
            return (hit[0].rstrip(" ") if hit else ""), False
        hit = _QUOTED.match(self.line, self.at)
        if hit is None:
            raise ValueError(f"not in this notation, a quote does not end: {self.line}")
        self.at = hit.end()
        return _ESCAPE.sub(
            lambda one: chr(int(one[1], 16)) if one[1] else _LONG[one[2]], hit[1]
        ), True

    def read_word(self, stops: str) -> str:
        """Return what ``word`` wrote."""
        return self.read_text(stops)[0]

    def read_value(self, stops: str) -> Any:
        """Return what ``value`` wrote."""
        if self.skip_sign("["):
            return self.read_items(";]", "]")
        if self.skip_sign("{"):
            return self._pairs()
        text, was_quoted = self.read_text(stops)
        if was_quoted:
            return text
        number = _NUMBER.fullmatch(text)
        if number is None:
            return _NAMED.get(text, text)
        return int(text) if number[1] else float(text)

    def read_items(self, stops: str = ";", end: str = "") -> list[Any]:
        """Return what ``items`` wrote."""
        found: list[Any] = []
        while not (self.skip_sign(end) if end else self.at_end):
            if found:
                self.require_sign("; ")
            found.append(self.read_value(stops))
        return found

    def read_words(self) -> list[tuple[str, bool]]:
        """Return what ``words`` wrote, each with whether it was quoted."""
        found = []
        while not self.at_end and not self.line.startswith("|", self.at):
            found.append(self.read_text(" |"))
            self.skip_sign(" ")
        return found

    def next_cell(self) -> bool:
        """Go on to the next cell; False at the line's end."""
        self.skip_sign(" ")
        if not self.at_end:
            self.require_sign("| ")
            return True
        return False

    def read_cells(self) -> dict[str, Any]:
        """Return all cells that are left, by name; one that is bare JSON has none."""
        found: dict[str, Any] = {}
        while self.next_cell():
            name = "" if self.line.startswith("{", self.at) else self.read_word(" |")
            self.skip_sign(" ")
            found[name] = self.read_words() if name in _OF_WORDS else self.read_value("|")
        return found

    @property
    def at_end(self) -> bool:
        """Whether the line is at its end."""
        return self.at >= len(self.line)

    def _pairs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.skip_sign("}"):
            if found:
                self.require_sign("; ")
            key = self.read_word(":}")
            self.require_sign(": ")
            found[key] = self.read_value(";}")
        return found


@lru_cache
def _until(stops: str) -> re.Pattern[str]:
    return re.compile(f"[^{re.escape(stops)}]*" if stops else ".*", re.DOTALL)
