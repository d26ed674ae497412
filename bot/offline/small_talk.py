"""Recognise small talk, bad news, and questions about date and time.

Rule 1: only a whole short message is small talk; the caller excludes one that also states or asks
        something.
Rule 2: date and time come from the header of the message.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Literal

from bot.agent.texts import long_day
from bot.core.i18n import _, format_time
from bot.core.patterns import LazyPattern
from bot.language.grammatical_person import expand

SmallTalk = Literal["about", "hello", "thanks", "bye", "clock", "ok", "wrong", "insult"]

_SMALL_TALK: dict[SmallTalk, LazyPattern] = {
    "about": LazyPattern(
        r".{0,20}\b(?:who|what) are you\b.{0,20}|what can you do.{0,20}|help(?: me)?|/?start"
        r"|how do(?:es)? (?:you|this) work|wer bist du|qui es-tu|quién eres"
        r"|are you (?:an? )?(?:ai|bot|robot|human|llm|language model|chatgpt|real)\b.{0,30}",
        re.IGNORECASE,
    ),
    "hello": LazyPattern(
        r"(?:hi|hello|hey|hiya|yo|good (?:morning|evening|afternoon|day)|greetings|hallo|moin|servus"
        r"|guten (?:tag|morgen|abend)|bonjour|bonsoir|salut|hola|buenos días|buenas tardes|ciao|olá"
        r"|привет|مرحبا)\b.{0,25}|how are you.{0,20}|how is it going|what is up|你好|こんにちは",
        re.IGNORECASE,
    ),
    "thanks": LazyPattern(
        r"(?:many |great, |perfect, )?(?:thanks|thank you|thx|cheers|danke|merci|gracias)\b.{0,30}",
        re.IGNORECASE,
    ),
    "bye": LazyPattern(
        r"(?:bye|goodbye|good night|see you|tschüss|auf wiedersehen|au revoir|adiós|cya)\b.{0,20}",
        re.IGNORECASE,
    ),
    "clock": LazyPattern(
        r"(?:what|which) (?:time|day|date)(?: of the week)? (?:is it|is today|do we have)(?: .{0,20})?"
        r"|what is (?:the )?(?:current )?(?:time|date|day)(?: (?:now|today|right now|please))*"
        r"|what is (?:it )?today(?:'s date)?|(?:do you know |tell me )?what (?:time|day) it is(?: .{0,20})?",
        re.IGNORECASE,
    ),
    "ok": LazyPattern(
        r"(?:(?:ok|okay|k|lol|haha\w*|no|nope|yes|yeah|yep|sure|fine|cool|great|nice|hm+|ah|oh|alright|wow"
        r"|got it|i see|never mind|all right|perfect|good)(?:[ ,.!]+|$)){1,4}",
        re.IGNORECASE,
    ),
    "wrong": LazyPattern(
        r"(?:no,? )?(?:you(?: are|'re|re)?|that(?: is|s)?|this is|it is) (?:all |so |just |completely )?"
        r"(?:wrong|mistaken|incorrect|false|not (?:right|true|correct))",
        re.IGNORECASE,
    ),
    "insult": LazyPattern(
        r"(?:you(?: are|'re|re)?|u r|what an?|this is|this bot is) (?:an? |so |such |really |very |just "
        r"|fucking |complete |bloody )*(?:stupid|dumb|useless|idiot|moron|crap|trash|garbage|shit|terrible"
        r"|worthless|annoying|awful|suck)\b.{0,30}|(?:fuck|screw) (?:you|off|this)|shut up|i hate you"
        r"|stupid (?:bot|thing|machine)|idiot",
        re.IGNORECASE,
    ),
}
_BAD_NEWS = LazyPattern(
    r"\b(?:passed away|died|funeral|heartbroken|was fired|got fired|lost my (?:job|mother|father|mum|mom|dad"
    r"|wife|husband|son|daughter|brother|sister|baby)|(?:am|feel|feeling) (?:so |really |very |a bit |quite )*"
    r"(?:sad|depressed|lonely|miserable|hopeless|awful|terrible)|has cancer|have cancer|broke up with)\b",
    re.IGNORECASE,
)


def small_talk_kinds(plain: str) -> tuple[SmallTalk, ...]:
    """Return the kinds of small talk that a message may be, in the order in which they are tried.

    Args:
        plain: The message with contractions written out.
    """
    if len(plain) > 80:
        return ()
    return tuple(name for name, pattern in _SMALL_TALK.items() if pattern.fullmatch(plain))


def is_bad_news(text: str) -> bool:
    """Return whether a person reports a loss, an illness or sadness."""
    return bool(_BAD_NEWS.search(expand(text[:4000])))


def describe_time(day: str, time: str) -> str:
    """Return the date and time of a message's header as a sentence."""
    if not day:
        return _("I see no clock here: your message came without a date.")
    weekday = long_day(date.fromisoformat(day))
    if not time:
        return _("It is {day}.", day=weekday)
    clock = format_time(datetime.fromisoformat(f"{day}T{time}"))
    return _("It is {time} on {day}.", time=clock, day=weekday)
