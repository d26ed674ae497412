"""Choose which recalled passages a prompt shows, and how much of each. Pure.

Rule 1: a passage is shown for what it adds: a statement with a word, or a negation, that neither the
    message has nor one statement that is shown already, in view, in memory or in a better passage;
    or one with all words of a question of the message, which says yes to it.
Rule 2: what only asks is no evidence, unless the message asks what was asked.
Rule 3: another number after the first word only says which of many it is if the message begins so,
    too: "Invoice 7 is paid" adds nothing for "Invoice 9: is it paid?".
Rule 4: a passage far below the best is not shown; the third must come closer to it. ``tapebot eval
    recall`` was used to choose the limits.
Rule 5: of a long passage the sentences around the best match are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.core.folding import fold_text
from bot.core.patterns import LazyPattern
from bot.language.clauses import parse_clauses
from bot.language.lexicon import NEGATIONS, NEGATIONS_UNSPACED
from bot.language.sentences import chat_sentences, is_question
from bot.language.speech_patterns import ASKS_FIRST, TAG
from bot.memory.gate.remember_requests import find_explicit_memory
from bot.memory.records.stemming import stemmed_words
from bot.memory.session.recall import RecalledPassage

MOST_PASSAGES = 3
MIN_SCORE = 0.13
"""Weighted share of the question's words that a passage must contain."""
_OF_BEST = (0.5, 0.5, 0.55)
"""Share of the best score that the first, second and third passage need."""

_LONGEST_EXCERPT = 240
"""Characters of a passage above which only a part of it is shown."""

_ASKS_ASSISTANT = LazyPattern(
    r"\b(?:you|u) (?:ever |just |have |had |'ve )?(?:said|told|suggested?|recommend\w{0,4}|wrote|gave|listed|explained|calculated|answered|mentioned|proposed)"
    r"|\b(?:did|have|do) you (?:ever )?(?:say|tell|suggest|recommend|write|give|list|explain|calculate|answer|mention|propose)"
    r"|\byour (?:answer|list|advice|suggestion|recommendation|recipe|plan)"
    r"|\b(?:hast|hattest) du|\bdein\w{0,2} (?:vorschlag|antwort|liste|rat|empfehlung)|\btu (?:as|avais)|\b(?:dijiste|sugeriste|recomendaste|hai detto|hai consigliato|você disse|ты (?:сказал|советовал))"
    r"|你(?:说|建议|推荐)|(?:あなた|君)(?:が|は)(?:言|勧)",
    re.IGNORECASE,
)
_ASKS_QUESTIONS = LazyPattern(
    r"\b(?:ask\w{0,3}|questions?|frag\w{0,3}|gefragt|demand\w{0,3}|pregunt\w{1,4}|domand\w{1,3}|chiest\w|pergunt\w{1,3}|спрашива\w{1,4}|спросил\w?|вопрос\w{0,2})\b"
    r"|问|質問|聞",
    re.IGNORECASE,
)
_NUMBERED = LazyPattern(r"\W{0,3}([^\W\d_]+)[ #.:№-]{1,3}(\d+)\b")
_WORD = LazyPattern(r"[\w']+")
_PARTS_OF_NUMBER = LazyPattern(r"(?<!\d)\d++(?:[.,:/-]\d++)+")
_PARTICLES = frozenset(("on", "out", "up"))
"""Common words without which a statement would be like its opposite: "on" and "off"."""

_LONGEST_READ = 500
"""Characters of a question above which it is not read for what it states."""

_DENIED = "-"
"""Stands among the words of a statement for its negation; no word is like it."""

_END = "\0"


class _Told:
    """What is told already.

    Args:
        texts: Texts that the prompt shows.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._whole = _END.join(text.lower() for text in texts)
        self._read: dict[str, list[frozenset[str]]] = {}

    def add(self, text: str) -> None:
        """Take a text that will be shown."""
        self._whole += f"{_END}{text.lower()}"

    def has(self, words: frozenset[str]) -> bool:
        """Return whether one statement has all of these words, and denies something if they do."""
        rarest = _beginning(max(words - {_DENIED}, key=len, default=""))
        if not rarest:
            return False
        # One search through all texts is much cheaper than one in each.
        at = self._whole.find(rarest)
        while at >= 0:
            start, end = self._whole.rfind(_END, 0, at) + 1, self._whole.find(_END, at)
            text = self._whole[start : end if end >= 0 else None]
            if any(_covers(one, words) for one in self._statements(text, words)):
                return True
            at = self._whole.find(rarest, end) if end >= 0 else -1
        return False

    def _statements(self, text: str, words: frozenset[str]) -> list[frozenset[str]]:
        """Return the words of a text's statements; none if it cannot have all of these words."""
        if not all(_beginning(word) in text for word in words - {_DENIED}):
            return []
        if text not in self._read:
            sentences = chat_sentences(text)
            self._read[text] = [_words(one) for one in sentences if not is_question(one)]
        return self._read[text]


