"""Extract names from a claim, and find names in a text. Pure.

Rule 1: a name is a capitalised word that does not begin a sentence, an acronym, a word with
    capitals or digits inside, a handle, or an address. By that rule German nouns are names, so a
    German claim must keep the nouns of its evidence.
Rule 2: a word that begins a sentence is a name only if it is plainly its subject.
Rule 3: a name also matches in another grammatical case, another alphabet, or, for well-known
    places, another language's form.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bot.core.folding import UNSPACED, fold_text, normalize_typography, words
from bot.core.patterns import LazyPattern
from bot.language.claim_terms import STOP, same_stem, shared_prefix_length, term
from bot.language.lexicon import KIN, MONTHS, NUMBERS, WEEKDAYS

_ADDRESS = LazyPattern(
    r"(?:https?://|www\.)[^\s<>\"]{3,300}|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}|@\w{2,64}"
)
_TOKEN = LazyPattern(r"[^\W_]+(?:['’.&+-][^\W_]+)*[+#]*")
_UNIT = LazyPattern(r"uhr|[ckm]?m[23]|\d+[a-z]{1,3}")
_ENDS = frozenset('.!?。！？:"“„«([')
_SUBJECT_OF = frozenset(
    """
    is was has had are were lives works likes loves wants moved hates owns plays studies speaks died
    prefers visits comes drives eats drinks teaches collects called named and or hat ist wohnt war
    lebt arbeitet mag heisst est a habite vit travaille aime etait es vive trabaja tiene fue e abita
    ha lavora mora tem trabalha foi gosta живет работает любит и et und y
    """.split()
)
_PLAIN_STARTS = frozenset(
    """
    allergic works lives likes born married moved prefers name birthday since every once today there
    favourite favorite wants has says dislikes hates owns plays studies vegetarian job
    while after before although though when because as if during despite until unless whereas instead
    besides both neither either according
    idea plan wish note goal decision preference possibly maybe perhaps
    idee wunsch notiz ziel entscheidung vorliebe vielleicht souhait deseo desiderio desejo ideia plano piano
    идея план желание решение ідея бажання рішення
    """.split()
)
_TITLES = frozenset(
    "mr mrs ms dr prof sir herr frau monsieur madame mme senor senora signor signora dona don st i".split()
)
_SAME_NAMES = (
    "rome rom roma рим rzym 罗马 ローマ", "vienna wien vienne viena вена 维也纳 ウィーン",
    "munich munchen monaco мюнхен 慕尼黑 ミュンヘン", "cologne koln colonia кельн 科隆", "milan mailand milano милан 米兰",
    "lisbon lissabon lisbonne lisboa lisbona лиссабон 里斯本", "warsaw warschau varsovie varsovia varsavia warszawa варшава",
    "prague prag praga praha прага 布拉格", "moscow moskau moscou moscu mosca москва 莫斯科 モスクワ", "london londres londra лондон 伦敦 ロンドン",
    "paris parigi париж 巴黎 パリ", "geneva genf geneve ginebra ginevra женева", "zurich zuerich zurigo цюрих 苏黎世",
    "turin torino турин", "florence florenz florencia firenze флоренция", "venice venedig venise venecia venezia венеция", "naples neapel napoli napoles неаполь",
    "brussels brussel bruxelles bruselas bruxelas брюссель", "athens athen athenes atenas atene афины αθηνα", "copenhagen kopenhagen copenhague kobenhavn копенгаген",
    "seville sevilla", "hamburg гамбург 汉堡", "berlin берлин 柏林 ベルリン berlino berlim", "oslo осло 奥斯陆 オスロ", "madrid мадрид 马德里",
    "beijing peking pekin pechino pequim пекин 北京", "shanghai шанхай 上海", "tokyo tokio токио 东京 東京", "osaka 大阪 осака", "kyoto 京都 киото",
    "seoul seul сеул 首尔 서울 ソウル", "busan 부산", "shenzhen 深圳", "hangzhou 杭州", "guangzhou 广州", "chengdu 成都", "nanjing 南京", "wuhan 武汉", "taipei 台北", "hong-kong 香港",
    "cairo kairo caire القاهرة каир", "dubai دبي", "istanbul estambul стамбул", "nyc new-york 纽约 ニューヨーク", "jerusalem ירושלים", "haifa חיפה", "bangkok กรุงเทพ", "delhi दिल्ली",
    "nagoya 名古屋", "sapporo 札幌", "fukuoka 福岡", "yokohama 横浜", "kobe 神戸", "tel-aviv תל-אביב",
    "germany deutschland allemagne alemania germania alemanha германия 德国 ドイツ", "france frankreich francia franca франция 法国 フランス",
    "spain spanien espagne espana spagna espanha испания 西班牙", "italy italien italie italia италия 意大利 イタリア", "poland polen pologne polonia polska польша",
    "austria osterreich autriche австрия", "switzerland schweiz suisse suiza svizzera suica швейцария 瑞士", "russia russland russie rusia россия 俄罗斯",
    "china chine cina китай 中国", "japan japon giappone japao япония 日本", "norway norwegen norvege noruega norvegia норвегия", "sweden schweden suede suecia svezia швеция",
    "portugal portogallo португалия", "greece griechenland grece grecia греция", "brazil brasilien bresil brasil brasile бразилия", "turkey turkei turquie turquia turchia",
    "usa us united states america amerika etats-unis estados-unidos america сша америка 美国 アメリカ", "england angleterre inglaterra inghilterra англия", "uk britain grossbritannien",
    "german deutsch deutscher deutsche allemand alemand aleman tedesco alemao немецкий немец 德语 ドイツ語", "english englisch anglais ingles inglese английский 英语 英語",
    "french franzosisch francais frances francese французский 法语 フランス語", "spanish spanisch espagnol espanol spagnolo espanhol испанский 西班牙语", "italian italienisch italien italiano итальянский",
    "russian russisch russe ruso russo русский 俄语", "chinese chinesisch chinois chino cinese chines китайский 中文", "japanese japanisch japonais japones giapponese японский 日语 日本語",
    "portuguese portugiesisch portugais portugues portoghese", "polish polnisch polonais polaco polacco polski", "dutch niederlandisch neerlandais holandes olandese nederlands",
    "swedish schwedisch suedois sueco svedese", "norwegian norwegisch norvegien noruego norvegese", "turkish turkisch turc turco турецкий", "arabic arabisch arabe arabo العربية",
    "street st strasse", "road rd",
    "tv television fernseher fernsehen tele", "christmas weihnachten noel navidad natale natal рождество", "easter ostern paques pascua pasqua пасха",
    "swiss schweizer suisse", "university universitat universite universidad universita universidade университет", "christian christlich chretien",
)  # fmt: skip
_FORMS: dict[str, tuple[str, ...]] = {}
for _row in _SAME_NAMES:
    _forms = tuple(fold_text(_row).split())
    for _form in _forms:
        _FORMS[_form] = _FORMS.get(_form, ()) + _forms
_CYRILLIC = str.maketrans(
    {
        **dict(zip("абвгдезиклмнопрстуфыэ", "abvgdeziklmnoprstufye", strict=True)),
        "ж": "zh", "и": "i", "х": "h", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "sch", "ъ": "", "ь": "", "ю": "yu", "я": "ya",
        "і": "i", "ї": "i", "є": "e", "ґ": "g", "ё": "e",
        **dict(zip("αβγδεζηικλμνοπρστυωφ", "avgdeziiklmnoprstyof", strict=True)), "θ": "th", "ξ": "x", "ς": "s", "χ": "ch", "ψ": "ps",
    }
)  # fmt: skip
_INFLECTED = frozenset(
    """
    a e i o u y ya s n en em er es ie ii ia iej ej om ow owi ami ach ego ina in m ne ns ens is sch h ish
    isch а у е ы и о ю я ь ой ом ем ей ев ов ам ами ах ях ии ию ия иу ья ье
    """.split()
)  # fmt: skip


def extract_names(claim: str) -> list[str]:
    """Return the names in a claim as written, each once."""
    text = normalize_typography(claim)
    names = _ADDRESS.findall(text)
    text = _ADDRESS.sub(" ", text)
    tokens = list(_TOKEN.finditer(text))
    for at, token in enumerate(tokens):
        word = token.group()
        after = tokens[at + 1].group() if at + 1 < len(tokens) else ""
        before = text[max(0, token.start() - 6) : token.start()]
        trimmed = before.rstrip()
        titled = at and fold_text(tokens[at - 1].group()) in _TITLES
        begins = not at or (trimmed[-1:] in _ENDS and not titled) or "\n" in before[len(trimmed) :]
        if _is_name(word, after, begins=begins):
            names.append(word)
    return list(dict.fromkeys(names))


def _is_name(word: str, after: str, *, begins: bool) -> bool:
    low = fold_text(word).removesuffix("'s")
    if (
        _UNIT.fullmatch(low)
        or low in MONTHS
        or low in WEEKDAYS
        or low in NUMBERS
        or low in _TITLES
        or low.isdecimal()
    ):
        return False
    letters = [sign for sign in word if sign.isalpha()]
    if not letters or UNSPACED.search(word):
        return False
    inner = any(sign.isupper() for sign in word[1:].replace("'S", ""))
    if inner or (any(sign.isdecimal() for sign in word) and not word[0].isdecimal()):
        return True
    if not word[0].isupper() or low in STOP:
        return False
    if not begins:
        return True
    if low in _PLAIN_STARTS or term(low) in KIN.values():
        return False
    if fold_text(after) in ("a", "e", "y", "o"):
        return False
    return fold_text(after) in _SUBJECT_OF or word.endswith("'s") or after[:1].isupper()


class NameMatcher:
    """The words of a text; membership finds a name in any of its forms."""

    def __init__(self, text: str) -> None:
        low = fold_text(text)
        self._text = low
        self._squeezed = re.sub(r"[\W_]+", "", low)
        forms: set[str] = set()
        for word in words(low):
            forms |= {word, word.removesuffix("'s"), *re.split(r"[-'.]", word)}
        # Nothing separates Latin words from a script without spaces.
        forms |= set(_ASCII.findall(low))
        forms |= {transliterate(word) for word in forms}
        forms.discard("")
        self._words = forms
        self._sounds = {_sound(transliterate(word)) for word in forms if not word[0].isascii()}
        self._begun: dict[str, list[str]] = {}
        for word in forms:
            self._begun.setdefault(word[:3], []).append(word)

    def __contains__(self, name: object) -> bool:
        """Return whether the text has the name, in any form."""
        if not isinstance(name, str):
            return False
        low = fold_text(name).removesuffix("'s").removesuffix("'")
        if "://" in low or "@" in low or low.startswith("www."):
            return low.rstrip("./") in self._text or low.removeprefix("@") in self._words
        if self._has_form(low) or any(self._has_other_form(low)) or _sound(low) in self._sounds:
            return True
        parts = [part for part in re.split(r"[-'.&+]", low) if part]
        if len(parts) > 1 and all(self._has_form(part) for part in parts):
            return True
        return len(low) >= 5 and re.sub(r"[\W_]+", "", low) in self._squeezed and not low.isalpha()

    def _has_form(self, low: str) -> bool:
        if low in self._words:
            return True
        own = transliterate(low)
        return any(
            is_inflected_form(own, word) for word in self._begun.get(own[:3], ())[:300]
        ) or any(
            is_inflected_form(low, word) or _is_of_place(low, word)
            for word in self._begun.get(low[:3], ())[:300]
        )

    def _has_other_form(self, low: str) -> list[bool]:
        hits = []
        for form in _FORMS.get(low, ()) or _FORMS.get(transliterate(low), ()):
            if UNSPACED.search(form) or "-" in form or not form[0].isascii():
                hits.append(form.replace("-", " ") in self._text or self._has_form(form))
            else:
                hits.append(self._has_form(form))
        return hits


_ASCII = LazyPattern(r"[a-z0-9]+")
_FROM_THERE = LazyPattern(
    r"(?<=....)(?:(?P<tells>ian[aoes]?|ien(?:ne)?s?|iano|iana|ese|ense|isch\w{0,2}|ish|sk(?:iy|ij|omu|ogo|om|aya|uyu|oy)|ski\w?)|[aeiou]|ii)?$"
)


def _is_of_place(first: str, second: str) -> bool:
    """Return whether two words are a place and its adjective, or two such: Kazan, kazanskiy."""
    ends = _FROM_THERE.search(first), _FROM_THERE.search(second)
    if ends[0] is None or ends[1] is None or not any(end and end["tells"] for end in ends):
        return False
    return first[: ends[0].start()] == second[: ends[1].start()]


_SPELLINGS = tuple(pair.split(":") for pair in "ph:f ck:k x:ks w:v c:k y:i j:i h:".split())


@lru_cache(maxsize=8192)
def _sound(word: str) -> str:
    """Return a rough phonetic form of a word, equal for transliterations of one name."""
    for written, sound in _SPELLINGS:
        word = word.replace(written, sound)
    return re.sub(r"(.)\1", r"\1", word)


@lru_cache(maxsize=8192)
def transliterate(word: str) -> str:
    """Return a folded Cyrillic or Greek word in Latin letters."""
    return word.translate(_CYRILLIC)


def is_inflected_form(first: str, second: str) -> bool:
    """Return whether two words are one name in different grammatical cases."""
    if first == second:
        return True
    shared = shared_prefix_length(first, second)
    ends = first[shared:], second[shared:]
    if not all(not end or end in _INFLECTED for end in ends):
        return False
    return same_stem(first, second) or (
        shared >= 3
        and max(map(len, ends)) <= 2
        and not first[0].isascii()
        and not second[0].isascii()
    )
