"""Recognise messages that the program's own words make a command: a yes, a no, "remember: ...". Pure.

Rule 1: the words are those of the catalogues, in any language that the program speaks; case, accents
    and punctuation around them do not count, and nothing else is read out of a message.
"""

from __future__ import annotations

from functools import cache

from bot.agent.commands.parser import ParsedCommand, parse_command
from bot.core.folding import fold_text
from bot.core.i18n import N_, every_translation

REMEMBER = N_("remember:")
"""How a line begins that is saved as a fact."""

_YES, _NO = N_("yes"), N_("no")
_LONGEST = 40
_AROUND = " .,:;!。！、，：،\n\t"


def plain_answer(text: str) -> bool | None:
    """Return True for a text that only says yes, False for one that only says no, else None."""
    if len(text) > _LONGEST:
        return None
    said = _plain(text)
    return True if said in _words(_YES) else False if said in _words(_NO) else None


def remembered_text(text: str) -> str | None:
    """Return what a message asks to save as a fact; None if it asks nothing."""
    head, colon, rest = text.replace("：", ":", 1).partition(":")
    asks = colon and len(head) <= _LONGEST and _plain(head) in _words(REMEMBER)
    return (rest.strip() or None) if asks else None


def remembering_command(text: str) -> ParsedCommand | None:
    """Return the command that saves as a fact what a message asks to remember; None if it asks nothing."""
    line = remembered_text(text)
    return parse_command(f"/memory add {line}") if line else None


@cache
def _words(message: str) -> frozenset[str]:
    return frozenset(map(_plain, every_translation(message)))


def _plain(text: str) -> str:
    return " ".join(fold_text(text).split()).strip(_AROUND)
