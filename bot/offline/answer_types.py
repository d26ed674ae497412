"""Check that a statement has the type of answer that a question expects: a time, a name. Pure.

Rule 1: an answer says something that the question does not.
Rule 2: the statement has the words of the question; light verbs, and the word for the value that is
    asked for ("dose", "price"), may be missing.
Rule 3: a statement of another type is no answer: "when" needs a time, "who" a name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from enum import StrEnum, auto
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import RELATION_TERMS, fact_term, fact_terms, fact_words
from bot.language.grammatical_person import expand, is_past
from bot.language.parsed_facts import ParsedFact
from bot.offline.arithmetic import MONTH, asks_sum
from bot.offline.candidates import Candidate, of_somebody_else
from bot.offline.intents import ParsedQuestion
from bot.offline.request_parser import UserMessage

_DAYS = "mon tue wed thu fri sat sun"
_DAY = "|".join(f"{one}[a-z]{{0,6}}days?" for one in _DAYS.split())
_A_TIME = (
    r"\d{1,2}[:.]\d\d|\d ?(?:am|pm|o['’]clock)\b|\b\d{1,2}(?:st|nd|rd|th)\b|\b(?:19|20)\d\d\b"
    rf"|\b(?:at|until|till|by) \d|\b(?:{MONTH})\.? \d|\d{{1,2}}\.? (?:of )?(?:{MONTH})\b|\b(?:{_DAY})\b"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december|spring|summer|autumn"
    r"|winter|today|tomorrow|yesterday|tonight|weekends?|morning|afternoon|evening|night|noon|midnight|half past"
    r"|quarter (?:past|to)|christmas|easter|new year|breakfast|lunch|dinner|next (?:week|month|year)|bedtime)\b"
    r"|\bat (?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b|\bin may\b"
)
_A_CLOCK = (
    r"\d{1,2}[:.]\d\d|\d ?(?:am|pm|o['’]clock)\b|\b(?:morning|evening|night|noon|midnight|half past|quarter (?:past|to))\b"
    r"|(?:^| )(?:at|until|till|by|to|is) (?:\d{1,2}(?![\d:])(?!st|nd|rd|th)|(?:one|two|three|four|five|six|seven|eight|nine|ten"
    r"|eleven|twelve)\b)|^\d{1,2}\b"
)
_A_NUMBER = (
    r"\d|\bone (?=\w)|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundred|thousand|half|double|once|twice|none|no|dozen)\b"
)


class AnswerType(StrEnum):
    """Type of value that a question asks for."""

    TIME = auto()
    CLOCK = auto()
    SPAN = auto()
    NUMBER = auto()
    PERSON = auto()
    NAME = auto()
    PLACE = auto()
    MANNER = auto()


_VALUE_PATTERNS = {
    kind: LazyPattern(pattern, re.IGNORECASE)
    for kind, pattern in (
        (AnswerType.TIME, _A_TIME),
        (AnswerType.CLOCK, _A_CLOCK),
        (
            AnswerType.SPAN,
            _A_NUMBER + r"|\bsince\b|\b(?:an?|the whole|all) (?:hour|day|week|month|year)\b",
        ),
        (AnswerType.NUMBER, _A_NUMBER),
        (
            AnswerType.PLACE,
            r"\b(?:in|at|on|under|near|behind|beside|by|inside|to|from|with|over|between|next|around|outside|above"
            r"|below)\b",
        ),
        (
            AnswerType.MANNER,
            r"\b(?:by|using|via|on foot|walk|drive|because|like|well|badly|better|worse|fine|good|bad)\b",
        ),
    )
}
"""Pattern of each type in a statement; names are recognised by their capitals instead."""
_TYPES_BY_OPENING = tuple(
    (LazyPattern(opening, re.IGNORECASE), kind)
    for opening, kind in (
        (r"(?:at )?what time\b", AnswerType.CLOCK),
        (r"(?:since |until |from )?when\b", AnswerType.TIME),
        (r"what(?:'s| is| was) the (?:day|date|year|deadline)\b", AnswerType.TIME),
        (
            r"(?:(?:at|on|by|in) )?(?:what|which) (?:time|day|date|month|year|weekday)\b",
            AnswerType.TIME,
        ),
        (r"(?:for )?how (?:long|often)\b", AnswerType.SPAN),
        (r"how (?:much|many|old|far|big|tall|high|heavy|fast|large)\b", AnswerType.NUMBER),
        (r"(?:with |to |for |from )?(?:who|whom|whose)\b", AnswerType.PERSON),
        (r"what (?:make|model|brand)\b|what\b.{1,80}\b(?:called|named?)\b", AnswerType.NAME),
        (r"what (?:do|does|did) .{1,40} call\b", AnswerType.NAME),
        (r"(?:what|which)(?: \w+)? (?:number|code|size|price|amount)\b", AnswerType.NUMBER),
        (
            r"(?:from |to )?where\b|(?:in |to |from )?(?:what|which) (?:city|town|country|street|place)\b",
            AnswerType.PLACE,
        ),
        (r"how (?:am|is|are|was|were|do|does|did|can|will)\b", AnswerType.MANNER),
    )
)
_TIMES = frozenset((AnswerType.TIME, AnswerType.CLOCK))
_AMOUNTS = frozenset((AnswerType.NUMBER, AnswerType.SPAN))
_NAMES = frozenset((AnswerType.NAME, AnswerType.PERSON))
_SHORTEST_PREFIX = 5
_IN_PLACE = LazyPattern(
    r"\b(?:in|at|on|under|near|inside|into|behind|beside|to) (?!me\b|be\b)\w", re.IGNORECASE
)
_IS = frozenset(("is", "are", "was", "were", "of", "for"))
_WHERE_NOW = LazyPattern(r"where(?:'s| is| are| do(?:es)?)\b")
_MEASURES = frozenset(
    map(fact_term, "dose dosage price cost rent fee weight height number code pin size salary wage temperature score limit percentage"
        " amount speed total budget deposit allowance grade mark".split())
)  # fmt: skip
QUESTION_TERMS = frozenset(
    map(fact_term, "long often much many old far big tall high heavy fast large time day date month year week weekday name call left"
        " kind type sort thing people person place one money city town country street together altogether total combined all kilometre kilometer km euro dollar pound hour minute".split())
)  # fmt: skip
LIGHT_VERBS = frozenset(
    map(fact_term, "do get go take give make have own run come put keep need use happen start begin end expire charge pay cost"
        " leave set bring hold cause be due supposed find stand belong know supply valid best good spend out off up down away back".split())
)  # fmt: skip
_USE_VERBS = LIGHT_VERBS | frozenset(map(fact_term, "drive run use ride wear read".split()))
_OCCASIONS = frozenset(
    map(fact_term, "lesson class appointment session course meeting reading operation wedding party trip game match practice"
        " training shift".split())
)  # fmt: skip


def answers_question(candidate: Candidate, question: ParsedQuestion, asker: UserMessage) -> bool:
    """Return whether a statement answers a question for a value, as far as its words show."""
    statement = candidate.words or candidate.line.text
    if question.form != "value" or not candidate.first_hand or question.language != "en":
        return False
    if asks_sum(question.text) or candidate.line.former:
        return False
    statement_terms = set(fact_terms(statement)) | candidate.line.terms
    groups = [group for group in question.required if not group & QUESTION_TERMS]
    matched = [group for group in groups if _has_any_term(statement_terms, group)]
    answer_type = _answer_type(question)
    if question.optional & statement_terms:
        groups = [group for group in groups if not group & _USE_VERBS] or groups
        matched = [group for group in groups if _has_any_term(statement_terms, group)] or [
            question.optional
        ]
    if answer_type is not None and not _has_answer_type(answer_type, statement, question):
        return False
    lacking = [group for group in groups if group not in matched]
    named = set(map(fact_term, _names(question.text)))
    if any(not _may_lack(group, named, statement_terms, answer_type) for group in lacking):
        return False
    asked_terms = frozenset().union(*groups, question.optional)
    if of_somebody_else(candidate, question, asker, asked_terms):
        return False
    return bool([group for group in matched if not group & LIGHT_VERBS]) and bool(
        set(fact_terms(statement)) - asked_terms
    )


def has_one_value(question: ParsedQuestion) -> bool:
    """Return whether only one answer can hold: a thing is in one place at a time."""
    return bool(_WHERE_NOW.match(question.text.strip().lower()))


def gives_newer_value(
    candidate: Candidate, older: Candidate, question: ParsedQuestion, asker: UserMessage
) -> bool:
    """Return whether a later statement answers a question with another value than an older one.

    Args:
        candidate: The later statement.
        older: The older statement.
        question: A question for a time, a number or a place; for any other the result is False.
        asker: The message that asks.
    """
    answer_type = _answer_type(question)
    if answer_type not in _TIMES | _AMOUNTS and not has_one_value(question):
        return False
    idle = QUESTION_TERMS | LIGHT_VERBS | (_OCCASIONS if answer_type in _TIMES else frozenset())
    groups = [group for group in question.required if not group & idle]
    statement_terms = set(fact_terms(candidate.words))
    if candidate.line.former or answer_type is None or not groups:
        return False
    if not all(_has_any_term(statement_terms, group) for group in groups):
        return False
    asked_terms = question.optional.union(*question.required)
    if of_somebody_else(candidate, question, asker, asked_terms):
        return False
    new_words = _words_beyond_question(candidate.words, question)
    if answer_type is AnswerType.PLACE:
        return bool(_IN_PLACE.search(new_words)) and _is_one_thing(candidate.line, older.line)
    return bool(
        _values(answer_type, new_words)
        - _values(answer_type, _words_beyond_question(older.words or older.line.text, question))
    )


def _is_one_thing(first: ParsedFact, second: ParsedFact) -> bool:
    """Return whether two statements may be about one thing, as "the key" and "the spare key" are.

    "The car key" and "the spare key" are two things.
    """
    first_subject, second_subject = set(first.subject), set(second.subject)
    return (
        not first_subject
        or not second_subject
        or first_subject <= second_subject
        or second_subject <= first_subject
    )


def _has_any_term(held: Collection[str], group: Iterable[str]) -> bool:
    """Return whether a term occurs, or a longer word that begins with it."""
    return any(
        term in held or any(_one_begins_other(term, held_term) for held_term in held)
        for term in group
    )


def _one_begins_other(first: str, second: str) -> bool:
    short, long = sorted((first, second), key=len)
    return len(short) >= _SHORTEST_PREFIX and long.startswith(short)


def lacks_answer(candidate: Candidate, question: ParsedQuestion) -> bool:
    """Return whether a statement with all the words of a question still does not answer it."""
    if question.form != "value" or question.language != "en" or not candidate.first_hand:
        return False
    if asks_sum(question.text):
        return True
    statement = candidate.words or candidate.line.text
    answer_type = _answer_type(question)
    if answer_type is not None and answer_type is not AnswerType.PLACE:
        return not _has_answer_type(answer_type, statement, question)
    if question.optional & set(fact_terms(statement)) and not _tells_which(statement, question):
        return True
    return not set(fact_terms(statement)) - frozenset().union(*question.required, question.optional)


def _tells_which(statement: str, question: ParsedQuestion) -> bool:
    """Return whether a neighbouring word specifies the thing asked for: "my left hand"."""
    statement_words = fact_words(statement)
    question_words = set(fact_words(question.text))
    for at, word in enumerate(statement_words):
        if fact_term(word) in question.optional:
            beside = statement_words[max(0, at - 1) : at] + statement_words[at + 1 : at + 2]
            if any(
                neighbour not in question_words and (fact_terms(neighbour) or neighbour in _IS)
                for neighbour in beside
            ):
                return True
    return False


@lru_cache(maxsize=64)
def _answer_type(question: ParsedQuestion) -> AnswerType | None:
    """Return the type of a question's answer; None if unknown."""
    asked = expand(" ".join(question.text.split()))
    kind = next((kind for opening, kind in _TYPES_BY_OPENING if opening.match(asked)), None)
    measured = any(group & _MEASURES for group in (*question.required, question.optional))
    return kind or (AnswerType.NUMBER if measured else None)


