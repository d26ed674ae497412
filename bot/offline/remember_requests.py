"""Parse requests to remember something or to set a reminder.

Rule 1: a request counts only if the whole message is one, and never if it asks a question.
Rule 2: in a language other than English, the words after the request are stored literally, and the
        confirmation is in that language for who reads English.
Rule 3: a reminder is stored as a fact about the wish; no reminder is promised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.core.patterns import LazyPattern
from bot.language.grammatical_person import expand, to_third
from bot.language.sentences import is_question
from bot.language.statements import StatedFact, extract_facts
from bot.offline.request_parser import UserMessage

_POLITE = LazyPattern(r"(?:can|could|will|would) you ", re.IGNORECASE)
_REMEMBER = LazyPattern(
    r"(?:please |can you |could you |also )*(?:remember|keep in mind|don't forget|do not forget|note|memori[sz]e)"
    r"(?: that|:)?\s+(?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)
_ASKS_WITHIN = LazyPattern(r"[?？؟]\s+\S")
_TO_DO = LazyPattern(r"to (?=[a-z])", re.IGNORECASE)
_REMIND = LazyPattern(
    r"(?:(?:please|can you|could you|will you|would you|hey|ok),? )*(?:set a reminder|(?:remind|ping) (?:me|us))"
    r"(?P<when>(?: [\w:]{1,20}){0,5}?) (?P<what>to [a-z].+|that .+)",
    re.IGNORECASE,
)
_QUESTION = LazyPattern(r"[?？؟](?:\s|$)")
_FORMS = tuple(
    (LazyPattern(rf"\s*(?:{asked})\s*(?P<what>\S.*)", re.IGNORECASE | re.DOTALL), language)
    for asked, language in (
        (
            r"(?:bitte\s+)?(?:merke?\s+dir|notiere?(?:\s+dir)?|denke?\s+daran|vergiss\s+nicht)"
            r"(?:\s++bitte)?\s*+(?:,?\s*+dass\b|:)",
            "de",
        ),
        (
            r"(?:s'il te pla[iî]t,?\s+)?(?:souviens-toi|rappelle-toi|retiens|n'oublie pas)"
            r"\s*(?:bien\s+)?(?:que\b|qu'|:)",
            "fr",
        ),
        (
            r"(?:por favor,?\s+)?(?:recuerda|acu[eé]rdate(?:\s+de)?|no olvides|anota)\s*(?:que\b|:)",
            "es",
        ),
        (
            r"(?:por favor,?\s+)?(?:lembra(?:-te)?(?:\s+de)?|n[aã]o esque[cç]as?)\s*(?:que\b|:)",
            "pt",
        ),
        (r"(?:ricorda(?:ti)?|non dimenticare)\s*(?:che\b|:)", "it"),
        (
            r"(?:пожалуйста,?\s+)?(?:запомни|помни|не забудь)(?:,\s*что\b|\s*:)",
            "ru",
        ),
        (r"(?:请)?记住[,，:：]?", "zh"),
        (r"(?:覚えておいて|覚えて)[:：、,]", "ja"),
    )
)
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class RememberRequest:
    """A request to remember something.

    Attributes:
        words: What to remember, in the person's words.
        facts: The facts to store; empty if only the words are stored.
    """

    words: str
    facts: tuple[StatedFact, ...]


def is_reminder_request(text: str) -> bool:
    """Return whether a message asks to be reminded of something."""
    return len(text) <= _LONGEST and bool(_REMIND.fullmatch(text.strip().rstrip("?.! ")))


def _reminder(message: UserMessage, text: str) -> RememberRequest | None:
    plain = text.strip().rstrip("?.! ")
    match = _REMIND.fullmatch(plain) if len(plain) <= _LONGEST else None
    if match is None:
        return None
    reminder = f"{match['what']}{match['when']}"
    stated = extract_facts(
        f"I want to be reminded {reminder}", message.subject, message.date, message.name
    )
    facts = tuple(StatedFact(fact.line, text) for fact in stated)
    return (
        RememberRequest(reminder.removeprefix("to ").removeprefix("that "), facts)
        if facts
        else None
    )


def parse_remember_request(message: UserMessage, text: str) -> RememberRequest | None:
    """Parse a request to remember; return None if the message is none."""
    foreign_text = foreign_memory_text(text)
    if foreign_text:
        return RememberRequest(foreign_text, (StatedFact(foreign_text, text),))
    reminder = _reminder(message, text)
    if reminder:
        return reminder
    match = _REMEMBER.fullmatch(text)
    asked = is_question(text) and not _POLITE.match(text)
    if match is None or asked or len(text) > 4000 or _ASKS_WITHIN.search(text):
        return None
    what = match["what"].rstrip(" ?")
    if _TO_DO.match(what) and len(what) <= 300:
        line = to_third(f"I want to remember {expand(what)}", message.subject)
        return RememberRequest(what[3:].strip(), (StatedFact(line, what),))
    return RememberRequest(
        what.strip(), extract_facts(what, message.subject, message.date, message.name)
    )


def foreign_memory_text(text: str) -> str:
    """Return what a message in another language asks to remember; empty if it does not ask."""
    match, _language = _foreign_request(text)
    line = " ".join(match["what"].split()).lstrip("-*•#> ") if match else ""
    return line[:1].upper() + line[1:]


def foreign_language(text: str) -> str:
    """Return the language of such a request; empty if the text is none."""
    return _foreign_request(text)[1]


def _foreign_request(text: str) -> tuple[re.Match[str] | None, str]:
    if len(text) > _LONGEST or _QUESTION.search(text):
        return None, ""
    plain = text.replace("’", "'")
    matches = ((form.fullmatch(plain), language) for form, language in _FORMS)
    return next(((hit, language) for hit, language in matches if hit), (None, ""))
