"""Sentences of the offline responder, and how its own replies are recognised.

Rule 1: a sentence says that the responder is no language model, and never promises what was not done.
Rule 2: a reply is recognised in every language, also one that was given before the language changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from functools import cache

from bot.core.i18n import N_, _, every_translation, format_date, format_datetime
from bot.core.patterns import LazyPattern

YOU_SAID = N_("You said on {when}: {quote}")
OTHER_SAID = N_("{who} said on {when}: {quote}")
I_SAID = N_("I said on {when}: {quote}")
CHANGED = N_("That changed. Before, on {when}: {quote}")
NOTED = N_("Noted: {quote}")
KNOWN = N_("I have that already: {quote}")
REMEMBERED = N_("I'll remember that: {quote}")
UNKNOWN = N_("I don't know that yet.")
NEVER_TOLD = N_("No, I don't know anything about that yet.")
TELL_ME = N_("Tell me, and I will remember it.")
CLOSEST = N_("The closest thing I was told:")
FORGOTTEN = N_("Forgotten: {quote}.")
NOTHING_TO_FORGET = N_("I found nothing about that to forget.")
FOUND_TO_FORGET = N_("I found this.")
SORRY = N_("I'm sorry.")
ALL_KNOWN = N_("This is what I know:")
NOT_SAVED = N_("I could not save that: {why}")
NOT_FORGOTTEN = N_("I could not forget that: {why}")
ERASE_ALL = N_(
    "To erase all of my memory, send `/memory clear`. I do not do that for a plain message."
)
NO_MODEL = N_(
    "I am tapebot's offline responder, not a language model: I remember what you tell me and look it "
    "up. For a real model, set `TAPEBOT_MODEL` in `.env`."
)
HELP = N_(
    'Tell me something about you ("My sister Eva lives in Oslo.") and ask me later ("Where does my '
    'sister live?"). I also list what I know ("What do you know about me?") and forget it ("Forget '
    'my sister.").'
)
NEEDS_MODEL = N_(
    "That needs a language model, and I am the offline responder: I only remember what I am told and "
    "look it up. To use a real model, set `TAPEBOT_MODEL` in `.env`, e.g. "
    "`TAPEBOT_MODEL=openai/gpt-5-mini` or any other litellm model name."
)
NOTHING_FOUND = N_(
    "I found nothing in that to note or to look up. I am the offline responder, not a language model: "
    "tell me facts about you, or ask me about what you told me."
)

_OWN_REPLIES = (
    *(YOU_SAID, OTHER_SAID, I_SAID, CHANGED, NOTED, KNOWN, REMEMBERED, UNKNOWN, NEVER_TOLD),
    *(FORGOTTEN, NOTHING_TO_FORGET, NOT_SAVED, NOT_FORGOTTEN, ERASE_ALL),
    *(ALL_KNOWN, NO_MODEL, NEEDS_MODEL, NOTHING_FOUND),
)
# for the parser
_OF_EARLIER_VERSIONS = r"offline responder|\bsaid on \d{4}|\A(?:I could not|My )"
_VALUE = LazyPattern(r"\{\w+\}")
_MARKS = " .:：。„“”«»「」\"'_"
_LONGEST_VALUE = 60


def quote(text: str, limit: int = 280) -> str:
    """Return a text in quotation marks on one line, shortened to ``limit`` characters."""
    flat = " ".join(text.split())
    cut = flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
    return _('"{text}"', text=cut)


def shown_time(when: str) -> str:
    """Return a day, perhaps with its time of day, as the current language writes it."""
    try:
        if len(when) <= len("2026-01-01"):
            return format_date(date.fromisoformat(when))
        return format_datetime(datetime.fromisoformat(when))
    except ValueError:
        return when or "?"


def is_own_reply(text: str) -> bool:
    """Return whether a text of the assistant is a reply that only repeats what was said."""
    return bool(_own_replies().search(text))


@cache
def _own_replies() -> re.Pattern[str]:
    lines = _any_of(_OWN_REPLIES)
    # A quotation may follow a fact in the same line.
    return re.compile(
        rf"{_OF_EARLIER_VERSIONS}|(?:^|[.!?。] )_?(?:{lines})",
        re.MULTILINE,
    )


@cache
def replies_pattern(*messages: str) -> re.Pattern[str]:
    """Return a pattern that finds lines that begin with one of these messages, in any language."""
    sorry = "|".join(map(re.escape, sorted(every_translation(SORRY))))
    return re.compile(rf"^(?:(?:{sorry}) )?_?(?:{_any_of(messages)})", re.MULTILINE)


def _any_of(messages: Iterable[str]) -> str:
    return "|".join(sorted(set(map(_line_pattern, every_translation(*messages)))))


def _line_pattern(message: str) -> str:
    """Return a pattern of a message up to its last value, which may be whatever was said."""
    parts = [re.escape(part.strip(_MARKS)) for part in _VALUE.split(message)]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return rf"[^\n]{{1,{_LONGEST_VALUE}}}?".join(parts)
