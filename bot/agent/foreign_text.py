"""Words of others, such as servers and skills, for people and models: one line, printable, bounded. Pure."""

from __future__ import annotations


def one_line(text: str, longest: int) -> str:
    """Return a text on one line, without invisible characters, cut to a length."""
    # A text is looked at no further than could be shown: it may be megabytes long.
    some = text[: longest * 4]
    plain = "".join(sign if sign.isprintable() else " " for sign in some)
    line = " ".join(plain.split())
    if len(line) <= longest and len(some) == len(text):
        return line
    return f"{line[: longest - 1]}…"


def printable(text: str) -> str:
    """Return a text without invisible characters other than line breaks and tabs."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else " " for sign in text)


def code(text: str, longest: int = 300) -> str:
    """Return a text as a Markdown code span on one line."""
    return f"`{one_line(text, longest).replace('`', chr(39)) or ' '}`"


def quoted_text(text: str, longest: int) -> str:
    """Return a text for a prompt: one line in quotation marks, without any of its own, or of a tag."""
    words = one_line(text, longest).replace('"', "'").replace("<", "‹")
    return f'"{words}"'
