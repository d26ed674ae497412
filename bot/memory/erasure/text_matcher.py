"""Match text that repeats erased words, pairs of characters or passages. Pure.

Rule 1: case, width, invisible characters and JSON escapes make no difference.
Rule 2: a word matches whole; one of five or more letters also inside a longer word, so that no
    ending hides it. Scripts without spaces are compared by pairs of characters.
Rule 3: words that also occur in people's texts that stay do not count as repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bot.core.patterns import LazyPattern
from bot.core.text import normalize_unicode
from bot.memory.records.stemming import stemmed_words

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
)
_TOKEN = LazyPattern(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}_])[\w{_MARKS}])+")
_RUN = LazyPattern(rf"[{_UNSPACED}]+")
_UNSEEN = LazyPattern(r"[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_ESCAPE = LazyPattern(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
MAX_ESCAPE_DEPTH = 3
"""Levels of JSON escaping that are decoded: a tool's arguments are JSON within JSON."""

_YEAR = LazyPattern(r"(?:19|20)\d\d")
_SHORTEST = 3
_SHORTEST_WITHIN = 5
_SHORTEST_PASSAGE = 8
_FEW = 50

# If these counted, one erased sentence would match half of all that the assistant wrote.
_COMMON = frozenset(
    "about after again all also and any are because been before being between both but can cannot "
    "could did does doing done down each even every few first for from get gets give go goes going "
    "good got had has have having her here hers him his how into its just keep know let like likes "
    "live lives long made make many may might more most much must name need never new next not now "
    "off often old once one only other our out over own people please really remember right said "
    "same say says see she should since some something still such take tell than thank thanks that "
    "the their them then there these they thing things think this those three through time today "
    "together told tomorrow too took two under until use used user users very want wants was way "
    "well went were what when where which while who whom whose why will with work works would year "
    "years yes yesterday yet you your yours everything "
    "ain aren couldn didn doesn don hadn hasn haven isn mustn needn shouldn wasn weren wouldn "
    "add clear delete edit erase forget forgets forgot forgotten memory message messages remove "
    "vergiss vergessen oublie oublier olvida olvidar dimentica esquece забудь "
    "aber alle auch auf aus bei bin bist das dass dein dem den der des die dir doch dort durch ein "
    "eine einem einen einer eines für habe haben hast hat heute hier ich ihr ihre immer ist jetzt "
    "kann kein keine mehr mein meine meinem meinen meiner mit nach nicht noch nur oder schon sehr "
    "sein seine sich sie sind und uns unser von vom war was weil wenn wer wie wir wird wohne wohnt "
    "zum zur "
    "avec aux ces cet cette chez comme dans des est elle elles ils les leur mais mes mon nous par "
    "pas plus pour que qui sans ses son sont sur très une vous "
    "como con cuando del donde ella ellos este esta están hay las los más mis muy para pero por "
    "porque qué ser soy sus también tiene una uno vivo yo "
    "alla anche che chi con dei del della delle gli non nel nella per più sono sua suo una "
    "com como dos das ele ela eles mais meu minha não para por que seu sua uma você "
    "был была было быть вас ваш вот все для его ее если есть еще или как когда мне мой моя мы над "
    "нас нет них она они при так там тебя только тут уже что чтобы эта это этот".split()
)
_COMMON_PAIRS = frozenset(
    "です ます ませ まし した して しま いま った って ので から まで など では には とは との のが のは "
    "のを には こと もの よう そう どう この その あの ここ そこ とき ため ない なり なっ なる ある あり いる "
    "いた いて する され れる られ くだ ださ さい んで だっ たい いう 我们 你们 他们 这个 那个 什么 可以 没有 "
    "一个 的是 是的 了我 我的 你的 습니 니다 하는 있는 합니 입니 이에 에서 으로 했습 있습 는것".split()
)


def normalize_for_match(text: str) -> str:
    """Return a text in lower case and NFKC form, without invisible characters."""
    if text.isascii():
        return text.lower()
    plain = normalize_unicode("NFKC", normalize_unicode("NFKC", text).casefold())
    return _UNSEEN.sub("", plain)


def match_tokens(text: str) -> list[str]:
    """Return the words of a normalized text; a run of a script without spaces is one token."""
    return _TOKEN.findall(text)


def unescaped_variants(text: str) -> Iterator[str]:
    """Yield a text normalized, first as it is and then with each level of JSON escapes decoded."""
    for _ in range(MAX_ESCAPE_DEPTH + 1):
        yield normalize_for_match(text)
        if "\\" not in text:
            return
        text = unescape_json(text)


def is_unspaced(token: str) -> bool:
    """Return whether a token is a run of a script without spaces."""
    return _RUN.match(token) is not None


