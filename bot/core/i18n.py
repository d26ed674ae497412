"""The program's own words in the language of whoever reads them, by gettext and CLDR.

English is the language of the source: a message without a translation is shown in English. The
catalogues are ``bot/core/locale/LANGUAGE/LC_MESSAGES/tapebot.po``; ``make translations`` extracts
the messages, updates the catalogues and compiles them.

A message is a whole sentence with named values in braces: ``_("{person} is not here.", person=...)``.
A constant is marked where it stands, ``NAME = N_("...")``, and translated where it is shown,
``_(NAME)``. What a language model reads, logs, and what is kept on a tape stays as it is.
"""

from __future__ import annotations

import gettext as _gettext
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

LANGUAGES = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "pt": "Português",
    "it": "Italiano",
    "ru": "Русский",
    "uk": "Українська",
    "zh": "中文",
    "ja": "日本語",
    "ar": "العربية",
}
"""The languages that the program speaks, each by its own name."""

RIGHT_TO_LEFT = frozenset({"ar"})

_SOURCE = "en"
_DOMAIN = "tapebot"
_FOLDER = Path(__file__).parent / "locale"
_current: ContextVar[str] = ContextVar("language", default=_SOURCE)


def _(message: str, /, **values: object) -> str:
    """Return a message in the current language, with its values in place of their names."""
    return _catalogue(_current.get()).gettext(message).format_map(values)


def ngettext(singular: str, plural: str, n: int, /, **values: object) -> str:
    """Return the form of a message that fits a number, which stands for ``{n}``."""
    message = _catalogue(_current.get()).ngettext(singular, plural, n)
    return message.format_map({"n": format_number(n), **values})


def pgettext(context: str, message: str, /, **values: object) -> str:
    """Return a message that means different things in different contexts."""
    return _catalogue(_current.get()).pgettext(context, message).format_map(values)


def N_(message: str, /) -> str:  # noqa: N802 - gettext's own name
    """Mark a constant for translation, and return it as it is."""
    return message


def current_language() -> str:
    """Return the code of the language in which messages are shown now."""
    return _current.get()


@contextmanager
def use_language(language: str) -> Iterator[None]:
    """Show messages in a language, within the block and the tasks that are started in it.

    Args:
        language: A code of ``LANGUAGES``.
    """
    token = _current.set(language)
    try:
        yield
    finally:
        _current.reset(token)


def match_language(preferred: Iterable[str]) -> str | None:
    """Return the first language that the program speaks.

    Args:
        preferred: Language tags as clients state them, best first: ``pt-BR``, ``zh_Hans_CN``.

    Returns:
        A code of ``LANGUAGES``, or None.
    """
    for tag in preferred:
        code = tag.replace("_", "-").partition("-")[0].strip().lower()
        if code in LANGUAGES:
            return code
    return None


def environment_language(environment: Mapping[str, str]) -> str:
    """Return the language of a terminal by its variables; empty if none is spoken.

    As for other programs, the first variable that is set counts.
    """
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return match_language([locale.partition(".")[0].partition("@")[0]]) or ""


def format_number(number: float) -> str:
    """Return a number as the current language writes it."""
    if _current.get() == _SOURCE and isinstance(number, int):
        return f"{number:,}"
    from babel.numbers import format_decimal

    return format_decimal(number, locale=_current.get())


@cache
def _catalogue(language: str) -> _gettext.NullTranslations:
    if language == _SOURCE:
        return _gettext.NullTranslations()
    return _gettext.translation(_DOMAIN, _FOLDER, [language], fallback=True)


def translate_libraries(language: str) -> None:
    """Have libraries that use the process's ``gettext`` domain, such as ``argparse``, speak a language.

    Their messages are in the same catalogue.
    """
    if language != _SOURCE:
        _gettext.bindtextdomain(_DOMAIN, _FOLDER)
        _gettext.textdomain(_DOMAIN)
        os.environ["LANGUAGE"] = language
