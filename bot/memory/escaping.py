"""Keeps text within its block: nobody's words can open or close a block of the prompt. Pure."""

from __future__ import annotations

import re

_TAG = re.compile(
    r"<(?=\s*/?\s*(?:memory|records|quoted|handoff|contract|skills)(?:[\s>/]|$))", re.IGNORECASE
)
# Our own headers only: a pasted log has seconds, or no comma.
_HEADER = re.compile(
    r"^(\s*)\[(?=\d{4}-\d\d-\d\d \d\d:\d\d(?:, |\] (?:USER|ASSISTANT)))", re.MULTILINE
)


def escape_tags(text: str) -> str:
    """Return text in which the prompt's own tags are no tags."""
    return _TAG.sub("‹", text)


def escape_speech(text: str) -> str:
    """Return a person's text that can neither hold a block nor begin a message of another's."""
    return _HEADER.sub(r"\1(", escape_tags(text))


def quote_block(text: str) -> str:
    """Return text that is not the sender's own as a block behind a message."""
    lines = "\n".join(f"> {line}" for line in escape_speech(text).splitlines())
    return f"\n<quoted>\n{lines}\n</quoted>"


def clean(text: str) -> str:
    """Return text that every provider takes: lone surrogates replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
