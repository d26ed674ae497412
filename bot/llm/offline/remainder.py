"""What an older line of memory still says once a newer one has taken the place of its value.

Rule 1: a line is superseded only in what the newer line speaks of; the rest of it stays.
Rule 2: the rest becomes a line of its own where that is certain; else the whole older line stays.
"""

from __future__ import annotations

import re

from bot.llm.offline.grammar import sentence
from bot.llm.offline.lines import Line
from bot.llm.offline.words import terms

_COMPANY = re.compile(r"(?:in|to|at|near|outside) (?:(?! with ).){1,80}? (?P<rest>with .+)")
_TAIL = re.compile(
    r"(?:,? (?:with|but|who|whose|where|which|while|together)|,(?! [A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*$)|;)"
    r" .+"
)
_AND = re.compile(r" and .+")
_AFFILIATION = re.compile(r" (?:at|for) .+")
_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|next|week\w*"
    r"|(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber"
    r"|\d{4}-\d\d-\d\d|\d{1,2}(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
_HOUR = re.compile(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock|h)?\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b\d{1,2}(?::\d\d ?(?:[ap]m)?| ?[ap]m| o'clock)(?!\w)", re.IGNORECASE)


def left_over(new: Line, old: Line) -> str:
    """Return what stays of a line that a newer one conflicts with.

    Returns:
        An empty text where the newer line says all that it said, the line's own text where nothing
        may be taken from it, else a sentence with the rest.
    """
    if old.slot == "home":
        company = _COMPANY.match(old.rest)
        if company:
            rest = sentence(f"The user lives {company['rest']}")
            if old.owner != "the user":
                rest = old.text
            return "" if set(terms(company["rest"])) <= new.terms else rest
    return old.text if _says_more(new, old) else ""


def _says_more(new: Line, old: Line) -> bool:
    tails = [_TAIL]
    if not old.slot.startswith("value"):
        tails.append(_AND)
    if old.slot == "job":
        tails.append(_AFFILIATION)
    for tail in tails:
        found = tail.search(f" {old.rest}")
        if found and not set(terms(found.group())) <= new.terms | {"user"}:
            return True
    return old.slot.startswith("value") and _other_half(new.rest, old.rest)


def _other_half(new: str, old: str) -> bool:
    """Return whether of day and hour the older value has one that the newer does not name."""
    day = bool(_DAY.search(old)) and not _DAY.search(new) and bool(_HOUR.search(new))
    hour = bool(_CLOCK.search(old)) and not _CLOCK.search(new) and bool(_DAY.search(new))
    return day or hour
