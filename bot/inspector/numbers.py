"""Numbers and days as the current language writes them, and its direction. Pure."""

from __future__ import annotations

import math
from datetime import date

from bot.core.i18n import RIGHT_TO_LEFT, current_language, format_money


def direction() -> str:
    """Return in which direction the current language is written: ``ltr`` or ``rtl``."""
    return "rtl" if current_language() in RIGHT_TO_LEFT else "ltr"


def money(value: float, digits: int) -> str:
    """Return US dollars with so many digits behind the point, as the current language writes them."""
    text = format_money(value, digits)
    # Else the sign leaves its letters where the line goes to the left.
    return text.replace("US$", "US$\u200e") if direction() == "rtl" else text


def rounded(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, as the current language writes it."""
    if not value:
        return "0"
    from babel.numbers import format_decimal

    pattern = "@" if digits == 1 else "@" + "#" * (digits - 1)
    return format_decimal(value, format=pattern, locale=current_language())


def fixed(value: float, digits: int) -> str:
    """Return a number with so many digits behind the point, as the current language writes it."""
    from babel.numbers import format_decimal

    pattern = "#,##0" + ("." + "0" * digits if digits else "")
    return format_decimal(value, format=pattern, locale=current_language())


def short_day(day: str) -> str:
    """Return an ISO date as month and day, such as ``Nov 26``."""
    from babel.dates import format_skeleton

    return format_skeleton("MMMd", date.fromisoformat(day), locale=current_language())


def count(value: float) -> str:
    """Format a number with at most three digits and a suffix for thousands or more."""
    for limit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{rounded(value / limit)}{sign}"
    return rounded(value)


def dollars(value: float) -> str:
    """Format a price in US dollars."""
    # Small prices get two significant digits, and at least cents.
    digits = 2 if value >= 1 or value <= 0 else max(2, 1 - math.floor(math.log10(value)))
    return money(value, digits)
