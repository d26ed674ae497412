"""Split a text into stemmed, lower-case words for comparison, in any script. Pure."""

from __future__ import annotations

from bot.core.patterns import LazyPattern

_COMMON = frozenset(
    "a about am an and any are as at be been but by can could did do does for from had has have he "
    "her him his how i if in is it its just me my no not of on or our out she so some tell than "
    "that the their them then there they this to up us was we were what when where which who why "
    "will with would you your yours know remember said say please".split()
)
_WORDS = LazyPattern(r"[^\W_]+(?:'[^\W_]+)?")
_UNSPACED = LazyPattern(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


def stemmed_words(text: str) -> list[str]:
    """Return a text's words in lower case, stemmed, without common English words."""
    words: list[str] = []
    for word in _WORDS.findall(text.lower()):
        if not word.isascii() and _UNSPACED.search(word):
            words += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif word not in _COMMON:
            words.append(_stem(word))
    return words


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    for suffix in ("ings", "ing", "ies", "ed", "es", "s", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)] + ("y" if suffix == "ies" else "")
    return word
