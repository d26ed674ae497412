"""Split text into words and reduce them to terms, by which questions and facts are compared.

Rule 1: a term is the stem of a content word; synonyms share a term.
Rule 2: scripts without spaces are compared by pairs of characters.
Rule 3: every function accepts any text and takes time linear in its length.
"""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
_ASKING = re.compile(
    "什么|甚麼|什麼|哪里|哪裡|哪儿|谁|誰|多少|怎么|为什么|何|どこ|いつ|です|ます|[吗呢吧的了はがをのか]"
)

STOP_WORDS = frozenset(
    """
    a an the and or but if so of to in on at by for from with as about into over than then there
    i me my mine myself we us our ours you your yours he him his she her hers it its they them their
    this that these those who whom whose which what when where why how am is are was were be been
    being do does did done have has had having can could will would shall should may might must not
    no yes any some ever never again also just really very much many too please ok okay oh well
    tell told say said know remember mention mentioned kind sort type again still now currently before previously formerly
    each per every until till user s t d ll ve re m actually usually always often sometimes already more most anymore longer stopped quit
    ich mein meine meinen meiner bin ist wie wo was wann wer und der die das ein eine du mir mich
    je mon ma mes j suis est que qui quel quelle où quand comment et le la les un une des du de à ai
    yo mi mis soy es qué que cuál cuándo dónde quién cómo y el los las un una me en al
    """.split()
)

_IRREGULAR = {
    "went": "go", "gone": "go", "goes": "go", "bought": "buy", "met": "meet", "ate": "eat",
    "eaten": "eat", "drank": "drink", "saw": "see", "seen": "see", "took": "take", "drove": "drive",
    "wrote": "write", "spoke": "speak", "taught": "teach", "grew": "grow", "children": "child",
    "kids": "child", "kid": "child", "wives": "wife", "left": "leave", "got": "get", "made": "make",
    "came": "come", "kept": "keep", "felt": "feel", "ran": "run", "sold": "sell", "lost": "lose",
    "broke": "break", "began": "begin", "chose": "choose", "won": "win", "built": "build",
    "going": "go", "doing": "do", "gave": "give", "given": "give", "burnt": "burn", "learnt": "learn",
    "taken": "take", "flew": "fly", "flown": "fly", "fell": "fall", "forgot": "forget", "rode": "ride",
    "sent": "send", "spent": "spend", "stood": "stand", "slept": "sleep", "swam": "swim", "threw": "throw",
    "wore": "wear", "thought": "think", "brought": "bring", "caught": "catch", "held": "hold",
    "heard": "hear", "knew": "know", "known": "know", "led": "lead", "lent": "lend", "paid": "pay",
    "rang": "ring", "sang": "sing", "shot": "shoot", "stole": "steal", "stolen": "steal", "woke": "wake",
    "written": "write", "driven": "drive", "broken": "break", "chosen": "choose", "grown": "grow",
    "hid": "hide", "hidden": "hide", "spoken": "speak", "worn": "wear", "planned": "plan",
}  # fmt: skip

_SAME = (
    "live lives reside relocate move home",
    "job work profession occupation career employer employ",
    "birthday born birth",
    "age old",
    "name named called surname nickname",
    "like love enjoy adore fond",
    "hate dislike detest loathe",
    "favourite favorite fav fave",
    "colour color",
    "allergic allergy allergies",
    "mother mum mom",
    "father dad",
    "phone telephone mobile",
    "email mail",
    "film movie",
    "vacation holiday",
    "marry married",
    "study studies studied",
    "appointment appt",
    "fly flight plane",
)

HYPONYMS = {
    "pet": "dog cat hamster rabbit parrot bird fish horse turtle",
    "animal": "dog cat hamster rabbit parrot bird fish horse turtle",
    "child": "son daughter",
    "sibling": "brother sister",
    "parent": "mother father",
    "partner": "wife husband girlfriend boyfriend spouse",
    "spouse": "wife husband",
    "family": "wife husband son daughter brother sister mother father child",
    "diet": "vegetarian vegan eat",
    "age": "birthday",
    "vehicle": "car bike motorcycle",
    "car": "park",
}

KIN = frozenset(
    """
    sister brother mother father mum mom dad wife husband son daughter partner girlfriend boyfriend
    friend colleague boss neighbour neighbor aunt uncle cousin grandmother grandfather grandma
    grandpa niece nephew fiancé fiancée fiance fiancee dog cat doctor dentist teacher roommate
    flatmate child kid kids baby parrot hamster rabbit horse landlord manager twin stepmother
    stepfather spouse grandson granddaughter
    """.split()
)


def words(text: str) -> list[str]:
    """Return the words of a text in order, case folded, without possessive endings."""
    found = (match.group().casefold().replace("’", "'") for match in _WORD.finditer(text))
    return [word.removesuffix("'s") for word in found]


def _base(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending) and word != "need":
            word = word[: -len(ending)]
            if len(word) > 2 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_CANON = {_base(word): _base(line.split()[0]) for line in _SAME for word in line.split()}


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return the term of one word."""
    base = _base(word)
    return _CANON.get(base, base)


HYPONYMS_BY_STEM = {
    stem(kind): frozenset(stem(word) for word in members.split())
    for kind, members in HYPONYMS.items()
}
KIN_TERMS = frozenset(stem(word) for word in KIN)


def _pairs(run: str) -> list[str]:
    run = _ASKING.sub(" ", run)
    found: list[str] = []
    for part in run.split():
        found.extend(part[at : at + 2] for at in range(len(part) - 1))
        if len(part) == 1:
            found.append(part)
    return found


def terms(text: str) -> tuple[str, ...]:
    """Return the terms of the content words in order, each once."""
    found: dict[str, None] = {}
    for word in words(text):
        if _UNSPACED.search(word):
            found.update(dict.fromkeys(_pairs(word)))
        elif word not in STOP_WORDS:
            found[stem(word)] = None
    return tuple(found)


@lru_cache(maxsize=2048)
def _short_key(text: str) -> str:
    return " ".join(words(text))


def comparison_key(text: str) -> str:
    """Return a text's words joined by spaces, so that case and punctuation make no difference."""
    return _short_key(text) if len(text) <= 600 else " ".join(words(text))