def _has_answer_type(answer_type: AnswerType, statement: str, question: ParsedQuestion) -> bool:
    """Return whether a statement has a value of a type beyond the words of the question."""
    if answer_type not in _NAMES:
        return bool(
            _VALUE_PATTERNS[answer_type].search(_words_beyond_question(statement, question))
        )
    if statement == statement.lower():
        # Without capitals, names cannot be told from other words.
        return True
    kin = answer_type is AnswerType.PERSON and not RELATION_TERMS.isdisjoint(
        fact_terms(_words_beyond_question(statement, question))
    )
    return kin or bool(_names(statement) - set(fact_words(question.text)))


def _values(kind: AnswerType, text: str) -> set[str]:
    """Return the values of a type in a text, in lower case."""
    return {hit.group().lower() for hit in _VALUE_PATTERNS[kind].finditer(text)}


def _names(statement: str) -> set[str]:
    """Return the capitalised words in lower case, without dates and plain first words."""
    names, begins = set(), True
    for token in statement.split():
        word = token.strip(".,!?:;\"'’()").removesuffix("'s").removesuffix("’s")
        plain = begins and (not fact_terms(word) or is_past(word.lower()) or not word.isalpha())
        capital = word[:1].isupper() and word != "I"
        if capital and not plain and not _VALUE_PATTERNS[AnswerType.TIME].search(word):
            names.add(word.lower())
        begins = token.endswith((".", "!", "?"))
    return names


def _may_lack(
    group: frozenset[str], named: set[str], held: set[str], kind: AnswerType | None
) -> bool:
    if group & RELATION_TERMS and named & held:
        # "My cousin Jules": the name alone identifies the person.
        return True
    if kind in _TIMES and group & _OCCASIONS:
        return True
    return bool(group & LIGHT_VERBS) or (kind is not None and bool(group & _MEASURES))


def _words_beyond_question(statement: str, question: ParsedQuestion) -> str:
    """Return the words of a statement that the question does not have, in order."""
    question_words = set(fact_words(question.text))
    return " ".join(
        token
        for token in statement.split()
        if not set(fact_words(token)) or not set(fact_words(token)) <= question_words
    )
