"""Compare the conversation that a client sends with what a tape tells. Pure.

Rule 1: white space does not count, and an erased message of the tape equals any message.
Rule 2: a client may have only the beginning of an answer, or more around it: what was streamed before
    it, and the commands of its buttons.
Rule 3: an answer that nobody asked for, such as a reminder, may be missing at the client.
Rule 4: of a message that the program's own words make a command, the tape has the command.
Rule 5: a client may leave out the oldest messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.agent.commands.plain_words import plain_answer, remembered_text
from bot.bus import ClientMessage, TranscriptMessage
from bot.memory.records.tombstones import ERASED_TEXT


@dataclass(frozen=True, slots=True)
class Match:
    """How far a client's past and a tape are the same.

    Attributes:
        past: The number of the client's messages that the tape has.
        told: The number of the tape's messages that they go through.
    """

    past: int
    told: int


def flat(text: str) -> str:
    """Return a text whose white space does not count."""
    return " ".join(text.split())


def match(past: Sequence[ClientMessage], told: Sequence[TranscriptMessage]) -> Match:
    """Return how far a client's past and a tape's messages, all ``flat``, are the same."""
    begun = _from(past, told, 0)
    if begun.past < min(len(past), 2) and len(past) > 1:
        # A client that cut off the beginning has the end.
        start = len(told) - len(past)
        if start > 0 and (tail := _from(past, told, start)).past == len(past):
            return tail
    return begun


def _from(past: Sequence[ClientMessage], told: Sequence[TranscriptMessage], start: int) -> Match:
    at, here = 0, start
    while at < len(past) and here < len(told):
        if is_same(past[at], told[here]):
            at, here = at + 1, here + 1
        elif is_unasked(told, here):
            here += 1
        else:
            break
    return Match(at, here)


def is_unasked(told: Sequence[TranscriptMessage], place: int) -> bool:
    """Return whether a message of a tape is the bot's, right after another one of the bot."""
    return place > 0 and told[place].author == "bot" and told[place - 1].author == "bot"


def is_same(theirs: ClientMessage, ours: TranscriptMessage) -> bool:
    """Return whether a client's message is a tape's; both are ``flat``."""
    if theirs.author != ours.author:
        return False
    if ERASED_TEXT in ours.text:
        return True
    sent, kept = theirs.text, ours.text
    if sent == kept or theirs.author == "person":
        return sent == kept or _stands_for(sent, kept)
    if not sent or not kept:
        return False
    return kept.startswith(sent) or sent.startswith(kept) or sent.endswith(kept)


def _stands_for(sent: str, kept: str) -> bool:
    """Return whether a message of a person is one that the program took for a command."""
    if not kept.startswith("/"):
        return False
    line = remembered_text(sent)
    return plain_answer(sent) is not None if line is None else kept == f"/memory add {line}"
