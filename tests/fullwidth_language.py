"""A language that shows which words are not translated: each message in fullwidth letters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from bracketed_language import messages

from bot.core import i18n

LANGUAGE = "ja"
"""The language in whose place it stands: CLDR writes no dates or lists of it in Latin letters."""

_KEPT = re.compile(r"(`[^`]*`|\{[^{}]*\})")
"""Code and names of values."""

_FULLWIDTH = {letter: letter + 0xFEE0 for letter in (*range(0x41, 0x5B), *range(0x61, 0x7B))}
_WORD = re.compile(r"(?<![\w/#.:<>@-])[A-Za-z][a-z]+(?![\w/@])(?![.:][\w/])")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


def pseudo(message: str) -> str:
    """Return a message in fullwidth letters; code and names of values stay."""
    parts = _KEPT.split(message)
    return "".join(part if at % 2 else part.translate(_FULLWIDTH) for at, part in enumerate(parts))


def write_catalogue(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the compiled catalogue of all messages below a folder, and have the program read it."""
    catalogue = Catalog(locale=LANGUAGE)
    for message, context in messages():
        made = tuple(map(pseudo, message)) if isinstance(message, tuple) else pseudo(message)
        # A language without plural has one form.
        catalogue.add(message, made[1:] if isinstance(made, tuple) else made, context=context)
    target = folder / LANGUAGE / "LC_MESSAGES" / "tapebot.mo"
    target.parent.mkdir(parents=True)
    with target.open("wb") as file:
        write_mo(file, catalogue)
    monkeypatch.setattr(i18n, "_FOLDER", folder)
    monkeypatch.setattr(i18n, "_catalogue", cache(i18n._catalogue.__wrapped__))


def is_fullwidth(letter: str) -> bool:
    return ord(letter) in _FULLWIDTH.values()


def untranslated_words(text: str, said: Sequence[str] = ()) -> list[str]:
    """Return the words of a reply that are English: neither code nor what people said.

    Args:
        text: The reply, as Markdown.
        said: Words that people said, and names.
    """
    plain = _CODE.sub(" ", text)
    for one in sorted(said, key=len, reverse=True):
        plain = plain.replace(one, " ")
    return _WORD.findall(plain)
