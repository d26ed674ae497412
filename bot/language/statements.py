"""Extract the facts that a person states in a text.

These facts are written to memory; ``clauses`` and ``parsed_claim`` check facts against what was
said.

Rule 1: only declarative clauses about the person, their relations and possessions, or a named thing
        are facts; questions, requests, opinions of the moment and small talk are not.
Rule 2: each fact is one sentence in the third person, together with the sentence it was taken from.
Rule 3: events and moods of the day are daily notes, not long-term memory.
Rule 4: a statement that no rule parses is quoted if it is plainly about the person; nothing is
    guessed.
Rule 5: the work is bounded: long texts are read in part, and no pattern backtracks over a text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.core.patterns import LazyPattern
from bot.language import translation
from bot.language.fact_terms import RELATIONS, fact_words
from bot.language.forget_requests import topic_to_forget
from bot.language.grammatical_person import (
    USER,
    as_sentence,
    expand,
    is_past,
    third_person_verb,
    to_third,
)
from bot.language.independent_clauses import has_verb, independent_clauses, strip_fillers
from bot.language.parsed_facts import append_said_on, parse_fact
from bot.language.sentences import (
    begins_as_question,
    chat_sentences,
    is_code,
    is_question,
    without_code,
)

_MAX_CLAUSE = 300

_STATES_NOTHING = LazyPattern(
    r"(?:i|we) (?:also )?(?:(?:do|did|would|will|can) ?(?:not)? ?)?(?:"
    r"(?:guess|mean|wonder|see|understand|agree|doubt|hear|asked|ask|said|told you|suppose|bet|disagree)\b"
    r"|(?:like|love|hate) (?:it|that|this|you|your)\b"
    r"|(?:want|need|would like|expect|wish) (?:you|to (?:know|ask|see|hear))\b"
    r"|(?:was|were) (?:all |so )?(?:wrong|mistaken|kidding|joking|lying|confused)\b|made a mistake|misspoke"
    r"|(?:know|think so|thought so|hope so|forgot|cannot remember|remember)\b"
    r"|have (?:a|one|another|some|two) (?:\w+ )?questions?\b|had (?:a|one) question\b|need (?:some |your )?help\b"
    r"|am (?:sorry|fine|good|ok|okay|back|here|done|sure|glad|happy to|ready|well|great|afraid|not sure"
    r"|asking|wondering|curious|kidding|joking|testing|just (?:testing|kidding|asking|curious))\b)"
    r"|(?:my|our) (?:question|bad|god|point|apologies|mistake|last message)\b"
    r"|(?:i|we) (?:can|could|may|will|would|do|did|am|have|should|must)(?: not)?$",
    re.IGNORECASE,
)
_FIRST_PERSON = LazyPattern(r"(?:i|my|we|our)\b", re.IGNORECASE)
_LATER_FIRST_PERSON = LazyPattern(
    r"(?:when|since|because|in|on|at|every|for|as|after|before|during|usually|recently|currently|these days|nowadays|last|next|from|until|sometimes|today|yesterday|tomorrow|tonight|this)\b[^,]{0,80}?,? (?:i|my|we) ",
    re.IGNORECASE,
)
_CALLED = LazyPattern(
    r"(?:please |you can |you may |just )*(?:call me|(?:everyone|people|friends|my friends) calls? me"
    r"|i go by|i prefer to be called|i (?:would )?like to be called) (?P<name>[\w'’ .-]{1,40})",
    re.IGNORECASE,
)
_AM_CALLED = LazyPattern(
    r"i am (?:actually |now )?(?:called|named) (?P<name>.{1,60})", re.IGNORECASE
)
_AM_NAME = LazyPattern(r"i am (?P<name>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,2})")
_NATION = LazyPattern(
    r"(?:\w+(?:ese|ish|ian|ean|can|man)|Dutch|French|Greek|Swiss|Czech|Thai|Welsh|Muslim|Jewish|Hindu|Buddhist"
    r"|Catholic|Protestant|Sikh|Israeli|Iraqi|Pakistani|Bangladeshi|American|Mexican|CEO|CTO|GMT|UTC"
    r"|Not|From|In|At|On|So|Very|Also|The|Sorry|Happy|Sick|Tired|Vegan|Single|Married|Gay|OK|Fine|Virgo"
    r"|Leo|Aries|Taurus|Gemini|Cancer|Libra|Scorpio|Capricorn|Aquarius|Pisces)"
)
_FORENAMES = frozenset(
    "ian brian adrian julian damian fabian sebastian florian vivian jean sean dean duncan herman norman".split()
)
_AGE = LazyPattern(r"(i am )(\d{1,3})(?: now)?", re.IGNORECASE)
_STANDING_ORDER = LazyPattern(r"(?:please )?(?P<what>(?:always|never) .+)", re.IGNORECASE)
_ABOUT_THING = LazyPattern(
    r"(?:(?:[Tt]he|[Oo]ur|[Tt]his year's) (?:[\w'’-]+ ){1,8}?|(?:[A-Z][\w'’-]+ ){1,3}(?:[\w-]+ ){0,3}?)"
    r"(?:is|are|was|were|has|lives|works|likes|loves|hates|moved|costs|starts|opens|closes|prefers)\s+\S"
)
_NOT_ABOUT_THING = LazyPattern(
    r"(?:it|that|this|there|you|he|she|they|what|which|these|those|who|here|let|please|thanks|how|why"
    r"|where|when|is|are|do|does|can|could|would|if|sounds|good|nice|great|in|on|at|all|everything"
    r"|nothing|something|forget|delete|erase|remove|drop|tell|show|give|write|make|translate"
    r"|explain|ignore|call|send|ask|answer|use|read|find|search|remind|remember|maybe|the (?:answer|problem|question|thing|point|weather|sun|sky|world|earth)|your)\b",
    re.IGNORECASE,
)
_DAY_CUE = LazyPattern(
    r"\b(?:today|this (?:morning|afternoon|evening)|tonight|last night|yesterday|just now|right now"
    r"|at the moment|for (?:lunch|dinner|breakfast|supper))\b",
    re.IGNORECASE,
)
_MOOD = LazyPattern(
    r"(?:feel|feels|is feeling|is|is (?:so|very|really|a bit|quite|too))(?: (?:so|very|really|a bit|quite|too))? "
    r"(?:tired|hungry|bored|sad|thirsty|sleepy|stressed|exhausted|busy|sick|ill|excited|cold|hot|angry)\b"
)
_RELATIVE = LazyPattern(
    r"\b(?:today|tomorrow|tonight|yesterday|(?:next|this|last) (?:week|weekend|month|year|summer|winter"
    r"|spring|autumn|fall|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|in (?:\w+) (?:days|weeks|months))\b",
    re.IGNORECASE,
)
_PRONOUN = LazyPattern(r"(he|she|it|they) (?=[a-z])", re.IGNORECASE)
_ALSO = LazyPattern(r"\b(i|we) (?:also|actually) ", re.IGNORECASE)
_CLOSING = LazyPattern(
    r",? (?:please|thanks|thank you|by the way|btw|too|you know|ok|okay|lol|haha)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class StatedFact:
    """One fact that a person stated.

    Attributes:
        line: The fact in the third person.
        words: The sentence that it was taken from.
        daily: The fact belongs in the daily notes.
        before: The sentence before it, if the subject is only named there.
    """

    line: str
    words: str
    daily: bool = False
    before: str = ""


def _fact_in_clause(clause: str, who: str) -> str:
    """Return the fact in one clause without fillers and contractions; empty if it states none."""
    if len(clause.split()) < 2 or len(clause) > _MAX_CLAUSE or _STATES_NOTHING.match(clause):
        return ""
    called = _CALLED.fullmatch(clause)
    if called:
        return f"{who} wants to be called {called['name'].strip(' .')}."
    named = _AM_CALLED.fullmatch(clause)
    if named:
        return f"{who}'s name is {named['name']}."
    age = _AGE.fullmatch(clause)
    if age:
        return f"{who} is {age[2]} years old."
    named = re.match(r"i am ", clause, re.IGNORECASE) and _AM_NAME.fullmatch("i" + clause[1:])
    if named and _is_name(named["name"]):
        return f"{who}'s name is {named['name']}."
    if _FIRST_PERSON.match(clause) and len(clause.split()) > 2:
        return to_third(clause, who) if _has_own_verb(clause) else ""
    if _LATER_FIRST_PERSON.match(clause) and len(clause.split()) > 4:
        return to_third(clause, who)
    standing = _STANDING_ORDER.fullmatch(clause)
    if standing and len(clause.split()) > 2:
        return f"{who} asks: {as_sentence(standing['what'])}"
    if _ABOUT_THING.match(clause) and not _NOT_ABOUT_THING.match(clause):
        return as_sentence(clause)
    return ""


def _has_own_verb(clause: str) -> bool:
    return clause[:1].lower() in ("i", "w") or has_verb(clause)


def _is_name(name: str) -> bool:
    first = name.partition(" ")[0]
    return first.casefold() in _FORENAMES or not _NATION.fullmatch(first)


def _with_subject_of_previous(clause: str, previous_line: str) -> str:
    """Return the clause with its pronoun replaced by the relative that the fact before is about."""
    pronoun = _PRONOUN.match(clause)
    previous = parse_fact(previous_line) if previous_line else None
    if pronoun is None or previous is None or not previous.subject:
        return ""
    relation = re.match(
        r"(.+?'s (?:\w+ ){0,2}?(?:" + "|".join(RELATIONS) + r"))\b", previous_line, re.IGNORECASE
    )
    if relation is None:
        return ""
    rest = clause[pronoun.end() :]
    if pronoun[1].lower() == "they":
        verb, _, tail = rest.partition(" ")
        rest = f"{third_person_verb(verb)} {tail}"
    return as_sentence(f"{relation[1]} {rest}")


def _is_daily(line: str) -> bool:
    fact = parse_fact(line)
    if fact.subject or re.search(r"\b(?:tomorrow|born|will|appointment|meeting)\b", line):
        return False
    if _MOOD.search(line) and re.match(r"\S+ (?:\S+ )?(?:feel|is )", line):
        return True
    past = any(is_past(word) for word in fact_words(line)[:5]) or " is " in line
    return bool(_DAY_CUE.search(line)) and past


def extract_facts(
    text: str, who: str = USER, date: str = "", name: str = ""
) -> tuple[StatedFact, ...]:
    """Return the facts that a person states in a text, in order, each once.

    Args:
        text: The person's own words, without quotations.
        who: The name that facts use for the person; "The user" in a private chat.
        date: ISO day of the message, added to facts with "tomorrow" and the like.
        name: The person's name, for statements that are only quoted.
    """
    facts: list[StatedFact] = []
    for sentence in chat_sentences(without_code(text)):
        if (
            is_code(sentence)
            or is_question(sentence)
            or begins_as_question(strip_fillers(sentence))
        ):
            continue
        lines: dict[str, str] = {}
        for clause in independent_clauses(sentence) if len(sentence) <= 1200 else []:
            plain = strip_fillers(expand(strip_fillers(clause)))
            plain = _ALSO.sub(r"\1 ", _CLOSING.sub("", plain))
            line = translation.translate_statement(strip_fillers(clause), who) or _fact_in_clause(
                plain, who
            )
            before = "" if line or not facts else facts[-1].words
            line = line or (_with_subject_of_previous(plain, facts[-1].line) if facts else "")
            if line:
                lines[append_said_on(line, date) if _RELATIVE.search(line) else line] = before
        if not lines and _is_worth_quoting(sentence):
            quotation = sentence.replace("\n", " ").replace('"', "”")
            lines = {f'{name or who} said: "{quotation}"': ""}
        facts.extend(
            StatedFact(line, sentence, _is_daily(line), previous)
            for line, previous in lines.items()
        )
    return tuple({fact.line: fact for fact in facts}.values())


def _is_worth_quoting(spoken: str) -> bool:
    plain = strip_fillers(spoken)
    return (
        4 <= len(plain) <= _MAX_CLAUSE
        and translation.is_foreign_first_person(plain)
        and not translation.translate_question(plain)
        and not topic_to_forget(plain)
    )
