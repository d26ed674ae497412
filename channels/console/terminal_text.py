"""Clean text between a terminal and the bus.

Rule 1: displayed text has no control characters but newline and tab, so that a model's text cannot
control the terminal.
Rule 2: typed text is Unicode without surrogates; bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def strip_controls(text: str) -> str:
    """Return the text without ESC and the other C0 and C1 controls; newline and tab stay."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _CONTROL.sub("", text))


def clean_input(text: str) -> str:
    """Return typed text, with bytes that are not UTF-8 replaced."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
