"""Parse a fact into owner, attribute, verb and value, and tell whether two facts conflict.

Rule 1: a fact has one subject; its verb is the first one that can follow that subject.
Rule 2: two facts conflict if both cannot be the current value of one attribute.
Rule 3: a fact that cannot be parsed conflicts only with its own copy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import (
    RELATION_TERMS,
    RELATIONS,
    comparison_key,
    fact_term,
    fact_terms,
    fact_words,
)
from bot.language.grammatical_person import (
    MODALS,
    USER,
    VERBS,
    base_verb,
    expand,
    is_past,
    third_person_verb,
    to_third,
    verb_at,
)

_BULLET = LazyPattern(r"^\s*(?:[-*+•]|\d+[.)])\s+")
SAID_ON = LazyPattern(r"(?:(?<!\s)\s++)?\(said on \d{4}-\d\d-\d\d\)")
_SAYING = LazyPattern(r'^(?P<who>.{1,80}?) said: "(?P<words>.*)"$', re.DOTALL)
_FINITE = (
    frozenset(third_person_verb(verb) for verb in VERBS)
    | MODALS
    | frozenset("is are was were has have does do did had".split())
)
_ARTICLES = frozenset(("the", "a", "an"))
_BEFORE_DATE = _ARTICLES | frozenset("on at in from by until till for to of now actually".split())
_PLACE = LazyPattern(r"(?:in|to|at|near|outside|on) ", re.IGNORECASE)
_AGE = LazyPattern(r"(?:now |already )?\d{1,3}(?: years? old)?$")
_TURNED = LazyPattern(r"\b(?:turn(?:s|ed|ing)?|aged?) \d{1,3}\b", re.IGNORECASE)
_NAMED_RELATION = LazyPattern(r"'s (?:" + "|".join(sorted(RELATIONS)) + r") [A-Z]\w+")
_NEGATION = LazyPattern(
    r"\b(?:not|never|no longer|cannot|stopped|quit|gave up)\b|\banymore\b|\bany more\b"
)
_RETRACTION = LazyPattern(r"\b(?:no longer|stopped|quit|gave up|anymore|any more)\b")
_SAYS_NEW = LazyPattern(
    r"\b(?:now|actually|instead|changed|new|no longer|anymore)\b", re.IGNORECASE
)
_DATED = LazyPattern(
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\btoday\b|\btonight\b"
    r"|\bnext (?:week|month|year)\b",
    re.IGNORECASE,
)
_JOB = LazyPattern(
    r"an? (?:(?!of )\w+ ){0,3}?(?:\w{2,}(?:er|or|ist|ect|ian)|nurse|chef|cook|pilot|student|clerk|judge"
    r"|journalist|scientist|consultant|accountant|artist|freelancer|surgeon|dentist|vet|paramedic)"
    r"(?: (?:at|in|for|with|from|by|and|since|now)(?: .*)?)?$"
)
_NO_JOB = LazyPattern(r"(?:vegetarian|member|lover|beginner|smoker|drinker|sister|brother|father"
                     r"|mother|daughter|number|christian|winner|speaker|sufferer|walker)$")  # fmt: skip
_IRREGULAR_LEMMAS = dict.fromkeys(("is", "are", "was", "were", "been"), "be") | dict.fromkeys(
    ("has", "have", "had"), "have"
)
_FORMERLY = LazyPattern(r"\b(?:lived|worked|used to|wants?|will)\b")
_WORK = {"as": "job", "at": "employer", "for": "employer"}
_STANDING = frozenset(fact_term(verb) for verb in ("live", "work"))
_MEASURING = frozenset(fact_term(verb) for verb in ("weigh", "earn", "measure"))
_LIKING = frozenset(fact_term(verb) for verb in ("like", "hate"))
_MOVING = frozenset(fact_term(verb) for verb in ("live", "move", "settle"))
ATTRIBUTES = frozenset(
    fact_term(word)
    for word in (
        "name birthday age email phone number address favourite appointment flight job wedding"
        " anniversary boss wife husband spouse partner hometown timezone password size type"
        " deadline interview meeting exam language code goal nickname dream pronouns"
        " dentist doctor landlord landlady manager therapist lawyer accountant supervisor"
    ).split()
)


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """One parsed fact.

    Attributes:
        text: The sentence in the third person, without bullet.
        quotation: The person's own words, if the fact only quotes them.
        owner: Whom the fact is about: ``the user``, a member's name, or empty.
        subject: Terms of the attribute or relation; empty if the owner is the subject.
        verb: Term of the verb; empty if the fact could not be parsed.
        negated: The fact says that something is not true, or no longer.
        retracts: The fact says that something has ended.
        changes: The fact itself says that it is new: "now", "actually".
        rest: The words after the verb.
        slot: The attribute that has one value at a time; empty if there is none.
        key: The words alone, for comparison.
        value: Terms of ``rest``.
    """

    text: str
    quotation: str = ""
    owner: str = ""
    subject: tuple[str, ...] = ()
    verb: str = ""
    negated: bool = False
    retracts: bool = False
    changes: bool = False
    rest: str = ""
    slot: str = ""
    key: str = field(init=False)
    value: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        # Each fact is compared with many others, so these are computed once.
        object.__setattr__(self, "key", comparison_key(self.text))
        object.__setattr__(self, "value", frozenset(fact_terms(self.rest)))

    @property
    def former(self) -> bool:
        """Whether the fact is about a former or a wanted home or work."""
        return self.verb in _STANDING and bool(_FORMERLY.search(self.text))

    @property
    def terms(self) -> frozenset[str]:
        """Terms of the fact, with the attributes that its form implies."""
        all_terms = set(fact_terms(SAID_ON.sub("", self.text)))
        all_terms.discard("user")
        if set(self.subject) & RELATION_TERMS and re.search(r"(?<=\w )[A-Z]\w+", self.text):
            all_terms.add(fact_term("name"))
        if self.slot in ("job", "age", "name"):
            all_terms.add(fact_term(self.slot))
        if _TURNED.search(self.text):
            all_terms.add(fact_term("age"))
        if _NAMED_RELATION.search(self.text):
            all_terms.add(fact_term("name"))
        if re.search(r"\b(?:from|based in)\b", self.rest) or self.slot == "home":
            all_terms |= {"origin", fact_term("live")}
        return frozenset(all_terms)


def strip_bullet(line: str) -> str:
    """Return a line of memory without its bullet or number."""
    return _BULLET.sub("", line).strip()


def _owner(text: str) -> tuple[str, list[str], bool]:
    """Return the owner, the remaining words, and whether an attribute of theirs follows."""
    match = re.match(
        r"(?P<who>the user|\S+(?: \S+)? \([^()\s]+\))(?P<of>'s)? ", text, re.IGNORECASE
    )
    if match is None:
        return "", text.split(), True
    return match["who"].casefold(), text[match.end() :].split(), bool(match["of"])


def _verb_index(tokens: list[str], *, attribute: bool) -> int | None:
    if not attribute:
        return verb_at(tokens, 0)
    for at, token in enumerate(tokens[1:8], start=1):
        low = token.lower()
        if low in _FINITE or is_past(low):
            return at
    return None


@lru_cache(maxsize=4096)
def parse_fact(line: str, who: str = USER) -> ParsedFact:
    """Parse a line of memory; ``who`` replaces the first person. Never fails."""
    text = strip_bullet(line)
    if len(text) > 600:
        return ParsedFact(text)
    saying = _SAYING.match(text)
    if saying:
        return ParsedFact(text, quotation=saying["words"], owner=saying["who"].casefold())
    if re.match(r"(?:i|my|we|our)\b", text, re.IGNORECASE):
        text = to_third(expand(text), who)
    plain = SAID_ON.sub("", expand(text)).rstrip(".!")
    owner, tokens, attribute = _owner(plain)
    at = _verb_index(tokens, attribute=attribute)
    if at is None:
        return ParsedFact(text, owner=owner)
    subject = (
        tuple(
            dict.fromkeys(
                fact_term(w) for w in fact_words(" ".join(tokens[:at])) if w not in _ARTICLES
            )
        )
        if attribute
        else ()
    )
    low = plain.lower()
    verb, rest = _lemma(tokens, at)
    parsed = ParsedFact(
        text,
        owner=owner,
        subject=subject,
        verb=verb,
        negated=bool(_NEGATION.search(low)),
        retracts=bool(_RETRACTION.search(low)),
        changes=bool(_SAYS_NEW.search(low)),
        rest=rest,
    )
    return replace(parsed, slot=_slot(parsed))


def _lemma(tokens: list[str], at: int) -> tuple[str, str]:
    """Return the main verb's term, past auxiliaries and negations, and the words after it."""
    skipped = {"does", "do", "did", "not", "stopped", "quit", "no", "longer", "never"}
    while at < len(tokens) - 1 and tokens[at].lower() in skipped:
        at += 1
    following = tokens[at + 1].lower() if at + 1 < len(tokens) else ""
    if tokens[at].lower() in ("has", "have", "had") and (is_past(following) or following == "been"):
        at += 1
    verb = tokens[at].lower()
    lemma = _IRREGULAR_LEMMAS.get(verb) or fact_term(base_verb(verb))
    return lemma, " ".join(tokens[at + 1 :])


