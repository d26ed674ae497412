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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Literal

from bot.core.patterns import LazyPattern

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

DateStyle = Literal["short", "medium", "long", "full"]
ListStyle = Literal["standard", "or"]

_LONGEST_HEADER = 1_000
_CODE_SPAN = LazyPattern(r"`[^`\n]*`")

_SOURCE = "en"
_DOMAIN = "tapebot"
_FOLDER = Path(__file__).parent / "locale"
_current: ContextVar[str] = ContextVar("language", default=_SOURCE)


def _(message: str, /, **values: object) -> str:
    """Return a message in the current language, with its values in place of their names."""
    translated = _directed(_catalogue(_current.get()).gettext(message))
    # A message of a plug-in has no values, whatever it contains.
    return translated.format_map(values) if values else translated


def ngettext(singular: str, plural: str, n: int, /, **values: object) -> str:
    """Return the form of a message that fits a number, which stands for ``{n}``."""
    message = _directed(_catalogue(_current.get()).ngettext(singular, plural, n))
    return message.format_map({"n": format_number(n), **values})


def pgettext(context: str, message: str, /, **values: object) -> str:
    """Return a message that means different things in different contexts."""
    translated = _directed(_catalogue(_current.get()).pgettext(context, message))
    return translated.format_map(values) if values else translated


def N_(message: str, /) -> str:  # noqa: N802 - gettext's own name
    """Mark a constant for translation, and return it as it is."""
    return message


def every_translation(*messages: str) -> set[str]:
    """Return messages in every language, such as for recognising what was said in one of them.

    The catalogues are read for that, and not kept.
    """
    found = set(messages)
    for path in filter(None, (_gettext.find(_DOMAIN, _FOLDER, [one]) for one in LANGUAGES)):
        with Path(path).open("rb") as file:
            catalogue = _gettext.GNUTranslations(file)
        found.update(map(catalogue.gettext, messages))
    return found


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


def accepted_languages(header: str) -> str:
    """Return the language that a browser's ``Accept-Language`` asks for; empty if none is spoken.

    Args:
        header: The header's value, such as ``de-CH, fr;q=0.8``.
    """
    weighed = []
    for item in header[:_LONGEST_HEADER].split(","):
        tag, _sep, weight = item.partition(";q=")
        try:
            weighed.append((float(weight or 1), tag))
        except ValueError:
            continue
    best_first = sorted(weighed, key=lambda one: -one[0])
    return match_language(tag for weight, tag in best_first if weight > 0) or ""


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


def format_money(dollars: float, digits: int = 2) -> str:
    """Return an amount of US dollars as the current language writes it."""
    from babel.numbers import format_currency

    pattern = _money_pattern(_current.get(), digits)
    return format_currency(
        dollars, "USD", pattern, locale=_current.get(), currency_digits=False, group_separator=True
    )


def format_date(day: date, style: DateStyle = "medium") -> str:
    """Return a date as the current language writes it.

    In English it is an ISO date, which is read alike in all countries that speak it.
    """
    if _current.get() == _SOURCE:
        return f"{day:%Y-%m-%d}"
    from babel.dates import format_date

    return format_date(day, style, locale=_current.get())


def format_time(moment: datetime, *, seconds: bool = False) -> str:
    """Return the time of day as the current language writes it, in the zone of ``moment``."""
    if _current.get() == _SOURCE:
        return f"{moment:%H:%M:%S}" if seconds else f"{moment:%H:%M}"
    from babel.dates import format_time

    return format_time(moment, "medium" if seconds else "short", locale=_current.get())


def format_datetime(moment: datetime, style: DateStyle = "medium") -> str:
    """Return date and time of day as the current language writes them, in the zone of ``moment``."""
    if _current.get() == _SOURCE:
        return f"{moment:%Y-%m-%d %H:%M}"
    from babel.dates import get_datetime_format

    joined = str(get_datetime_format(style, locale=_current.get()))
    return joined.replace("{0}", format_time(moment)).replace("{1}", format_date(moment, style))


def format_duration(duration: timedelta) -> str:
    """Return a duration in its largest unit, rounded, such as "3 hours"."""
    from babel.dates import format_timedelta

    return format_timedelta(duration, threshold=1, locale=_current.get())


def format_list(items: Sequence[str], style: ListStyle = "standard") -> str:
    """Return a list as the current language writes it: "a, b, and c"; with ``or``, "a, b, or c"."""
    from babel.lists import format_list

    return format_list(list(items), style, locale=_current.get())


def _money_pattern(language: str, digits: int) -> str:
    from babel import Locale

    pattern: str = Locale.parse(language).currency_formats["standard"].pattern
    return pattern.replace(".00", "." + "0" * digits if digits else "")


def _directed(message: str) -> str:
    """Return a message whose code is read from left to right in text of the other direction.

    Without the marks an app would show the slash of ``/memory`` on its wrong side. They stand outside
    of the code, so that nobody copies them.
    """
    if _current.get() not in RIGHT_TO_LEFT:
        return message
    return _CODE_SPAN.sub("\u200e\\g<0>\u200e", message)


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
