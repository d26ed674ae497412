"""Convert English sentences between first, third and second person.

"I like my dog" becomes "The user likes the user's dog", and that becomes "You like your dog".

Rule 1: each "I" becomes "the user", never "they", so that the way back is unambiguous.
Rule 2: a verb changes only if its subject is certain; a past tense or a modal never changes.
Rule 3: anything else stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.core.patterns import LazyPattern

USER = "The user"

_CONTRACTIONS = (
    (LazyPattern(r"\b(i)'m\b", re.IGNORECASE), r"\1 am"),
    (LazyPattern(r"\b(we|they|you)'re\b", re.IGNORECASE), r"\1 are"),
    (LazyPattern(r"\b(i|we|they|you)'ve\b", re.IGNORECASE), r"\1 have"),
    (LazyPattern(r"\b(i|we|they|you|he|she|it)'ll\b", re.IGNORECASE), r"\1 will"),
    (LazyPattern(r"\b(i|we)'d\b(?= (?:\w+ )?(?:like|love|prefer|rather|be|hate|go)\b)", re.IGNORECASE), r"\1 would"),
    (LazyPattern(r"\b(it|that|he|she|there|what|who|where|when|name)'s\b", re.IGNORECASE), r"\1 is"),
    (LazyPattern(r"\b(what|who|where|when|how)s\b(?= )", re.IGNORECASE), r"\1 is"),
    (LazyPattern(r"\b(what|who|where|when|how)'d\b", re.IGNORECASE), r"\1 did"),
    (LazyPattern(r"\bcan(?:'t|not)\b", re.IGNORECASE), "cannot"),
    (LazyPattern(r"\bwon't\b", re.IGNORECASE), "will not"),
    (LazyPattern(r"\b(do|does|did|is|are|was|were|have|has|had|could|would|should)n't\b", re.IGNORECASE), r"\1 not"),
    (LazyPattern(r"\bdont\b", re.IGNORECASE), "do not"),
    (LazyPattern(r"\bim\b", re.IGNORECASE), "I am"),
)  # fmt: skip

_UNMARKED = LazyPattern(r"\b(?:dont|im|whats|whos|wheres|whens|hows)\b", re.IGNORECASE)
MODALS = frozenset("can cannot could will would shall should may might must".split())
_PAST = frozenset(
    """
    was were had did went got made met saw took came gave left lost found kept said told thought
    knew grew wrote spoke sold taught felt began broke chose drove drank ate fell flew forgot held
    ran sang sat slept spent stood swam won wore built caught led sent quit bought brought became
    understood paid heard hurt used rode rose shot stuck woke
    """.split()
)
_NOT_PAST = frozenset("need feed speed breed bleed succeed proceed".split())
_ADVERBS = frozenset(
    """
    really also just still always usually often sometimes never no longer only even actually now
    mostly rarely seldom kind sort of both all currently not ever already once recently
    absolutely have't soon almost
    """.split()
)
VERBS = frozenset(
    """
    like love hate prefer enjoy dislike live work have drive drink eat play speak own study want
    need use go run read write cook bake collect teach learn swim hike smoke wear travel plan think
    believe sleep come grow keep know take make visit see meet call watch listen sing dance paint
    draw sell buy belong support follow train practise practice hope wish miss admire adore avoid
    suffer get feel volunteer code program fly ride ski surf climb sail garden fish dream remember
    move start finish stay rent share care spend commute leave arrive return attend celebrate
    """.split()
)
_IE = frozenset(("dies", "lies", "ties"))


def expand(text: str) -> str:
    """Return the text with English contractions of pronouns and auxiliaries written out."""
    text = text.replace("’", "'")
    if "'" not in text and not _UNMARKED.search(text):
        return text
    for pattern, written in _CONTRACTIONS:
        text = pattern.sub(written, text)
    return text


def is_past(verb: str) -> bool:
    """Return whether a verb looks like a past tense."""
    return verb in _PAST or (verb.endswith("ed") and len(verb) > 3 and verb not in _NOT_PAST)


def third_person_verb(verb: str) -> str:
    """Return the third person singular of a verb in the first person."""
    irregular = {"am": "is", "are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
    if verb in irregular:
        return irregular[verb]
    if verb in MODALS or is_past(verb) or verb.endswith("'d") or not verb.isalpha():
        return verb
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


def base_verb(verb: str) -> str:
    """Return the second person of a verb in the third person singular."""
    irregular = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}
    if verb in irregular:
        return irregular[verb]
    if verb in MODALS or not verb.endswith("s") or verb.endswith("ss") or len(verb) < 4:
        return verb
    if verb.endswith("ies") and verb not in _IE:
        return verb[:-3] + "y"
    if verb.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return verb[:-2]
    return verb[:-1]


def verb_at(tokens: list[str], start: int) -> int | None:
    """Return the index of the verb after a subject that ends before ``start``, past any adverbs."""
    for at in range(start, min(start + 4, len(tokens))):
        word = tokens[at].lower().strip(",.;!")
        if word in _ADVERBS or (word.endswith("ly") and word not in ("fly", "rely", "reply")):
            continue
        return at if word.replace("'", "").isalpha() else None
    return None


def _conjugate(tokens: list[str], start: int) -> None:
    at = verb_at(tokens, start)
    if at is None:
        return
    tokens[at] = _keep_tail(tokens[at], third_person_verb)
    after = at + 1
    if after + 1 < len(tokens) and tokens[after] in ("and", "or") and tokens[after + 1] in VERBS:
        tokens[after + 1] = third_person_verb(tokens[after + 1])


def _split_tail(token: str) -> tuple[str, str]:
    core = token.rstrip('.,;:!?)"”')
    return core, token[len(core) :]


def _keep_tail(token: str, change: Callable[[str], str]) -> str:
    core, tail = _split_tail(token)
    return change(core.lower()) + tail


def to_third(clause: str, who: str = USER) -> str:
    """Return a first person clause as a sentence in the third person.

    Args:
        clause: One clause, with contractions written out.
        who: Replacement for "I": "The user" or a name.
    """
    tokens = clause.split()
    inner = who[0].lower() + who[1:] if who == USER else who
    plain = {
        "me": inner,
        "us": inner,
        "my": f"{inner}'s",
        "our": f"{inner}'s",
        "mine": f"{inner}'s",
    }
    plain |= {"myself": "themselves", "ourselves": "themselves"}
    for at, token in enumerate(tokens):
        core, tail = _split_tail(token)
        low = core.lower()
        if low in ("i", "we"):
            tokens[at] = inner + tail
            joined = at > 1 and tokens[at - 1] == "and" and low == "i"
            if not tail and not joined:
                _conjugate(tokens, at + 1)
        elif low in plain and core != "US":
            tokens[at] = plain[low] + tail
    return as_sentence(" ".join(tokens))


def as_sentence(text: str) -> str:
    """Return the text with a capital first letter and a full stop."""
    text = text.strip().rstrip(" ,;:")
    if not text:
        return ""
    text = text[0].upper() + text[1:]
    return text if text[-1] in '.!?。！？؟…"”' else f"{text}."
