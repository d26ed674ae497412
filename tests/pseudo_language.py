"""A language that shows which words are not translated: each message in fullwidth letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import write_mo

LANGUAGE = "ja"
"""The language in whose place it stands: CLDR writes no dates or lists of it in Latin letters."""

_KEPT = re.compile(r"(`[^`]*`|\{[^{}]*\})")
"""Code and names of values."""

_FULLWIDTH = {letter: letter + 0xFEE0 for letter in (*range(0x41, 0x5B), *range(0x61, 0x7B))}
_WORD = re.compile(r"(?<![\w/#.:<>@-])[A-Za-z][a-z]+(?![\w/@])(?![.:][\w/])")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
_ROOT = Path(__file__).parents[1]


def pseudo(message: str) -> str:
    """Return a message in fullwidth letters; code and names of values stay."""
    parts = _KEPT.split(message)
    return "".join(part if at % 2 else part.translate(_FULLWIDTH) for at, part in enumerate(parts))


def write_catalogue(folder: Path) -> None:
    """Write the compiled catalogue of all messages of the program below a folder."""
    catalogue = Catalog(locale=LANGUAGE)
    for message, context in _messages():
        made = tuple(map(pseudo, message)) if isinstance(message, tuple) else pseudo(message)
        # A language without plural has one form.
        catalogue.add(message, made[1:] if isinstance(made, tuple) else made, context=context)
    target = folder / LANGUAGE / "LC_MESSAGES" / "tapebot.mo"
    target.parent.mkdir(parents=True)
    with target.open("wb") as file:
        write_mo(file, catalogue)


@cache
def _messages() -> tuple[tuple[str | tuple[str, ...], str | None], ...]:
    keywords = {**DEFAULT_KEYWORDS, "N_": None}
    found = extract_from_dir(_ROOT / "bot", [("**.py", "python")], keywords=keywords)
    return tuple((message, context) for _, _, message, _, context in found)


def untranslated_words(text: str, said: Iterator[str] | tuple[str, ...] = ()) -> list[str]:
    """Return the words of a reply that are English: neither code nor what people said.

    Args:
        text: The reply, as Markdown.
        said: Words that people said, and names.
    """
    plain = _CODE.sub(" ", text)
    for one in sorted(said, key=len, reverse=True):
        plain = plain.replace(one, " ")
    return _WORD.findall(plain)
