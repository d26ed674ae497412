"""Lists, clauses and days as the current language writes them; English for the model. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, tzinfo

from bot.core.i18n import _, current_language, format_date, format_datetime, pgettext, use_language
from bot.core.reasons import Reason

MODEL_LANGUAGE = "en"
"""The language of what a language model reads, whoever it answers."""

_reader: ContextVar[str | None] = ContextVar("readers_language", default=None)


@contextmanager
def model_language() -> Iterator[None]:
    """Make the texts of a block in the model's language, whatever a person's language is."""
    token = _reader.set(_reader.get() or current_language())
    try:
        with use_language(MODEL_LANGUAGE):
            yield
    finally:
        _reader.reset(token)


@contextmanager
def readers_language() -> Iterator[None]:
    """Make a text for the person within a block of ``model_language``, such as a tool's question."""
    with use_language(_reader.get() or current_language()):
        yield


def joined(items: Iterable[str]) -> str:
    """Return items as a list on one line."""
    return _chained(pgettext("items of a list", "{first}, {second}"), items)


def joined_clauses(clauses: Iterable[str]) -> str:
    """Return clauses as parts of one sentence."""
    return _chained(
        pgettext("clauses of a sentence", "{first}; {second}"),
        clauses,
    )


def _chained(pattern: str, parts: Iterable[str]) -> str:
    between = pattern.removeprefix("{first}").removesuffix("{second}")
    return between.join(parts)


def bold(text: str) -> str:
    """Return a text in bold letters, as Markdown."""
    return f"**{text}**"


def known_text(text: str) -> str:
    """Return a recorded note, such as one on a file: translated if it is the program's own.

    Args:
        text: A ``Reason``, or the text of an entry from before there were codes.
    """
    if isinstance(text, Reason):
        return f"{text}"
    # The catalogue's header is the translation of an empty message.
    return _(text) if text else ""


def capitalized(text: str) -> str:
    """Return a clause as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def decimal_text(number: float, digits: int) -> str:
    """Return a number with so many digits after the decimal sign."""
    from babel.numbers import format_decimal

    return format_decimal(number, format=f"#,##0.{'0' * digits}", locale=current_language())


def local_time(stamp: object, timezone: tzinfo | None) -> str:
    """Return an ISO time stamp as day and time; ``?`` if invalid."""
    moment = _moment(stamp, timezone)
    return "?" if moment is None else format_datetime(moment)


def local_day(stamp: object, timezone: tzinfo | None) -> str:
    """Return the day of an ISO time stamp; empty if invalid."""
    moment = _moment(stamp, timezone)
    return "" if moment is None else format_date(moment.date())


def long_day(day: date) -> str:
    """Return a day with its weekday, such as ``Monday, 9 February 2026``."""
    if current_language() == "en":
        return f"{day:%A}, {day.day} {day:%B %Y}"
    return format_date(day, "full")


def _moment(stamp: object, timezone: tzinfo | None) -> datetime | None:
    try:
        return datetime.fromisoformat(str(stamp)).astimezone(timezone or UTC)
    except (ValueError, OverflowError):
        return None


def plain_day(day: str) -> str:
    """Return a day that is written ``YYYY-MM-DD``; another text as it is."""
    try:
        return format_date(date.fromisoformat(day))
    except ValueError:
        return day