def _slot(line: ParsedFact) -> str:
    """Return the attribute that has one value at a time; empty if there is none."""
    if line.verb == "be":
        return _being_slot(line)
    if line.verb in _MOVING and _PLACE.match(line.rest) and not _FORMERLY.search(line.text):
        return "home"
    if line.verb == fact_term("work") and not _FORMERLY.search(line.text):
        return _WORK.get(line.rest.partition(" ")[0], "")
    if line.verb in _MEASURING and re.search(r"\d", line.rest):
        return f"measure:{line.verb}"
    return "called" if line.rest.startswith("to be called ") else ""


def _being_slot(line: ParsedFact) -> str:
    rest = line.rest.lower()
    if _AGE.match(rest):
        return "age"
    if rest.startswith(("born in", "born on")):
        return rest[:7]
    if not line.negated and _JOB.match(rest) and not _NO_JOB.search(rest):
        return "job"
    if fact_term("name") in line.subject:
        return "name"
    if line.subject and (not set(line.subject) & RELATION_TERMS or line.subject[-1] in ATTRIBUTES):
        return _value_slot(line)
    return ""


def _value_slot(line: ParsedFact) -> str:
    if set(line.subject) & ATTRIBUTES:
        return "value"
    if dated := _DATED.search(line.rest):
        # What is planned or happens on one date says nothing about what does on another.
        happens = [one for one in fact_words(line.rest[: dated.start()]) if one not in _BEFORE_DATE]
        return " ".join(("value:date", *happens))
    # Somebody with a name is many things at once: a mother, a vegetarian, Ada's friend.
    if _is_named(line):
        return ""
    kind = re.match(r"(?:an?|the) [A-Z]", line.rest)
    return "value:kind" if kind else "value:name" if line.rest[:1].isupper() else ""


