"""Notation of JSON values for a model, with few quotes and short numbers, and its parser. Pure.

Rule 1: every value is read back exactly as it was written.
Rule 2: written values contain no raw line break, so none can start a line of its own.
Rule 3: text is unquoted only if it is unambiguous; otherwise it is a JSON string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bot.core.patterns import LazyPattern

# Line separators, control characters, and lone surrogates, which have no UTF-8.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_HIDDEN = LazyPattern(f"[{_UNSAFE}]")
_ESCAPED = LazyPattern(rf'["\\{_UNSAFE}]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LONG = {short[1]: char for char, short in _SHORT.items()}
_QUOTED = LazyPattern(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPE = LazyPattern(r"\\(?:u([0-9a-f]{4})|(.))")
_NUMBER = LazyPattern(r"(-?[0-9]+)|-?(?:[0-9]*\.[0-9]+|[0-9]+(?:\.[0-9]+)?e[+-]?[0-9]+|inf|nan)")
_NAMED: dict[str, Any] = {"null": None, "true": True, "false": False}


def quote_text(text: str) -> str:
    """Return text as a JSON string without raw line breaks and other control characters."""
    escaped = _ESCAPED.sub(lambda hit: _SHORT.get(hit[0]) or f"\\u{ord(hit[0]):04x}", text)
    return f'"{escaped}"'


def encode_word(text: str, stops: str) -> str:
    """Write text, unquoted if it contains none of ``stops``."""
    bare = (
        text
        and text == text.strip()
        and not text.startswith('"')
        and not _HIDDEN.search(text)
        and not any(stop in text for stop in stops)
    )
    return text if bare else quote_text(text)


def encode_value(anything: Any, stops: str) -> str:
    """Write any JSON value; unquoted text in it contains none of ``stops``."""
    if isinstance(anything, str):
        literal = anything in _NAMED or _NUMBER.fullmatch(anything) or anything[:1] in ("[", "{")
        return quote_text(anything) if literal else encode_word(anything, stops)
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
    """Write JSON values separated by semicolons."""
    return "; ".join(encode_value(value, stops) for value in values)


@dataclass(slots=True)
class LineParser:
    """Parse a line from left to right.

    Attributes:
        line: The line.
        at: Position of the next read.
    """

    line: str
    at: int = 0

    def skip_sign(self, sign: str) -> bool:
        """Skip a sign; return False if it is not next."""
        if not self.line.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def require_sign(self, sign: str) -> None:
        """Skip a sign.

        Raises:
            ValueError: The sign is not next.
        """
        if not self.skip_sign(sign):
            raise ValueError(f"not in this notation, {sign!r} is missing at {self.at}: {self.line}")

    def read_text(self, stops: str) -> tuple[str, bool]:
        """Read text up to one of ``stops``, and whether it was quoted."""
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

    def read_value(self, stops: str) -> Any:
        """Read what ``encode_value`` wrote."""
        if self.skip_sign("["):
            return self._items()
        if self.skip_sign("{"):
            return self._pairs()
        text, was_quoted = self.read_text(stops)
        if was_quoted:
            return text
        number = _NUMBER.fullmatch(text)
        if number is None:
            return _NAMED.get(text, text)
        return int(text) if number[1] else float(text)

    @property
    def at_end(self) -> bool:
        """Whether the end of the line is reached."""
        return self.at >= len(self.line)

    def _items(self) -> list[Any]:
        found: list[Any] = []
        while not self.skip_sign("]"):
            if found:
                self.require_sign("; ")
            found.append(self.read_value(";]"))
        return found

    def _pairs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.skip_sign("}"):
            if found:
                self.require_sign("; ")
            key, _ = self.read_text(":}")
            self.require_sign(": ")
            found[key] = self.read_value(";}")
        return found


@lru_cache
def _until(stops: str) -> re.Pattern[str]:
    return re.compile(f"[^{re.escape(stops)}]*" if stops else ".*", re.DOTALL)
