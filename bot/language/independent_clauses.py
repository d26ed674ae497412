"""Split a sentence into independent clauses, from which facts are extracted. Pure.

Each is a whole statement of its own. ``clauses`` splits finer and classifies the parts, to compare
a claim with its evidence.

Rule 1: a clause is split off only if both sides have a verb of their own.
Rule 2: phrases that only open or close a sentence ("by the way") are dropped.
"""

from __future__ import annotations

import re

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import fact_words
from bot.language.grammatical_person import VERBS, is_past

_LONGEST = 2_000
_FILLER = LazyPattern(
    r"(?:(?:hi|hello|hey|hallo|hola|bonjour|salut)(?: there| tapebot| all| again)?"
    r"|well|so|also|oh|ah|and|but|ok|okay|yes|yeah|no|nope|actually|btw|by the way|fyi|anyway"
    r"|for the record|just so you know|please note(?: that)?|note(?: that)?|you should know(?: that)?"
    r"|i (?:want|wanted) (?:you to know|to tell you|to say|to mention)(?: that)?"
    r"|i should (?:mention|say)(?: that)?|i forgot to (?:say|mention|tell you)(?: that)?"
    r"|(?:please )?(?:remember|keep in mind|don't forget|do not forget)(?: that)?"
    r"|(?:no,? )?(?:that(?: is|['’]?s)|this is|you(?: are|['’]?re)) (?:wrong|incorrect|false|mistaken|not (?:true|right|correct))"
    r"|i (?:was|am) (?:wrong|mistaken)|did i (?:say|mention) that|as you know|sorry|correction|in fact|thanks|thank you)"
    r"(?:\s*[,:!.–—-]+\s*|\s+)",
    re.IGNORECASE,
)
_JOIN = LazyPattern(
    r"(?<!\s)(?:\s*+,)?\s++(?:and|but|so|though|aber|und|et|mais|y|pero)\s++(?=(?:also )?(?:i|my|we|our|ich|mein\w*|je|j['’]\S+|mon|ma|mi|me|yo|vivo|tengo)\b)"
    r"|(?<!\s)\s*+,\s++(?=(?:i|my|we|our|i['’]m|ich|meine?|je|mon|ma|mi|yo)\b)",
    re.IGNORECASE,
)
_SUBORDINATE = LazyPattern(
    r"(?:when|if|because|since|while|although|as|before|after|every|in|on|at|for|until|until|once"
    r"|during|last|next|wenn|weil|als|quand|si|cuando)\b",
    re.IGNORECASE,
)
_ENDED = LazyPattern(
    r"(?:i|we) (?:have |['’]ve )?(?:since |then |now )?(?:quit|stopped|gave (?:it|that) up)\b(?! \w+ing)",
    re.IGNORECASE,
)
_SHARED_SUBJECT = LazyPattern(
    r"(?<!\s)\s++(?:and|but)\s++(?=(?:(?:also|really|sometimes|usually)\s+)?([a-z]+)\b)"
)
_NAMED_AND = LazyPattern(
    r"(?P<name>(?:i am|i['’]m|I am|I['’]m) [A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?), (?P<what>an? .+)"
)
_GERMAN_SHARED_SUBJECT = LazyPattern(
    r"(?P<left>ich \S+ [^,]{1,150}?) und (?P<right>(?:arbeite|wohne|lebe|mag|liebe|habe|bin|heiße|spreche|esse|trinke) .+)",
    re.IGNORECASE,
)
_FINITE_VERBS = frozenset(
    """
    am is are was were have has had will can do does did
    heisse ist wohne mag habe bin liebe m'appelle est suis llamo es vivo tengo gusta
    """.split()
)


def strip_fillers(clause: str) -> str:
    """Return a clause without bullets, fillers and final punctuation."""
    clause = clause.strip(" \t,;:-–—*•")
    for _ in range(4):
        filler = _FILLER.match(clause)
        if filler is None or filler.end() >= len(clause):
            break
        clause = clause[filler.end() :]
    return clause.rstrip(" .!。！;,")


def has_verb(text: str) -> bool:
    """Return whether a text seems to hold a finite verb."""
    return any(
        word in _FINITE_VERBS
        or word in VERBS
        or is_past(word)
        or word.endswith("'m")
        or (word.endswith("s") and word[:-1] in VERBS)
        or word.startswith(("j'", "i'"))
        for word in fact_words(text)
    )


def independent_clauses(text: str) -> list[str]:
    """Return the independent clauses of a sentence; one above 2,000 characters stays whole."""
    if len(text) > _LONGEST:
        return [text]
    parts: list[str] = []
    start = 0
    for joint in _JOIN.finditer(text):
        left, right = text[start : joint.start()], text[joint.end() :]
        comma = joint.group().strip() == ","
        if comma and _SUBORDINATE.match(strip_fillers(left) or "x"):
            continue
        if has_verb(left) and has_verb(right) and not _ENDED.match(right):
            parts.append(left)
            start = joint.end()
    parts.append(text[start:])
    return [piece for part in parts for piece in _split_shared_subject(part)]


def _split_shared_subject(clause: str) -> list[str]:
    """Split "I like tea and hate coffee", whose verbs share a subject, into two clauses."""
    plain = strip_fillers(clause)
    named = _NAMED_AND.fullmatch(plain)
    if named:
        return [named["name"], f"I am {named['what']}"]
    german = _GERMAN_SHARED_SUBJECT.fullmatch(plain)
    if german:
        return [german["left"], f"ich {german['right']}"]
    subject = re.match(r"(?:i|we)\b", plain, re.IGNORECASE)
    second_verb = _SHARED_SUBJECT.search(plain)
    if subject is None or second_verb is None or second_verb[1] not in VERBS:
        return [clause]
    left, right = plain[: second_verb.start()], plain[second_verb.end() :]
    if len(left.split()) < 3 or " to " in f" {left} " or len(right.split()) < 2 or " when " in left:
        return [clause]
    return [left, f"{subject.group()} {right}"]