class _Message:
    """What a message says and asks.

    Args:
        text: The message.

    Attributes:
        words: Its words.
        asks_questions: Whether it asks what was asked.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.words = _words(text) - {_DENIED}
        self.asks_questions = _ASKS_QUESTIONS.search(text) is not None
        questions = [one for one in chat_sentences(text) if _asks(one)]
        self._questions = [(_words(one) - {_DENIED}, _spelled(one)) for one in questions]

    def is_answered_by(self, sentence: str, words: frozenset[str]) -> bool:
        """Return whether a sentence has another word, or all words of a question and is not the question.

        Args:
            sentence: The sentence.
            words: Its words without its number.
        """
        if not words <= self.words:
            return True
        every = _words(sentence)
        # Without a question mark, too, a question may have been asked before.
        ends = sentence.endswith((".", "!", "。", "！"))
        return any(
            wanted and wanted <= every and (ends or _spelled(sentence) != question)
            for wanted, question in self._questions
        )

    def unnumbered(self, sentence: str) -> str:
        """Return a sentence without the number after its first word if the message begins with another."""
        own, other = _NUMBERED.match(sentence), _NUMBERED.match(self._text)
        if own is None or other is None or own[2] == other[2]:
            return sentence
        return sentence[own.end() :] if own[1].lower() == other[1].lower() else sentence


def _spelled(sentence: str) -> list[str]:
    return _WORD.findall(fold_text(sentence))


def _covers(statement: frozenset[str], words: frozenset[str]) -> bool:
    return words <= statement and (_DENIED in words) == (_DENIED in statement)


def _beginning(stem: str) -> str:
    # The stem of "parties" is "party", which is not in it.
    return stem.removesuffix("y")


def _words(text: str) -> frozenset[str]:
    """Return the words that tell one statement from another; ``_DENIED`` if it denies something."""
    folded = fold_text(text)
    plain = _WORD.findall(folded)
    denies = "n't" in folded or not NEGATIONS.isdisjoint(plain)
    denied = (_DENIED,) if denies or NEGATIONS_UNSPACED.search(folded) else ()
    # "5.2" has the same parts as "2.5".
    numbers = _PARTS_OF_NUMBER.findall(text)
    return frozenset((*stemmed_words(text), *numbers, *_PARTICLES.intersection(plain), *denied))


def asks_assistant(text: str) -> bool:
    """Return whether a message asks for what the assistant said."""
    return _ASKS_ASSISTANT.search(text) is not None


def select_passages(
    recalled_passages: Sequence[RecalledPassage], asked: str, shown: Iterable[str] = ()
) -> list[RecalledPassage]:
    """Return the passages that are worth a place in the prompt, each cut to what matters of it.

    Args:
        recalled_passages: Passages that are not in view, best first.
        asked: The message that they were searched for.
        shown: Other texts of the prompt.
    """
    by_assistant = asks_assistant(asked)
    fitting = [passage for passage in recalled_passages if by_assistant or passage.who != "tapebot"]
    best = max((passage.score for passage in fitting), default=0.0)
    message, told = _Message(asked), _Told(shown)
    chosen: list[RecalledPassage] = []
    for passage in fitting:
        if len(chosen) == MOST_PASSAGES:
            break
        if passage.score < max(MIN_SCORE, _OF_BEST[len(chosen)] * best):
            continue
        sentences = chat_sentences(passage.text)
        new = [at for at, one in enumerate(sentences) if _adds(one, message, told)]
        if new:
            excerpt = _excerpt(passage.text, sentences, new, message.words)
            chosen.append(replace(passage, text=excerpt))
            told.add(excerpt)
    return chosen


def _adds(sentence: str, message: _Message, told: _Told) -> bool:
    """Return whether a sentence of a passage adds something."""
    words = _words(message.unnumbered(sentence))
    return (
        message.is_answered_by(sentence, words)
        and (message.asks_questions or _states(sentence))
        and not told.has(words)
    )


def _asks(sentence: str) -> bool:
    """Return whether a sentence is a question, with or without a question mark."""
    return is_question(sentence) or ASKS_FIRST.match(fold_text(sentence)) is not None


def _states(sentence: str) -> bool:
    """Return whether a sentence states something, also with a question: "I live in Oslo, is it cold?"."""
    if not _asks(sentence):
        return True
    if len(sentence) > _LONGEST_READ:
        return False
    said = sentence.rstrip("?？؟)\"'” ")
    stated, _, tag = said.rpartition(",")
    if stated and TAG.fullmatch(fold_text(tag).strip()) and not _asks(stated):
        return True
    return find_explicit_memory(said) is not None or not all(
        clause.mood for clause in parse_clauses(sentence)
    )


def _excerpt(
    text: str, sentences: Sequence[str], new: Sequence[int], wanted: frozenset[str]
) -> str:
    """Return a passage, or of a long one the sentences around the new one that matches best."""
    if len(text) <= _LONGEST_EXCERPT:
        return text
    first = max(new, key=lambda at: len(wanted & _words(sentences[at])))
    last, room = first, _LONGEST_EXCERPT - len(sentences[first])
    while last + 1 < len(sentences) and len(sentences[last + 1]) < room:
        last += 1
        room -= len(sentences[last]) + 1
    while first > 0 and len(sentences[first - 1]) < room:
        first -= 1
        room -= len(sentences[first]) + 1
    excerpt = " ".join(sentences[first : last + 1])
    return f"{'… ' * (first > 0)}{excerpt}{' …' * (last + 1 < len(sentences))}"
