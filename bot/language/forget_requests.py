"""Recognise requests to forget something, in several languages, and what they want forgotten.

Rule 1: a request counts only if the whole sentence is one; "do not forget" is none.
Rule 2: the topic is searched for in the person's words and, if it can be translated, in the words
        of the English fact.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.language import translation

EVERYTHING = "*"
_LONGEST = 400
_FORMS = tuple(
    LazyPattern(form, re.IGNORECASE)
    for form in (
        r"(?:please |can you |could you |you can |now )*(?:forget|delete|erase|unlearn|drop|remove)"
        r"(?: (?:about|that|the fact that|(?:what|everything|all)(?: that)? i (?:said|told you) about"
        r"|everything about|the line about|from memory))*\s++(?P<what>.+)",
        r"(?:bitte )?(?:vergiss|vergesse|lösche?|streiche?)(?! nicht\b)(?: bitte)?(?:,? dass\b|:)?"
        r"\s++(?P<what>.+)",
        r"(?:kannst|könntest) du (?:bitte )?vergessen,? dass\s++(?P<what>.+)",
        r"(?:s'il te pla[iî]t,? )?(?:oublie|efface|supprime)(?! pas\b)(?: le fait)?"
        r"(?: que? | qu'| )(?P<what>.+)",
        r"(?:por favor,? )?(?:olvida|olv[ií]date de|borra|elimina)(?: que)? (?P<what>.+)",
        r"(?:por favor,? )?(?:esque[cç][ea]|apag(?:a|ue))(?: de)?(?: que)? (?P<what>.+)",
        r"(?:per favore,? )?(?:dimentica(?:ti)?|cancella)(?: di)?(?: che)? (?P<what>.+)",
        r"(?:пожалуйста,? )?(?:забудь|удали)(?:,? что| про)? (?P<what>.+)",
        r"(?:请(?:忘记|忘掉|忘了)|忘掉)(?P<what>.+)",
        r"(?P<what>.+?)(?:のこと|こと)?を忘れて(?:ください)?",
    )
)
_EVERYTHING = LazyPattern(
    r"(?:(?:everything|all|it all|anything)(?: (?:about me|you know|about us|of it))*|me"
    r"|all (?:of )?(?:my|your) memor\w+|alles(?: über mich)?|tout(?: sur moi)?|todo(?: sobre mí)?"
    r"|tudo(?: sobre mim)?|tutto(?: su di me)?|вс[её](?: обо мне)?|一切|所有|全部|すべて|全て)",
    re.IGNORECASE,
)
_CLOSING = LazyPattern(
    r",? (?:please|thanks|thank you|bitte|danke|s'il te pla[iî]t|merci|por favor|gracias)$",
    re.IGNORECASE,
)
_GERMAN_ORDER = (
    (LazyPattern(r"(ich) (.+) (\w+)", re.IGNORECASE), r"\1 \3 \2"),
    (LazyPattern(r"(meine? \w+) (.+) (ist)", re.IGNORECASE), r"\1 \3 \2"),
)

_FORGETTING = LazyPattern(
    r"\b(?:forget|delete|erase|unlearn|remove|vergiss|vergesse|vergessen|lösch|streich|oublie|efface"
    r"|supprime|olv[ií]d|borra|elimina|esque[cç]|apag|dimentica|cancella|забудь|удали)|忘|删|消して",
    re.IGNORECASE,
)


def asks_to_forget(sentence: str) -> bool:
    """Return whether a sentence of a message that asks to forget something is one that asks."""
    return _FORGETTING.search(sentence) is not None


def topic_to_forget(plain: str) -> str:
    """Return the topic that a sentence asks to forget, ``*`` for everything; empty if none.

    Args:
        plain: The sentence without its final punctuation.
    """
    if len(plain) > _LONGEST:
        return ""
    text = plain.replace("’", "'")
    match = next((hit for form in _FORMS if (hit := form.fullmatch(text))), None)
    if match is None:
        return ""
    topic = _CLOSING.sub("", match["what"].strip())
    return EVERYTHING if _EVERYTHING.fullmatch(topic) else topic


@lru_cache(maxsize=256)
def topic_readings(topic: str) -> tuple[str, ...]:
    """Return the texts to search for: the topic itself, and its translations into facts."""
    orders = [
        topic,
        *(hit.expand(to) for order, to in _GERMAN_ORDER if (hit := order.fullmatch(topic))),
    ]
    lines = (translation.translate_statement(order, "The user") for order in orders)
    return tuple(dict.fromkeys([topic, *(line for line in lines if line)]))
