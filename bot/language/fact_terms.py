"""Reduce texts to the terms by which a question finds facts, and facts find each other. Pure.

``claim_terms`` has the narrower terms by which a claim is compared with its evidence. Here "live"
and "home" share a term, so that "Where is my home?" finds "I live in Rome".

Rule 1: a term is the stem of a content word; synonyms share a term.
Rule 2: scripts without spaces are compared by pairs of characters.
Rule 3: every function accepts any text and takes time linear in its length.
"""

from __future__ import annotations

from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.core.stemming import stem
from bot.language.folding import UNSPACED, fold_text
from bot.language.lexicon import STOP_WORDS

_WORD = LazyPattern(r"[^\W_]+(?:'[^\W_]+)*")
_ASKING = LazyPattern(
    "什么|甚麼|什麼|哪里|哪裡|哪儿|谁|誰|多少|怎么|为什么|何|どこ|いつ|です|ます|[吗呢吧的了はがをのか]"
)

_STOP = frozenset(
    """
    tell told say know remember mention mentioned kind sort type before previously formerly each per every until till
    actually usually always often sometimes stopped quit
    """.split()
).union(*(STOP_WORDS[language] for language in ("en", "de", "fr", "es")))
"""Common words, and words by which people ask for a fact or give its time."""

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

_SYNONYMS = (
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


RELATIONS = frozenset(
    """
    sister brother mother father mum mom dad wife husband son daughter partner girlfriend boyfriend
    friend colleague boss neighbour neighbor aunt uncle cousin grandmother grandfather grandma
    grandpa niece nephew fiancé fiancée fiance fiancee dog cat doctor dentist teacher roommate
    flatmate child kid kids baby parrot hamster rabbit horse landlord manager twin stepmother
    stepfather spouse grandson granddaughter
    """.split()
)


def fact_words(text: str) -> list[str]:
    """Return the folded words of a text in order, without possessive endings and hyphens."""
    return [word.removesuffix("'s") for word in _WORD.findall(fold_text(text))]


def _base(word: str) -> str:
    return stem(_IRREGULAR.get(word, word))


_SYNONYMS_BY_STEM = {
    _base(word): _base(line.split()[0]) for line in _SYNONYMS for word in line.split()
}


@lru_cache(maxsize=4096)
def fact_term(word: str) -> str:
    """Return the term of one word."""
    base = _base(word)
    return _SYNONYMS_BY_STEM.get(base, base)


RELATION_TERMS = frozenset(fact_term(fold_text(word)) for word in RELATIONS)


def _pairs(run: str) -> list[str]:
    run = _ASKING.sub(" ", run)
    pairs: list[str] = []
    for part in run.split():
        pairs.extend(part[at : at + 2] for at in range(len(part) - 1))
        if len(part) == 1:
            pairs.append(part)
    return pairs


def fact_terms(text: str) -> tuple[str, ...]:
    """Return the terms of the content words in order, each once."""
    terms: dict[str, None] = {}
    for word in fact_words(text):
        if UNSPACED.search(word):
            terms.update(dict.fromkeys(_pairs(word)))
        elif word not in _STOP:
            terms[fact_term(word)] = None
    return tuple(terms)


@lru_cache(maxsize=2048)
def _short_key(text: str) -> str:
    return " ".join(fact_words(text))


def comparison_key(text: str) -> str:
    """Return a text's words joined by spaces, so that case and punctuation make no difference."""
    return _short_key(text) if len(text) <= 600 else " ".join(fact_words(text))
