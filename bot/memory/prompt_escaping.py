"""Keeps text within its block: nobody's words can open or close a block of the prompt. Pure."""

from __future__ import annotations

import re

# Signs that nobody sees may stand within a tag or before a header.
_SPACE = r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]"
_TAG = re.compile(
    rf"<(?={_SPACE}*+(?:/{_SPACE}*+)?(?:memory|records|quoted|handoff|contract|skills)"
    rf"(?:{_SPACE}|[>/]|$))",
    re.IGNORECASE,
)
# Our own headers only, wherever they stand: a pasted log has seconds, or no comma.
_HEADER = re.compile(r"\[(?=\d{4}-\d\d-\d\d \d\d:\d\d(?:, |\] (?:USER|ASSISTANT)))")


def escape_tags(text: str) -> str:
    """Return text in which the prompt's own tags are no tags."""
    return _TAG.sub("‹", text)


def escape_message(text: str) -> str:
    """Return a person's text that can neither hold a block nor begin a message of another's."""
    return _HEADER.sub("(", escape_tags(text))


def quote_block(text: str) -> str:
    """Return text that is not the sender's own as a block behind a message."""
    lines = "\n".join(f"> {line}" for line in escape_message(text).splitlines())
    return f"\n<quoted>\n{lines}\n</quoted>"


def replace_lone_surrogates(text: str) -> str:
    """Return text that every provider takes: lone surrogates replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
