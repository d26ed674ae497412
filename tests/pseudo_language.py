"""A language made for tests: each message of the program in ⟦ ⟧, so that unmarked words stand out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo

import bot
from bot.core import i18n

_KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
_INNERMOST = re.compile("⟦[^⟦⟧]*⟧")


@contextmanager
def pseudo_language(folder: Path) -> Iterator[None]:
    """Give German the messages of this language, within the block.

    Args:
        folder: An empty folder for the catalogue.
    """
    path = folder / "de" / "LC_MESSAGES"
    path.mkdir(parents=True)
    with (path / "tapebot.mo").open("wb") as file:
        write_mo(file, _catalogue())
    before = i18n._FOLDER
    i18n._FOLDER = folder
    i18n._catalogue.cache_clear()
    try:
        yield
    finally:
        i18n._FOLDER = before
        i18n._catalogue.cache_clear()


def unmarked(text: str) -> str:
    """Return what of a text is outside of all messages."""
    while (rest := _INNERMOST.sub("", text)) != text:
        text = rest
    return text


@cache
def _catalogue() -> Catalog:
    catalogue = Catalog(locale="de")
    source = Path(bot.__file__).parent
    for _file, _line, message, _comments, context in extract_from_dir(
        source, [("**.py", "python")], keywords=_KEYWORDS
    ):
        known = message if isinstance(message, tuple) else (message,)
        wrapped = tuple(f"⟦{form}⟧" for form in known)
        catalogue.add(message, wrapped if len(known) > 1 else wrapped[0], context=context)
    return catalogue
