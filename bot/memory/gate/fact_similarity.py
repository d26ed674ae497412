"""Check whether two facts say the same, or contradict each other. Pure.

Rule 1: facts that differ in a number, name, date or negation are never the same.
Rule 2: two facts contradict if they give one attribute of one person two values; in a group, only
    facts by one member can.
Rule 3: a fact that cannot be parsed contradicts nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.language.claim_terms import content_terms
from bot.language.clauses import parse_clauses
from bot.language.folding import UNSPACED, character_bigrams, fold_text, words
from bot.language.names import extract_names
from bot.language.numerals import with_digits
from bot.language.parsed_facts import conflicts, parse_fact
from bot.language.quantities import extract_quantities

_LONGEST = 2_000
_ALIKE = 95
_PAIRS = 32_768
"""Size of the comparison caches: a batch is compared with all facts of its scope."""
_USER = LazyPattern(
    r"\b(?:the user|der (?:be)?nutzer|die (?:be)?nutzerin|l'utilisat(?:eur|rice)|el usuario|la usuaria|l'utente|[oa] usuari[oa]|пользователь(?:ница)?)\b"
)
_MEMBER = LazyPattern(
    r"(?P<who>[^\n:()]{1,60} \((?P<id>[^()\s]{1,40})\))(?P<rest>:? .*|'s .*)", re.DOTALL
)
_DATED = LazyPattern(r"(?:(?<!\s)\s++)?[\[(](?:said on |since )?\d{4}-\d\d-\d\d[\])]\.?")
_NOW = r"(?:jetzt |nun |inzwischen |mittlerweile |maintenant |désormais |ahora |actualmente |agora |ora |adesso |теперь |сейчас )?"
_PLACE = r"(?:in|à|en|au|aux|em|no|na|a|в|во|на)"
_I_DE = r"(?:ich|der (?:be)?nutzer|die (?:be)?nutzerin)"
_I_FR = r"(?:j'|je |l'utilisat(?:eur|rice) )"
_I_ES = r"(?:yo |el usuario |la usuaria )?"
_I_PT = r"(?:eu |o usuario |a usuaria |o utilizador )?"
_I_IT = r"(?:io |l'utente )?"
_I_RU = r"(?:я|пользователь|пользовательница)"
_ATTRIBUTES: tuple[tuple[str, str], ...] = tuple(
    (slot, pattern)
    for slot, patterns in {
        "home": (
            rf"{_I_DE} (?:wohn[et]|leb[et]|lebt) {_NOW}(?:seit \S+ )?(?:in|auf|bei) (?P<v>.+)",
            rf"{_I_DE} (?:bin|ist) (?:nach|in) (?P<v>.+?) (?:um)?gezogen",
            rf"{_I_FR}(?:habite|vis|vit) {_NOW}{_PLACE} (?P<v>.+)",
            rf"{_I_FR}(?:ai |a )?demenage {_PLACE} (?P<v>.+)",
            rf"{_I_ES}{_NOW}viv[oe] {_NOW}en (?P<v>.+)", rf"{_I_ES}(?:me mude|se mudo) a (?P<v>.+)",
            rf"{_I_PT}{_NOW}mor[oa] {_NOW}(?:em|no|na) (?P<v>.+)", rf"{_I_PT}(?:me )?(?:mudei|mudou)(?:-me|-se)? para (?P<v>.+)",
            rf"{_I_IT}{_NOW}(?:abit[oa]|viv[oe]) {_NOW}(?:a|in) (?P<v>.+)",
            rf"{_I_RU} {_NOW}живу?е?т? {_NOW}(?:в|во|на) (?P<v>.+)", rf"{_I_RU} переехала? (?:в|во|на) (?P<v>.+)",
            r"(?:我|用户|使用者)(?:现在|目前)?(?:住在|搬到了?|居住在)(?P<v>.+)", r"(?:私|ユーザー)は(?:今は?|現在)?(?P<v>.+?)(?:に住んでいます|に住んでいる|に引っ越しました)",
        ),
        "name": (
            rf"{_I_DE} heiss[et]?(?:t)? (?P<v>.+)", r"(?:mein name|der name des (?:be)?nutzers) (?:ist|lautet) (?P<v>.+)",
            r"(?:je m'appelle|l'utilisat(?:eur|rice) s'appelle|mon (?:pre)?nom est) (?P<v>.+)",
            r"(?:me llamo|el usuario se llama|la usuaria se llama|mi nombre es) (?P<v>.+)",
            r"(?:me chamo|o usuario se chama|meu nome e) (?P<v>.+)", r"(?:mi chiamo|l'utente si chiama|il mio nome e) (?P<v>.+)",
            r"(?:меня зовут|пользователя зовут|мое имя) (?P<v>.+)", r"(?:我|用户)(?:叫|的名字(?:是|叫))(?P<v>.+)",
        ),
        "age": (
            rf"{_I_DE} (?:bin|ist) {_NOW}(?P<v>\d{{1,3}})(?: jahre? alt)?", rf"{_I_FR}(?:ai|a) {_NOW}(?P<v>\d{{1,3}}) ans",
            rf"{_I_ES}{_NOW}tien?[eg]?[oe]? {_NOW}(?P<v>\d{{1,3}}) anos", rf"{_I_ES}{_NOW}ten[gh]o {_NOW}(?P<v>\d{{1,3}}) anos",
            rf"{_I_IT}(?:ho|ha) {_NOW}(?P<v>\d{{1,3}}) anni", r"(?:мне|пользователю) (?P<v>\d{1,3}) (?:лет|год|года)", r"(?:我|用户)(?:今年)?(?P<v>\d{1,3})岁",
        ),
        "job": (
            rf"{_I_DE} arbeite[t]? {_NOW}als (?P<v>.+)", rf"{_I_FR}travaille {_NOW}comme (?P<v>.+)",
            rf"{_I_ES}{_NOW}trabaj[oa] {_NOW}(?:como|de) (?P<v>.+)", rf"{_I_IT}lavor[oa] {_NOW}come (?P<v>.+)", rf"{_I_PT}trabalh[oa] {_NOW}como (?P<v>.+)",
        ),
        "employer": (
            rf"{_I_DE} arbeite[t]? {_NOW}(?:bei|fur) (?P<v>.+)", rf"{_I_FR}travaille {_NOW}(?:chez|pour) (?P<v>.+)",
            rf"{_I_ES}{_NOW}trabaj[oa] {_NOW}(?:en|para) (?P<v>.+)", rf"{_I_IT}lavor[oa] {_NOW}(?:per|presso|in|alla|da) (?P<v>.+)",
            rf"{_I_PT}trabalh[oa] {_NOW}(?:na|no|em|para) (?P<v>.+)", rf"{_I_RU} работае?ю?т? {_NOW}(?:в|на) (?P<v>.+)",
        ),
        "birthday": (
            r"(?:mein geburtstag|der geburtstag des (?:be)?nutzers) ist (?:am )?(?P<v>.+)", rf"{_I_DE} ha(?:be|t) am (?P<v>.+) geburtstag",
            r"(?:mon anniversaire|l'anniversaire de l'utilisat(?:eur|rice)) est (?:le )?(?P<v>.+)",
            r"(?:mi cumpleanos|el cumpleanos del usuario) es (?:el )?(?P<v>.+)", r"(?:meu aniversario|o aniversario do usuario) e (?:em |dia )?(?P<v>.+)",
            r"(?:il mio compleanno|il compleanno dell'utente) e (?:il )?(?P<v>.+)", r"(?:мои день рождения|день рождения пользователя) (?P<v>.+)", r"(?:我|用户)的生日是(?P<v>.+)",
        ),
        "address": (
            r"(?:meine adresse|die adresse des (?:be)?nutzers) (?:ist|lautet) (?P<v>.+)", r"(?:mon adresse|l'adresse de l'utilisat(?:eur|rice)) est (?P<v>.+)",
            r"(?:mi direccion|la direccion del usuario) es (?P<v>.+)", r"(?:meu endereco) e (?P<v>.+)", r"(?:il mio indirizzo) e (?P<v>.+)",
        ),
        "favourite": (
            r"(?:meine?|die?|das|der) lieblings(?P<of>\w+)(?: des (?:be)?nutzers)? (?:ist|sind) (?P<v>.+)",
            r"(?:mon|ma|le|la) (?P<of>\w+) preferee?(?: de l'utilisat(?:eur|rice))? est (?P<v>.+)",
            r"(?:mi|el|la) (?P<of>\w+) (?:favorit|preferid)[oa](?: del usuario)? es (?P<v>.+)",
            r"(?:o meu |a minha |meu |minha )(?P<of>\w+) (?:favorit|preferid)[oa] e (?P<v>.+)", r"(?:il mio |la mia )(?P<of>\w+) preferit[oa] e (?P<v>.+)",
        ),
    }.items()
    for pattern in patterns
)  # fmt: skip
_DATED_FROM = LazyPattern(
    r"^(?:(?:these days|nowadays|currently|by now|since (?:this|last) (?:week|month|year|\w+day)|from now on"
    r"|as of (?:now|today)|at the moment|now|actually|by the way),? )+(?=\w)|^[^:\n]{1,60}: (?=the user\b)"
    r"|^the user (?:thinks|believes|guesses) (?:that )?(?=the user\b)",
    re.IGNORECASE,
)
_NOT_BUT = LazyPattern(
    r"(?:, and|,| and) not (?:in |at |for |on |to )?[^,.]{1,60}(?=\.?$)"
    r"|,? (?:any ?more|from now on|these days|nowadays|at the moment|currently)(?=\.?$)"
)
_COMPILED = tuple((slot, LazyPattern(pattern)) for slot, pattern in _ATTRIBUTES)
_DENIES = LazyPattern(
    r"\b(?:nicht|kein\w{0,2}|nie|ne|n'\w+|pas|plus|no|nunca|non|mai|nao|не|нет)\b|不|没|ません|ない"
)


@lru_cache(maxsize=4096)
def fact_comparison_key(text: str) -> str:
    """Return a key that is equal for texts that differ only in case, punctuation and spacing."""
    low = fold_text(text[:_LONGEST])
    low = re.sub(r"[^\w+#@%&$€£/'.,:-]+", " ", low)
    return " ".join(part for raw in low.split() if (part := raw.strip(".,:'-")))


@lru_cache(maxsize=4096)
def _marks(
    text: str,
) -> tuple[frozenset[str], frozenset[object], frozenset[str], frozenset[str], str]:
    """Return what equal facts must share: numbers, dates, names, negations, and speaker."""
    bare, who = _bare(text)
    quantities = extract_quantities(bare, fold_text(bare), demanded=True)
    readings = frozenset(min(means) for _, means in quantities.numbers)
    days = frozenset((day.year, day.month, day.day, day.weekday) for day in quantities.days)
    names = frozenset(
        fold_text(name).removesuffix("'s")
        for name in extract_names(bare)
        if fold_text(name) not in ("nutzer", "nutzerin", "benutzer")
    )
    shape = parse_clauses(bare)
    denied = frozenset(
        str(clause.ended) if clause.ended else "not"
        for clause in shape
        if clause.negated or clause.ended
    )
    return readings, days, names, denied, who


@lru_cache(maxsize=4096)
def _bare(text: str) -> tuple[str, str]:
    """Return a fact without speaker and date, and in a group the speaker's label with id."""
    text = _DATED.sub("", text[:_LONGEST].strip().lstrip("-*• ")).strip()
    member = _MEMBER.match(text)
    if member is None:
        return text, ""
    rest = member["rest"]
    return (rest[1:] if rest.startswith(":") else f"The user{rest}").strip(), member[
        "who"
    ].casefold()


