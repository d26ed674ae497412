"""Recognise explicit requests to remember something. Pure.

Rule 1: only an instruction at the start of the message counts ("remember that ..."), not a question
    ("do you remember that ...?"), and not quoted text.
Rule 2: the person's own words are kept, not a paraphrase.
Rule 3: orders to the assistant, by somebody who may give none, wait for a person.
"""

from __future__ import annotations

import re

from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.gate.memory_validation import memory_line
from bot.memory.gate.write_support import may_instruct
from bot.memory.records.evidence import cite
from bot.memory.records.fact import MAX_FACT_TEXT, speaker_name
from bot.memory.records.proposals import Proposal
from bot.tape.entries import TapeEntry

_ASKS = (
    # English
    r"(?:hey\s+|ok(?:ay)?,?\s+|also,?\s+|and\s+)?(?:please,?\s+|can you\s+|could you\s+)?"
    r"(?:please\s+)?(?:remember|memori[sz]e|keep in mind|make a note|don'?t forget|take note"
    r"|note down)(?:\s+(?:that(?!\s+(?:time|day|night|one|moment)\b)|this)\b\s*[:,]?|\s*:)",
    # German
    r"(?:bitte\s+)?(?:merk(?:e)?\s+dir|notier(?:e)?(?:\s+dir)?|denk(?:e)?\s+daran|vergiss\s+nicht)"
    r"(?:\s+bitte)?\s*(?:,\s*dass\b|dass\b|:)",
    # French
    r"(?:s'il te pla[iî]t,?\s+)?(?:souviens-toi|rappelle-toi|retiens|n'oublie pas)"
    r"\s*(?:bien\s+)?(?:que\b|qu'|:)",
    # Spanish, Portuguese, Italian
    r"(?:por favor,?\s+)?(?:recuerda|acu[eé]rdate(?:\s+de)?|no olvides|anota|lembra(?:-te)?"
    r"(?:\s+de)?|n[aã]o esque[cç]as?|ricorda(?:ti)?|non dimenticare)\s*(?:que\b|che\b|:)",
    # Russian, Chinese, Japanese
    r"(?:пожалуйста,?\s+)?(?:запомни|помни|не забудь)(?:,\s*что\b|\s*:)",
    r"(?:请)?记住[,，:：]?",
    r"(?:覚えておいて|覚えて)[:：、,]",
)
_ASK = LazyPattern(r"\s*(?:" + "|".join(_ASKS) + r")\s*(?P<what>\S.*)", re.IGNORECASE | re.DOTALL)
_ASKS_SOMETHING = LazyPattern(r"[?？؟](?:\s|$)")
_LONGEST_ASKED = 500


def find_explicit_memory(text: str) -> str | None:
    """Return what a message asks to remember, in the person's words; None if it asks nothing."""
    found = _ASK.match(text)
    if found is None or len(text) > _LONGEST_ASKED or _ASKS_SOMETHING.search(text):
        return None
    return to_memory_line(found["what"])


def propose_remembered_line(
    tape: str, entry: TapeEntry, line: str, quote: str | None = None
) -> Proposal:
    """Return the proposal for a line that a person orders to remember.

    Args:
        tape: Name of the tape that holds the request.
        entry: The message or command.
        line: The text to remember.
        quote: The words of the entry to cite; by default all.
    """
    evidence = cite(tape, entry, quote)
    named = evidence.origin != "member" or line.startswith(evidence.who)
    ordered = not may_instruct(entry) and contains_instructions(line)
    return Proposal(
        "add",
        line if named else f"{speaker_name(evidence.who)}: {line}",
        evidence=(evidence,),
        review_reason=Reason("order") if ordered else "",
    )


def to_memory_line(text: str) -> str | None:
    """Return a text as one line of memory: white space folded, first letter in upper case.

    Returns None if nothing is left, or the line is too long.
    """
    line = memory_line(text)
    if not line or len(line) > MAX_FACT_TEXT:
        return None
    return line[0].upper() + line[1:]
