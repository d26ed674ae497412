"""Compute what remains of a fact after a newer one replaces its value.

Rule 1: a newer fact supersedes only the part that it is about; the rest of the older fact stays.
Rule 2: the rest becomes a sentence made of the older fact's words if that is certain; otherwise the
        whole older fact stays.
"""

from __future__ import annotations

import re

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import fact_term, fact_terms, fact_words
from bot.language.grammatical_person import as_sentence
from bot.language.parsed_facts import ParsedFact, conflicts, parse_fact

_COMPANY = LazyPattern(r"(?:in|to|at|near|outside) (?:(?! with ).){1,80}? (?P<rest>with .+)")
_TAIL = LazyPattern(
    r"(?:,? (?:with|but|who|whose|where|which|while|together)|,(?! [A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*$)|;)"
    r" .+"
)
_AND = LazyPattern(r" and .+")
_AFFILIATION = LazyPattern(r" (?P<rest>(?:at|for) .+)")
_THING = LazyPattern(r"(?:an?|one|two|three|four|five|\d{1,3}) ", re.IGNORECASE)
_DAY = LazyPattern(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|next|week\w*"
    r"|(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber"
    r"|\d{4}-\d\d-\d\d|\d{1,2}(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
_HOUR = LazyPattern(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock|h)?\b", re.IGNORECASE)
_CLOCK = LazyPattern(
    r"(?:\b(?:at|by|around) )?\b\d{1,2}(?::\d\d ?(?:[ap]m)?| ?[ap]m| o'clock)(?!\w)", re.IGNORECASE
)
_SMALL_TERMS = frozenset(
    map(fact_term, "a an the now also actually still currently just really".split())
)
_MEANING_CHANGING_WORDS = frozenset(
    "no not never without before previously formerly stopped quit once can cannot could would should"
    " may might used almost from".split()
)


def adds_nothing(new: ParsedFact, old: ParsedFact) -> bool:
    """Return whether a newer fact says nothing beyond an older one."""
    if new.key == old.key:
        return True
    if not conflicts(new, old) or (new.negated, new.retracts) != (old.negated, old.retracts):
        return False
    new_words, old_words = fact_words(new.text), fact_words(old.text)
    if _MEANING_CHANGING_WORDS & set(new_words) != _MEANING_CHANGING_WORDS & set(old_words):
        return False
    if new.slot == old.slot == "home":
        return set(fact_terms(new.text)) <= set(fact_terms(old.text))
    return set(map(fact_term, new_words)) - _SMALL_TERMS <= set(map(fact_term, old_words))


def remaining_text(new: ParsedFact, old: ParsedFact) -> str:
    """Return what remains of a fact that a newer one conflicts with.

    Returns:
        An empty text if the newer fact covers all of it, the whole text if no part of it can be
        removed with certainty, else a sentence with the rest.
    """
    company = _COMPANY.match(old.rest) if old.slot == "home" else None
    if company:
        return (
            ""
            if set(fact_terms(company["rest"])) <= new.terms
            else _with_rest(old, company["rest"])
        )
    if not _says_more(new, old):
        return ""
    return _certain_rest(new, old)


def _with_rest(old: ParsedFact, rest: str) -> str:
    """Return the older fact with other words after its verb; unchanged if its end is unclear."""
    at = old.text.rfind(old.rest)
    if not old.rest or at < 0:
        return old.text
    return as_sentence(f"{old.text[:at]}{rest}{old.text[at + len(old.rest) :]}")


def _certain_rest(new: ParsedFact, old: ParsedFact) -> str:
    """Return what the older fact says beyond the newer one; all of it if that is uncertain."""
    things = old.rest.split(" and ")
    if old.verb == "have" and len(things) > 1 and all(map(_THING.match, things)):
        unchanged = [
            thing for thing in things if not conflicts(new, parse_fact(_with_rest(old, thing)))
        ]
        return _with_rest(old, " and ".join(unchanged)) if unchanged else ""
    affiliation = _AFFILIATION.search(f" {old.rest}") if old.slot == "job" else None
    if affiliation and old.verb == fact_term("work"):
        return _with_rest(old, affiliation["rest"])
    clock = _CLOCK.search(old.rest)
    if clock and old.slot.startswith("value") and not _has_more_after_value(new, old):
        without = " ".join(_CLOCK.sub(" ", old.rest).split())
        return _with_rest(old, clock.group() if _DAY.search(new.rest) else without)
    return old.text


def _has_more_after_value(new: ParsedFact, old: ParsedFact) -> bool:
    tails = [_TAIL]
    if not old.slot.startswith("value"):
        tails.append(_AND)
    if old.slot == "job":
        tails.append(_AFFILIATION)
    for tail in tails:
        match = tail.search(f" {old.rest}")
        if match and not set(fact_terms(match.group())) <= new.terms | {"user"}:
            return True
    return False


def _says_more(new: ParsedFact, old: ParsedFact) -> bool:
    if _has_more_after_value(new, old):
        return True
    return old.slot.startswith("value") and _completes_time(new.rest, old.rest)


def _completes_time(new: str, old: str) -> bool:
    """Return whether the newer value names only day or hour, and the older value has the other."""
    day = bool(_DAY.search(old)) and not _DAY.search(new) and bool(_HOUR.search(new))
    hour = bool(_CLOCK.search(old)) and not _CLOCK.search(new) and bool(_DAY.search(new))
    return day or hour
