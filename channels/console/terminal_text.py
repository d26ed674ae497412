"""Text on its way between a terminal and the bus.

Rule 1: what is shown holds no control character but newline and tab, so no text of a model can
steer the terminal.
Rule 2: what was typed is Unicode without surrogates; bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def strip_controls(text: str) -> str:
    """Return the text without ESC and the other C0 and C1 controls; newline and tab stay."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _CONTROL.sub("", text))


def clean_input(text: str) -> str:
    """Return what a terminal delivered, with bytes that are not UTF-8 replaced."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
