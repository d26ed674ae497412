"""Escape text so that it cannot open or close a block of the prompt, or fake a message. Pure."""

from __future__ import annotations

import re

from bot.core.patterns import LazyPattern

# Invisible characters may hide in a tag or before a header.
_SPACE = r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]"
_TAG = LazyPattern(
    rf"<(?={_SPACE}*+(?:/{_SPACE}*+)?(?:memory|records|quoted|handoff|contract|skills)"
    rf"(?:{_SPACE}|[>/]|$))",
    re.IGNORECASE,
)
# Matches only the bot's own headers, anywhere: log lines have seconds, or no comma.
_HEADER = LazyPattern(r"\[(?=\d{4}-\d\d-\d\d \d\d:\d\d(?:, |\] (?:USER|ASSISTANT)))")


def escape_tags(text: str) -> str:
    """Escape the prompt's own tags in a text."""
    return _TAG.sub("‹", text)


def escape_message(text: str) -> str:
    """Escape a person's text so that it contains neither a block nor another message's header."""
    return _HEADER.sub("(", escape_tags(text))


def quote_block(text: str) -> str:
    """Return text by others as a quoted block to place after a message."""
    lines = "\n".join(f"> {line}" for line in escape_message(text).splitlines())
    return f"\n<quoted>\n{lines}\n</quoted>"


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which not every provider accepts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
