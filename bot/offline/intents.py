"""Parse a message into intents: statement, question, forget, list all, remember, small talk, other.

Rule 1: ``other`` is a request that only a language model could fulfil, or a text that no rule
    matches.
Rule 2: a question ends in a question mark of any script, or begins like a question.
Rule 3: an answer must hold the required terms of a question; each term may have alternatives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bot.core.patterns import LazyPattern
from bot.language import translation
from bot.language.fact_terms import HYPONYMS_BY_STEM, fact_term, fact_terms, fact_words
from bot.language.forget_requests import topic_to_forget
from bot.language.grammatical_person import expand
from bot.language.language_detection import Language, language_of
from bot.language.sentences import begins_as_question, chat_sentences, is_question
from bot.language.statements import StatedFact, extract_facts
from bot.offline.remember_requests import parse_remember_request
from bot.offline.request_parser import UserMessage
from bot.offline.small_talk import SmallTalk, small_talk_kinds

QuestionForm = Literal["value", "yesno", "topic"]

_OPENING = LazyPattern(
    r"(?:(?:hi|hello|hey|so|and|ok|okay|well|please|tapebot)[\s,!.]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?(?:tell me|remind me)(?: again)?|tell me|remind me"
    r"|do you (?:know|remember|recall)|i (?:want|would like) to know|please tell me)\s+",
    re.IGNORECASE,
)
_WHAT_ABOUT_ME = LazyPattern(
    r"(?:where|what|who|when|which|how|if|whether|my|about)\b", re.IGNORECASE
)
_TOPIC = LazyPattern(
    r"(?:what|anything|everything|all)?\s*(?:else )?(?:(?:did|have|do) (?:i|we|you) |i |you )?"
    r"(?:ever )?(?:tell|told|say|said|mention|mentioned|talk|talked|know|remember|mentioned to|discuss|discussed|have)"
    r"(?: (?:to )?(?:you|me))?(?: (?:about|regarding|on|of)) (?P<topic>.+)",
    re.IGNORECASE,
)
_ABOUT = LazyPattern(r"(?:tell me |anything |something )?about (?P<topic>.+)", re.IGNORECASE)
_ALL = LazyPattern(
    r"(?:please )?(?:(?:tell|show) me |list |show )?(?:what|everything|all)(?: all| that)? (?:do )?you"
    r" (?:know|remember|noted|have noted|have stored|learned)(?: (?:about|of) (?:me|us|myself))?"
    r"|(?:list|show)(?: me)? (?:my |your |the |all )*(?:memory|memories|facts|notes)"
    r"|who am i|what have you (?:learned|noted|remembered)(?: about me)?|tell me about (?:me|myself)"
    r"|was weißt du(?: alles)?(?: über mich)?|que sais-tu(?: de| sur)? moi|¿?qué sabes(?: de| sobre) mí",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A parsed question.

    Attributes:
        text: The question as asked.
        form: Whether it asks for a value, for yes or no, or for everything about a topic.
        required: Alternatives of each term that an answer must hold.
        optional: Terms that an answer may lack ("what *car* do I drive").
        query: Query for recall.
        relative_day: ``yesterday`` or ``today`` if it asks about that day; else empty.
        personal: The question is about the person or the conversation, not about the world.
        language: Language of the question.
    """

    text: str
    form: QuestionForm
    required: tuple[frozenset[str], ...]
    optional: frozenset[str]
    query: str
    relative_day: str = ""
    personal: bool = True
    language: Language = "en"


@dataclass(frozen=True, slots=True)
class Intent:
    """One intent of a message.

    Attributes:
        kind: Kind of the intent, which determines the fields that are set.
        message: The message.
        facts: Stated facts, for ``state`` and ``remember``.
        question: The question, for ``ask``.
        topic: What to forget, to remember, or to do, for ``forget``, ``remember``,
            and ``other``.
        small_talk: Kind of small talk, for ``courtesy``.
    """

    kind: Literal["state", "ask", "forget", "all", "remember", "courtesy", "other"]
    message: UserMessage
    facts: tuple[StatedFact, ...] = ()
    question: ParsedQuestion | None = None
    topic: str = ""
    small_talk: SmallTalk = "hello"


