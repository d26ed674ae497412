"""Recognise requests to forget something, in several languages."""

from __future__ import annotations

import re

from bot.core.patterns import LazyPattern

_FORGETTING = LazyPattern(
    r"\b(?:forget|delete|erase|unlearn|remove|vergiss|vergesse|vergessen|lösch|streich|oublie|efface"
    r"|supprime|olv[ií]d|borra|elimina|esque[cç]|apag|dimentica|cancella|забудь|удали)|忘|删|消して",
    re.IGNORECASE,
)


def asks_to_forget(sentence: str) -> bool:
    """Return whether a sentence of a message that asks to forget something is one that asks."""
    return _FORGETTING.search(sentence) is not None