def _is_named(line: ParsedFact) -> bool:
    """Return whether the subject is a bare name, such as ``Ada Lind``."""
    words = line.text.split()[: len(line.subject)]
    return not line.owner and all(
        one[:1].isupper() and "'" not in one and one.lower() not in _ARTICLES for one in words
    )


def conflicts(new: ParsedFact, old: ParsedFact) -> bool:
    """Return whether an old fact stops being current once the new one is stated."""
    if new.key == old.key:
        return True
    if new.quotation or old.quotation or not new.verb or not old.verb or new.owner != old.owner:
        return False
    if not _same_subject(new.subject, old.subject):
        return False
    new_value, old_value = new.value, old.value
    if new.slot == "job" == old.slot and "be" == new.verb == old.verb and not new.changes:
        # A swimmer, a reader and a nurse may be one person.
        return False
    if new.slot and new.slot == old.slot:
        return not new.negated or bool(new_value & old_value)
    if new.verb in _LIKING and old.verb in _LIKING:
        return bool(new_value) and (
            new_value == old_value or (new.retracts and new_value <= old_value)
        )
    if new.verb != old.verb or not new_value:
        return False
    if new.negated != old.negated:
        return (
            new_value == old_value
            or (new.retracts and new_value <= old_value)
            or _has_again(new, new_value, old_value)
        )
    return new_value == old_value and bool(_DATED.search(new.rest)) == bool(_DATED.search(old.rest))


def _has_again(new: ParsedFact, new_value: frozenset[str], old_value: frozenset[str]) -> bool:
    return new.verb == "have" and (
        new_value <= old_value if new.negated else old_value <= new_value
    )


def _same_subject(new: tuple[str, ...], old: tuple[str, ...]) -> bool:
    if new == old:
        return True
    short, long = sorted((new, old), key=len)
    return (
        bool(short)
        and len(short) == 1
        and short[0] in RELATION_TERMS
        and long[0] == short[0]
        and (len(long) == 2 and fact_term("name") not in long)
    )