_GENERIC = frozenset(
    fact_term(word)
    for word in "favourite like name have go get make thing want new hate from eat".split()
)
_FORMS: tuple[tuple[LazyPattern, str], ...] = tuple(
    (LazyPattern(pattern, re.IGNORECASE), to)
    for pattern, to in (
        (r"what(?: is|'s)? (?:my|our) e-?mail address", "email"),
        (r"how old (?:am i|are we)", "age"),
        (r"what age am i", "age"),
        (r"what (?:do|did) (?:i|we) do(?: for (?:a living|work))?", "job"),
        (r"what (?:does|did) (.{1,60}?) do(?: for (?:a living|work))?", r"\1 job"),
        (r"(?:what is|what's) my (?:job|profession|occupation)", "job"),
        (r"who (?:do|did) i work for|where do (?:i|we) work", "job"),
        (r"where (?:am|are) (?:i|we) (?:from|based)|where do (?:i|we) come from", "origin"),
        (
            r"what(?: is|'s)? my (?:city|town|home ?town|place)|which (?:city|town|country) do (?:i|we) live in",
            "live",
        ),
        (r"what (?:am i|are we) called|what should you call me|how should you call me", "name"),
        (r"when was i born|when is my birthday|when's my birthday", "birthday"),
    )
)
_OPTIONAL = LazyPattern(
    r"(?:what|which)(?: (?:kind|sort|type) of)? (?P<of>\w+(?: \w+)?) (?:do|did|does|am|are|is|have|can|should) (?:i|we|my|you|he|she|they|(?-i:[A-Z])\w+)\b",
    re.IGNORECASE,
)
_EITHER = LazyPattern(r"([\w'’-]{2,40}) or (?:an? |the |my )?([\w'’-]{2,40})")
_COUNTING = LazyPattern(r"how (?:long|many (?:day|week|month|year)s)\b", re.IGNORECASE)
_COUNTED = frozenset(map(fact_term, "day week month year since ago left".split()))
_LEADING = frozenset("time day date year month kind sort".split())


def _parse_question(text: str, language: Language) -> ParsedQuestion:
    plain = expand(text).strip().rstrip("?？؟ .!").lstrip("¿ ")
    opening = _OPENING.match(plain)
    if opening and _WHAT_ABOUT_ME.match(plain[opening.end() :]):
        plain = plain[opening.end() :]
    translated = translation.translate_question(plain)
    topic = None if translated else (_TOPIC.fullmatch(plain) or _ABOUT.fullmatch(plain))
    body = translated or (topic["topic"] if topic else plain)
    body = next((hit.expand(to) for form, to in _FORMS if (hit := form.fullmatch(body))), body)
    required_terms, optional = _question_terms(plain, body, has_topic=topic is not None)
    required = _alternatives(body, required_terms)
    question_words = fact_words(plain)
    form: QuestionForm = "topic" if topic else "value"
    if not topic and question_words and question_words[0] in _YES_OR_NO:
        form = "yesno"
    return ParsedQuestion(
        text=text.strip(),
        form=form,
        required=required,
        optional=optional,
        query=_query(plain, body, required),
        relative_day=next((day for day in _RELATIVE_DAYS if day in question_words), ""),
        personal=bool(translated or topic or language != "en")
        or not _PERSONAL.isdisjoint(question_words),
        language=language,
    )


def _question_terms(plain: str, body: str, *, has_topic: bool) -> tuple[list[str], frozenset[str]]:
    """Return the terms that an answer must hold, and those that it may lack.

    Args:
        plain: The question with contractions written out.
        body: The question, its topic, or the terms that stand for it.
        has_topic: The question asks for everything about a topic.
    """
    match = _OPTIONAL.match(body)
    optional = frozenset(fact_terms(match["of"])) if match else frozenset()
    ignored = optional.union(_RELATIVE_DAYS)
    if fact_words(plain)[:1] in (["what"], ["which"]) and not has_topic:
        ignored |= _LEADING
    if _COUNTING.match(plain):
        ignored |= _COUNTED
    required = [term for term in fact_terms(body) if term not in ignored]
    if not required and optional:
        return [term for term in fact_terms(body) if term in optional], frozenset()
    return required, optional


_RELATIVE_DAYS = ("yesterday", "today")
_PERSONAL = frozenset("i my me we our us".split())
_YES_OR_NO = frozenset("do did am is are was were have has can does will".split())


