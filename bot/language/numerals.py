"""Convert number words and numerals of several languages to digits. Pure."""

from __future__ import annotations

import re
import unicodedata

from bot.core.patterns import LazyPattern
from bot.language.lexicon import NUMBERS

CJK_NUMBER = LazyPattern(r"[一二两兩三四五六七八九十百千零〇]+")
_CJK_VALUES = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {
    "两": 2, "兩": 2, "〇": 0,
}  # fmt: skip
_CJK_PLACES = {"十": 10, "百": 100, "千": 1000}
_LINK = LazyPattern(r"[ -](?:(?:and|und|et|y|e) )?(?=\w)")
_SPELLED = LazyPattern(r"[^\W\d_]+")


def with_digits(text: str) -> str:
    """Return a folded text with number words written as digits."""
    text = "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() and not sign.isascii() else sign
        for sign in text
    )
    text = CJK_NUMBER.sub(lambda run: cjk_to_digits(run.group()), text)
    out: list[str] = []
    at = 0
    for word in re.finditer(r"[^\W\d_]+(?:-[^\W\d_]+)*", text):
        if word.start() < at:
            continue
        value, end = _spelled(text, word)
        if value is not None:
            out += [text[at : word.start()], str(value)]
            at = end
    return "".join([*out, text[at:]])


def cjk_to_digits(run: str) -> str:
    """Return a run of Chinese numerals as digits."""
    total, digit = 0, 0
    if not any(sign in _CJK_PLACES for sign in run):
        return "".join(str(_CJK_VALUES[sign]) for sign in run)
    for sign in run:
        if sign in _CJK_PLACES:
            total, digit = total + (digit or 1) * _CJK_PLACES[sign], 0
        else:
            digit = _CJK_VALUES[sign]
    return str(total + digit)


def _spelled(text: str, first_word: re.Match[str]) -> tuple[int | None, int]:
    """Return the value of the number words that begin here, and where they end."""
    value = NUMBERS.get(first_word.group())
    end = first_word.end()
    if value is None:
        first = _SPELLED.match(text, first_word.start())
        value = NUMBERS.get(first.group()) if first else None
        end = first.end() if first else end
    if value is None or value == 1:
        hundred = _LINK.match(text, end) if value == 1 else None
        more = _SPELLED.match(text, hundred.end()) if hundred else None
        if more is None or NUMBERS.get(more.group(), 0) < 100:
            return None, end
    for _ in range(4):
        link = _LINK.match(text, end)
        more = _SPELLED.match(text, link.end()) if link else None
        part = NUMBERS.get(more.group()) if more else None
        if part is None or more is None or value is None:
            break
        if value == 4 and part == 20:
            value = 80
        elif part in (100, 1000) and value < part:
            value *= part
        elif (
            (value % 100 in range(20, 100, 10) and 0 < part < 10)
            or (value % 100 in (60, 80) and 10 <= part < 20)
            or (value >= 100 and value % 100 == 0 and 0 < part < 100)
        ):
            value += part
        else:
            break
        end = more.end()
    return value, end
