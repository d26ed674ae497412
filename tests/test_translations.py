"""Every message of every language keeps the values of its source, and the catalogues are up to date."""

import re
import string
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from bot.core.i18n import LANGUAGES, _, ngettext, use_language

ROOT = Path(__file__).parent.parent
LOCALE = ROOT / "bot" / "core" / "locale"
TRANSLATED = [code for code in LANGUAGES if code != "en"]

HOSTILE = (
    "{name}",
    "{0!r:>99999999}",
    "%s %(name)s",
    "**bold** _x_ [link](http://a.example) `code`",
    "<script>alert(1)</script>&amp;",
    "\u202eright to left\u2066\u200f",
    "x" * 10_000,
    "",
)
NUMBERS = (0, 1, 2, 3, 5, 11, 21, 100, 1_000_000)

KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
KEYWORDS |= {"html_": None, "nhtml_": (1, 2)}


@cache
def catalogue(language: str) -> Catalog:
    with (LOCALE / language / "LC_MESSAGES" / "tapebot.po").open("rb") as file:
        return read_po(file, locale=language)


def messages(language: str) -> list[Message]:
    """Return the messages of a catalogue that are translated."""
    return [one for one in catalogue(language) if one.id and any(translations(one))]


def sources(message: Message) -> tuple[str, ...]:
    return message.id if isinstance(message.id, tuple) else (message.id,)


def translations(message: Message) -> tuple[str, ...]:
    told = message.string if isinstance(message.string, tuple) else (message.string,)
    return tuple(one or "" for one in told)


def values_of(text: str) -> set[str]:
    """Return the names in braces, with how they are formatted."""
    parsed = string.Formatter().parse(text)
    return {f"{name}!{how}:{spec}" for _text, name, spec, how in parsed if name is not None}


def marks_of(text: str) -> dict[str, int]:
    """Return how often what must stay as it is stands in a text: Markdown, commands, settings."""
    found = {mark: text.count(mark) for mark in ("`", "**", "](", "\n\n")}
    words = re.findall(
        r"`[^`]*`|(?<!\w)/[a-z]+\b|\bTAPEBOT_[A-Z_]+|https?://[\x21-\x7e]*[/\w{}]", text
    )
    return {**found, **{word: words.count(word) for word in words}}


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_translation_has_the_values_and_the_markup_of_its_source(language):
    wrong = []
    for message in messages(language):
        *_others, last = sources(message)
        known = set().union(*map(values_of, sources(message)))
        for told in translations(message):
            # A form for one number may leave the number out, as its source may.
            missing = (
                values_of(last) - values_of(told) - ({"n!None:"} if message.pluralizable else set())
            )
            if missing or values_of(told) - known or marks_of(told) != marks_of(last):
                wrong.append((last, told))
    assert not wrong


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_is_shown_with_whatever_values(language):
    with use_language(language):
        for message in catalogue("de"):
            if not message.id:
                continue
            names = set().union(*(values_of(one) for one in sources(message)))
            plain = {name.partition("!")[0] for name in names if name.endswith("!None:")}
            if message.pluralizable:
                plain.discard("n")
            numeric = {name.partition("!")[0] for name in names if not name.endswith("!None:")}
            for hostile in HOSTILE:
                values = {**dict.fromkeys(plain, hostile), **dict.fromkeys(numeric, 3)}
                if not message.pluralizable:
                    shown = [_(message.id, **values)]
                else:
                    shown = [ngettext(*message.id, number, **values) for number in NUMBERS]
                # A message of values alone is empty where they are.
                assert all(shown) or not hostile
                # What a person is told is in it as it is: no value is read as a name or a format.
                if plain and len(hostile) > 1:
                    assert all(text.count(hostile) >= 1 for text in shown), message.id


@pytest.mark.parametrize("language", TRANSLATED)
def test_what_is_compiled_is_what_is_written(language):
    compiled = BytesIO()
    write_mo(compiled, catalogue(language))
    assert (LOCALE / language / "LC_MESSAGES" / "tapebot.mo").read_bytes() == compiled.getvalue()


@cache
def marked() -> frozenset[str | tuple[str, str]]:
    """Return the messages that the sources mark."""
    found = set()
    for folder in (ROOT / "bot", ROOT / "channels"):
        for path in sorted(folder.rglob("*")):
            method = {".py": "python", ".html": "jinja2"}.get(path.suffix)
            if path.suffix == ".js" and "vendor" not in path.parts:
                method = "javascript"
            if method is None or not re.search(
                rb"\b(_|N_|n?gettext|pgettext|n?html_)\(", path.read_bytes()
            ):
                continue
            with path.open("rb") as file:
                for _line, message, _comments, _context in extract(method, file, KEYWORDS):
                    found.add(message if isinstance(message, str) else tuple(message))
    return frozenset(found - {""})


@pytest.mark.slow
@pytest.mark.parametrize("language", TRANSLATED)
def test_catalogues_hold_the_messages_of_the_sources(language):
    known = {one.id for one in catalogue(language) if one.id}
    assert known == marked(), "run: make translations"


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_message_is_translated(language):
    forms = catalogue(language).num_plurals
    for one in catalogue(language):
        assert not one.id or (all(translations(one)) and not one.fuzzy), one.id
        assert not one.pluralizable or len(translations(one)) == forms, one.id