def _alternatives(body: str, asked: list[str]) -> tuple[frozenset[str], ...]:
    """Return the required terms with hyponyms; "tea or coffee" gives one group with both."""
    groups = [frozenset({term}) | HYPONYMS_BY_STEM.get(term, frozenset()) for term in asked]
    either = _EITHER.search(body)
    first, second = (
        (fact_term(either[1].lower()), fact_term(either[2].lower())) if either else ("", "")
    )
    if first in asked and second in asked:
        groups[asked.index(first)] |= groups[asked.index(second)]
        del groups[asked.index(second)]
    return tuple(groups)


def _query(plain: str, body: str, required: tuple[frozenset[str], ...]) -> str:
    """Return the query for recall: the words of the question, then synonyms."""
    query_words = [
        word
        for word in [*fact_words(plain), *fact_words(body)]
        if fact_terms(word) or not word.isascii()
    ]
    for group in required:
        query_words += [word for word in _ALIKE if fact_term(word) in group]
    return " ".join(dict.fromkeys(query_words))[:200].strip()


_ALIKE = tuple(
    "live lives moved home job work works birthday born name named called like likes love hate age old"
    " years favourite favorite dog cat son daughter brother sister wife husband mother father".split()
)


def is_specific(group: frozenset[str]) -> bool:
    """Return whether a group of terms is specific, unlike "like" or "name"."""
    return not group & _GENERIC


def message_intents(message: UserMessage) -> tuple[Intent, ...]:
    """Return the intents of a message in order; there is always at least one."""
    text = message.words.strip()
    language = language_of(text)
    plain = expand(text).strip().rstrip("?!. ").strip()
    for name in small_talk_kinds(plain):
        if name == "clock" or (not extract_facts(text) and not _asks(text, plain)):
            return (Intent("courtesy", message, small_talk=name),)
    if len(plain) <= 120 and _ALL.fullmatch(plain):
        return (Intent("all", message),)
    request = parse_remember_request(message, text)
    if request:
        return (Intent("remember", message, facts=request.facts, topic=request.words),)
    intents: list[Intent] = []
    for sentence in chat_sentences(text):
        intents.extend(sentence_intents(message, sentence, language))
    facts = extract_facts(text, message.subject, message.date, message.name)
    if facts:
        forgets = any(intent.kind == "forget" for intent in intents)
        intents.insert(len(intents) if forgets else 0, Intent("state", message, facts=facts))
    return tuple(intents) or (Intent("other", message),)


def _asks(text: str, plain: str) -> bool:
    """Return whether a text that looks like small talk is a question about the person."""
    own = {"my", "i", "me"} & set(fact_words(plain))
    return is_question(text) and bool(own) and not plain.lower().startswith(("help", "what can"))


def sentence_intents(
    message: UserMessage, sentence: str, language: Language = "en"
) -> list[Intent]:
    """Return the intents of one sentence; empty if it only states something.

    Args:
        message: The message that contains the sentence.
        sentence: The sentence.
        language: Language of the message.
    """
    plain = expand(sentence).strip().rstrip("?!. ").strip()
    if len(plain) <= 120 and _ALL.fullmatch(plain):
        return [Intent("all", message)]
    topic = topic_to_forget(plain.rstrip("。！ "))
    if topic:
        return [Intent("forget", message, topic=topic)]
    if _REQUEST.match(plain):
        return [Intent("other", message, topic=plain)]
    opening = _OPENING.match(plain)
    asks = bool(opening) and bool(_WHAT_ABOUT_ME.match(plain[opening.end() :] if opening else ""))
    if is_question(sentence) or begins_as_question(plain) or asks:
        return [Intent("ask", message, question=_parse_question(sentence[:1000], language))]
    return []


_REQUEST = LazyPattern(
    r"(?:please |can you |could you |would you |will you )*(?:write|translate|summari[sz]e|explain|draw|compose|generate"
    r"|create|make me|give me|tell me (?:a|an|some) |sing|calculate|search|code|fix|rewrite|proofread|suggest"
    r"|schreib\w*|übersetze?|erkläre?|écris|traduis|explique|escribe|traduce|explica|recommend|imagine|pretend|play)\b",
    re.IGNORECASE,
)