@dataclass(slots=True)
class TextMatcher:
    """Words, pairs of characters and passages that identify a repetition.

    Attributes:
        words: Normalized words.
        pairs: Pairs of characters of scripts without spaces.
        passages: Whole facts and quotes, as returned by ``pad_words``.
        together: Normalized words of which one alone identifies nothing, but two do.
        staying: Words that were removed, because texts that stay hold them.
    """

    words: set[str] = field(default_factory=set)
    pairs: set[str] = field(default_factory=set)
    passages: set[str] = field(default_factory=set)
    together: set[str] = field(default_factory=set)
    staying: set[str] = field(default_factory=set)
    _within: dict[str, list[str]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Build the index that finds words inside longer ones."""
        for word in self.words:
            self._note(word)

    @property
    def empty(self) -> bool:
        """Whether nothing can match."""
        return not (self.words or self.pairs or self.passages or self.together)

    def add_text(self, text: str, *, passage: bool = False) -> None:
        """Add the distinctive words and pairs of an erased text.

        Args:
            text: The erased text.
            passage: Also match the text as a whole, unless it is very short.
        """
        plain = normalize_for_match(text)
        for token in match_tokens(plain):
            if is_unspaced(token):
                self.pairs |= {pair for pair in _pairs(token) if pair not in _COMMON_PAIRS}
            elif _tells(token):
                self.words.add(token)
                self._note(token)
        if passage:
            self.add_passage(text)

    def add_passage(self, text: str) -> None:
        """Add an erased text as a whole, unless it is very short."""
        whole = pad_words(normalize_for_match(text))
        if len(whole) >= _SHORTEST_PASSAGE:
            self.passages.add(whole)

    def remove_text(self, text: str) -> None:
        """Remove the words, pairs and passages that occur in a text that stays."""
        plain = normalize_for_match(text)
        for token in match_tokens(plain):
            if is_unspaced(token):
                self.pairs.difference_update(_pairs(token))
            else:
                held = self.words.intersection((token, *self._inside(token)))
                self.words -= held
                self.staying |= held
        if self.passages:
            whole = pad_words(plain)
            self.passages = {passage for passage in self.passages if passage not in whole}

    def matches(self, text: str) -> bool:
        """Return whether a text repeats any word, pair or passage."""
        return not self.empty and any(
            self._in(plain) or self._says_two(plain) for plain in unescaped_variants(text)
        )

    def spans(self, text: str) -> bool:
        """Return whether a text of which no part matches does so as a whole.

        Two words of ``together`` do not count: what stands in two parts is not said together.
        """
        return not self.empty and any(self._in(plain) for plain in unescaped_variants(text))

    def all_texts(self) -> list[str]:
        """Return all words, pairs and passages, sorted."""
        return sorted((*self.words, *self.pairs, *self.passages))

    def copy(self) -> TextMatcher:
        """Return an independent copy."""
        return TextMatcher(
            set(self.words),
            set(self.pairs),
            set(self.passages),
            set(self.together),
            set(self.staying),
        )

    def _in(self, plain: str) -> bool:
        if self._says_word(plain):
            return True
        if not self.passages:
            return False
        whole = pad_words(plain)
        return any(passage in whole for passage in self.passages)

    def _says_word(self, plain: str) -> bool:
        few = not self.pairs and len(self.words) <= _FEW
        if few and not any(word in plain for word in self.words):
            # A cheap test rules out nearly all texts.
            return False
        for token in match_tokens(plain):
            if is_unspaced(token):
                if self.pairs and not self.pairs.isdisjoint(_pairs(token)):
                    return True
            elif token in self.words or next(self._inside(token), None) is not None:
                return True
        return False

    def _says_two(self, plain: str) -> bool:
        if sum(word in plain for word in self.together) < 2:
            return False
        tokens = match_tokens(plain)
        said = (any(_is_form(token, word) for token in tokens) for word in self.together)
        return sum(said) > 1

    def _inside(self, token: str) -> Iterator[str]:
        if len(token) <= _SHORTEST_WITHIN or not self._within:
            return
        for at in range(len(token) - _SHORTEST_WITHIN + 1):
            for word in self._within.get(token[at : at + _SHORTEST_WITHIN], ()):
                if word in self.words and token.startswith(word, at):
                    yield word

    def _note(self, word: str) -> None:
        if len(word) >= _SHORTEST_WITHIN:
            found = self._within.setdefault(word[:_SHORTEST_WITHIN], [])
            if word not in found:
                found.append(word)


def _is_form(token: str, word: str) -> bool:
    """Return whether a token is a word, or a longer one with a word of five or more letters in it."""
    return token == word or (len(word) >= _SHORTEST_WITHIN and word in token)


def pad_words(plain: str) -> str:
    """Return the words of a normalized text joined by single spaces, with one at either end."""
    return f" {' '.join(match_tokens(plain))} "


def distinctive_words(words: Iterable[str]) -> list[str]:
    """Return the words that are not common; all of them if all are common."""
    found = list(dict.fromkeys(words))
    return [one for one in found if one not in _COMMON and stemmed_words(one)] or found


def _tells(token: str) -> bool:
    if len(token) < _SHORTEST or token in _COMMON or not stemmed_words(token):
        return False
    # A year would match every date in it.
    return _YEAR.fullmatch(token) is None


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


def unescape_json(text: str) -> str:
    """Return a text with one level of JSON escapes decoded, escaped white space as a space."""

    def plain(found: re.Match[str]) -> str:
        code, sign = found.groups()
        if code:
            return chr(int(code, 16))
        return " " if sign in "nrtbf" else str(sign)

    # JSON escapes characters beyond the basic plane as surrogate pairs.
    halves = _ESCAPE.sub(plain, text).encode("utf-16", "surrogatepass")
    return halves.decode("utf-16", "replace")
