"""Fold text to plain lower case, and split text into words and sentences, in any language. Pure."""

from __future__ import annotations

from bot.core.patterns import LazyPattern
from bot.core.text import normalize_unicode

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´ʼ＇", "'"),
        **dict.fromkeys("“”„‟″«»「」『』", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        "œ": "oe",
        "æ": "ae",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ı": "i",
        "…": "...",
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)
_SENTENCE_END = LazyPattern(
    r"(?<![.!?…])[.!?…]++[\"')»”\]]*+(?=\s|$)|[。！？؟।]+[」』”]?|\n\s*\n\s*|\n(?=\s*(?:[-*•>]|\d+[.)])\s)"
)
_MARK = LazyPattern("[\u0300-\u036f\u0591-\u05c7\u064b-\u0652]+")
_WORD = LazyPattern(r"[^\W_]+(?:['.-][^\W_]+)*")
UNSPACED = LazyPattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)


def normalize_typography(text: str) -> str:
    """Return the text in NFKC form with plain quotes and dashes."""
    if text.isascii():
        return text.replace("`", "'")
    return normalize_unicode("NFKC", text.translate(_PLAIN)).translate(_PLAIN)


def fold_text(text: str) -> str:
    """Return the text in lower case, without accents, with plain quotes and dashes."""
    if text.isascii():
        return text.replace("`", "'").lower()
    bare = _MARK.sub("", normalize_unicode("NFD", normalize_typography(text).casefold()))
    return normalize_unicode("NFC", bare).translate(_PLAIN)


def words(text: str) -> list[str]:
    """Return the words of a folded text, in order."""
    return _WORD.findall(text)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, as written: cut at punctuation, empty lines and before list items."""
    ends = [ending.end() for ending in _SENTENCE_END.finditer(text)]
    pieces = (
        text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True)
    )
    return [piece for piece in pieces if piece]