@lru_cache(maxsize=_PAIRS)
def is_same_fact(a: str, b: str) -> bool:
    """Say whether two facts say the same: no number, name, date or negation differs."""
    if fact_comparison_key(a) == fact_comparison_key(b):
        return bool(fact_comparison_key(a))
    mine, theirs = _marks(a[:_LONGEST]), _marks(b[:_LONGEST])
    if mine != theirs:
        return False
    one, other = _said(a), _said(b)
    if not one or not other:
        return False
    few, many = sorted((one, other), key=len)
    if few == many:
        return _order(a) == _order(b)
    if few < many:
        return len(many) - len(few) <= max(1, len(few) // 4) and len(few) >= 3
    if UNSPACED.search(fold_text(a)):
        return len(few & many) * 10 >= len(many) * 9
    if len(few) <= 3 or len(few - many) > 1:
        return False
    # Imported on first use: it must not slow down the start.
    from rapidfuzz import fuzz

    return fuzz.token_sort_ratio(fact_comparison_key(a), fact_comparison_key(b)) >= _ALIKE


def _said(text: str) -> frozenset[str]:
    low = with_digits(fold_text(_bare(text)[0]))
    return frozenset(content_terms(_USER.sub(" ", low))) | frozenset(character_bigrams(low))


def _order(text: str) -> list[str]:
    """Return a fact's names in order: "Anna likes Bob" is not "Bob likes Anna"."""
    return [fold_text(name).removesuffix("'s") for name in extract_names(_bare(text)[0])]


@lru_cache(maxsize=_PAIRS)
def is_contradiction(new: str, old: str) -> bool:
    """Say whether two facts give different current values for one attribute.

    Args:
        new: The newer fact.
        old: The older one.
    """
    new, old = new[:_LONGEST], old[:_LONGEST]
    if fact_comparison_key(new) == fact_comparison_key(old):
        return False
    (mine, me), (theirs, other) = _bare(new), _bare(old)
    if me != other:
        return False
    found, before = _attribute(mine), _attribute(theirs)
    if found and before and found[0] == before[0]:
        return not _one_in_other(found[1], before[1])
    if found or before:
        return False
    return _english(mine, theirs)


def _english(new: str, old: str) -> bool:
    if len(new) > 600 or len(old) > 600:
        return False
    mine, theirs = parse_fact(_plainly(new)), parse_fact(_plainly(old))
    if _key(mine.text) == _key(theirs.text):
        return False
    return conflicts(mine, theirs) and not is_same_fact(mine.text, theirs.text)


@lru_cache(maxsize=4096)
def _plainly(text: str) -> str:
    """Return an English fact without time phrases and without a trailing "not ... any more"."""
    text = _DATED_FROM.sub("", text)
    return _NOT_BUT.sub("", text[:1].upper() + text[1:])


def _key(text: str) -> str:
    return fact_comparison_key(text)


@lru_cache(maxsize=4096)
def _attribute(text: str) -> tuple[str, str] | None:
    """Return the attribute and value of a simple sentence in one of several languages, or None."""
    low = " ".join(fold_text(text).split()).strip(" .!。！")
    if len(low) > 300 or _DENIES.search(
        re.sub(r"\bno (?=\w)", "no_", low) if re.search(r"\b(?:moro|mora)\b", low) else low
    ):
        return None
    for slot, pattern in _COMPILED:
        hit = pattern.fullmatch(low)
        if hit:
            of = hit.groupdict().get("of") or ""
            return f"{slot}:{of}" if of else slot, hit["v"].strip()
    return None


_FILLER = frozenset(
    words(
        "der die das den dem des le la les el los il lo o a l jetzt nun maintenant ahora agora ora mit meiner meinem und with now"
    )
)


def _one_in_other(new: str, old: str) -> bool:
    """Say whether one value contains the other: "Oslo", "Oslo mit Anna"."""
    one = set(words(new)) - _FILLER or set(new)
    other = set(words(old)) - _FILLER or set(old)
    return one <= other or other <= one
