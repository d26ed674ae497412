"""Split a text into sentences and independent clauses, and recognise questions and code.

Rule 1: a clause is split off only if both sides have a verb of their own.
Rule 2: phrases that only open or close a sentence ("by the way") are dropped.
Rule 3: code is recognised, so that it is not read as a statement.
Rule 4: the work is bounded: at most sixty sentences of a text are read.
"""

from __future__ import annotations

import re

from bot.language.person import VERBS, is_past
from bot.language.terms import words

_MAX_SENTENCES = 60
_LONGEST = 2_000
_LONGEST_ENDING = 40
_ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？؟])|\n+")
_ABBREVIATION = re.compile(r"\b(?:St|Dr|Mr|Mrs|Ms|Prof|No|vs|e\.g|i\.e|approx|Mt|Jr|Sr|[A-Z])\.$")
_ALWAYS_ON = re.compile(r"\b(?:esp|approx|ca|incl|dept|e\.g|i\.e)\.$", re.IGNORECASE)
_MAY_END = re.compile(r"\b(?:etc|max|min|apt)\.$", re.IGNORECASE)
_ORDINAL = re.compile(r"\b\d{1,2}\.$")
_MONTH = re.compile(
    r"(?:jan|feb|m(?:är|ar|ai)|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])", re.IGNORECASE
)
_FILLER = re.compile(
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
_JOIN = re.compile(
    r"(?<!\s)(?:\s*+,)?\s++(?:and|but|so|though|aber|und|et|mais|y|pero)\s++(?=(?:also )?(?:i|my|we|our|ich|mein\w*|je|j['’]\S+|mon|ma|mi|me|yo|vivo|tengo)\b)"
    r"|(?<!\s)\s*+,\s++(?=(?:i|my|we|our|i['’]m|ich|meine?|je|mon|ma|mi|yo)\b)",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"(?:when|if|because|since|while|although|as|before|after|every|in|on|at|for|until|until|once"
    r"|during|last|next|wenn|weil|als|quand|si|cuando)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"(?:i|we) (?:have |['’]ve )?(?:since |then |now )?(?:quit|stopped|gave (?:it|that) up)\b(?! \w+ing)",
    re.IGNORECASE,
)
_CARRY = re.compile(
    r"(?<!\s)\s++(?:and|but)\s++(?=(?:(?:also|really|sometimes|usually)\s+)?([a-z]+)\b)"
)
_NAMED_AND = re.compile(
    r"(?P<name>(?:i am|i['’]m|I am|I['’]m) [A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?), (?P<what>an? .+)"
)
_GERMAN_CARRY = re.compile(
    r"(?P<left>ich \S+ [^,]{1,150}?) und (?P<right>(?:arbeite|wohne|lebe|mag|liebe|habe|bin|heiße|spreche|esse|trinke) .+)",
    re.IGNORECASE,
)
_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_CODE = re.compile(
    r"__\w+__|[=!]==?\s|=>|&&|\|\||\+=|</?\w+>|^\s*[{}]"
    r"|\w\((?:\)|[^()]{0,200}[\"'=,][^()]{0,200}\))"
    r"|^\s*(?:def|class|elif|function|public|private|static|const|let|var|import|return|#include)\b[^.]*[(:;={]"
    r"|^\s*(?:if|for|while|else|try|except|with)\b[^.,]*[:{]$"
)
_ASSIGNS = re.compile(r"[\w)\"']\s*=")
_QUESTION_END = re.compile(r"[?？؟]\s*[)\"'”]*$")
_ASKS = re.compile(
    r"(?:what|who|whom|whose|which|how)(?: \w+){0,3} (?:is|are|was|were|am|do|does|did|have|has|can|will)\b"
    r"|(?:what|who|where|when|which|how|why) (?:is|are|was|were|am|do|does|did|have|has|can|will|should)\b"
    r"|(?:what|who|where|when|how)'?s (?:my|our|the|wrong)\b"
    r"|(?:do|did|am|have|can|was|were|should|will) (?:i|we)\b|(?:is|are|was|were|does|did|has|will|can) (?:my|our|the)\b"
    r"|(?:wie|wo|wer|wann|was|welche\w*) (?:ist|bin|hei\w+|wohne|lebe|mag|alt|habe|sind|arbeite)\b"
    r"|(?:qué|cuál|cuándo|dónde|quién|cómo|cuántos) |(?:quel|quelle|où|quand|comment|combien) |qu'est-ce ",
    re.IGNORECASE,
)


def first_sentences(text: str) -> list[str]:
    """Return the sentences of a text, at most the first sixty."""
    found: list[list[str]] = []
    for part in _ENDS.split(text[:100_000]):
        piece = part.strip()
        if not piece:
            continue
        if found and _goes_on(found[-1], piece):
            found[-1].append(piece)
        elif len(found) == _MAX_SENTENCES:
            break
        else:
            found.append([piece])
    return [" ".join(pieces) for pieces in found]


def _goes_on(pieces: list[str], piece: str) -> bool:
    """Return whether the full stop between two pieces ends an abbreviation, not a sentence."""
    before = " ".join(pieces[-2:])[-_LONGEST_ENDING:]
    if _ABBREVIATION.search(before) or _ALWAYS_ON.search(before):
        return True
    if _MAY_END.search(before):
        return piece[:1].islower() or piece[:1].isdigit()
    return bool(_ORDINAL.search(before) and _MONTH.match(piece))


def without_code(text: str) -> str:
    """Return a text without its fenced blocks of code."""
    return _FENCED.sub("\n", text) if "```" in text else text


def is_code(text: str) -> bool:
    """Return whether a sentence looks like a line of code."""
    if len(text) > _LONGEST:
        return False
    if _CODE.search(text):
        return True
    line = text.removesuffix("\n")
    return line.endswith(";") and bool(_ASSIGNS.search(line[:-1].rpartition(";")[2]))


def is_question(text: str) -> bool:
    """Return whether a sentence ends in a question mark of any script."""
    return bool(_QUESTION_END.search(text))


def begins_as_question(text: str) -> bool:
    """Return whether a sentence begins like a question, with or without a question mark."""
    return bool(_ASKS.match(text.lstrip("¿ ")))


def strip(clause: str) -> str:
    """Return a clause without bullets, fillers and final punctuation."""
    clause = clause.strip(" \t,;:-–—*•")
    for _ in range(4):
        found = _FILLER.match(clause)
        if found is None or found.end() >= len(clause):
            break
        clause = clause[found.end() :]
    return clause.rstrip(" .!。！;,")


def has_verb(text: str) -> bool:
    """Return whether a text seems to hold a finite verb."""
    finite = {
        "am",
        "is",
        "are",
        "was",
        "were",
        "have",
        "has",
        "had",
        "will",
        "can",
        "do",
        "does",
        "did",
    }
    foreign_finite = {
        "heisse",
        "ist",
        "wohne",
        "mag",
        "habe",
        "bin",
        "liebe",
        "m'appelle",
        "est",
        "suis",
        "llamo",
        "es",
        "vivo",
        "tengo",
        "gusta",
    }
    return any(
        word in finite
        or word in foreign_finite
        or word in VERBS
        or is_past(word)
        or word.endswith("'m")
        or (word.endswith("s") and word[:-1] in VERBS)
        or word.startswith(("j'", "i'"))
        for word in words(text)
    )


def split_clauses(text: str) -> list[str]:
    """Return the independent clauses of a sentence; one above 2,000 characters stays whole."""
    if len(text) > _LONGEST:
        return [text]
    parts: list[str] = []
    start = 0
    for found in _JOIN.finditer(text):
        left, right = text[start : found.start()], text[found.end() :]
        comma = found.group().strip() == ","
        if comma and _SUBORDINATE.match(strip(left) or "x"):
            continue
        if has_verb(left) and has_verb(right) and not _ENDED.match(right):
            parts.append(left)
            start = found.end()
    parts.append(text[start:])
    return [piece for part in parts for piece in _carried(part)]


def _carried(clause: str) -> list[str]:
    """Split "I like tea and hate coffee", whose verbs share a subject, into two clauses."""
    plain = strip(clause)
    named = _NAMED_AND.fullmatch(plain)
    if named:
        return [named["name"], f"I am {named['what']}"]
    german = _GERMAN_CARRY.fullmatch(plain)
    if german:
        return [german["left"], f"ich {german['right']}"]
    subject = re.match(r"(?:i|we)\b", plain, re.IGNORECASE)
    found = _CARRY.search(plain)
    if subject is None or found is None or found[1] not in VERBS:
        return [clause]
    left, right = plain[: found.start()], plain[found.end() :]
    if len(left.split()) < 3 or " to " in f" {left} " or len(right.split()) < 2 or " when " in left:
        return [clause]
    return [left, f"{subject.group()} {right}"]
