"""Propose what a person explicitly asks the bot to remember. Pure.

Rule 1: in a group the text starts with the speaker's name, so that "I" is unambiguous.
Rule 2: in a group, instructions to the assistant need an owner; from others they wait for review.
"""

from __future__ import annotations

from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.evidence import cite
from bot.memory.records.proposals import Proposal
from bot.memory.records.transcript import is_owner, speaker_label
from bot.tape.entries import TapeEntry

INSTRUCTION_REFUSED = "it tells the assistant what to do, and an owner did not say it"


def propose_remembered_line(
    tape: str, entry: TapeEntry, line: str, quote: str | None = None
) -> Proposal:
    """Return the proposal for a line that a person asks to remember.

    Args:
        tape: Name of the tape that holds the request.
        entry: The message or command.
        line: The text to remember.
        quote: The words of the entry to cite; by default all.
    """
    evidence = (cite(tape, entry, quote),)
    if entry.meta.get("private") is not False:
        return Proposal("add", line, evidence=evidence)
    suspect = INSTRUCTION_REFUSED if contains_instructions(line) and not is_owner(entry) else ""
    return Proposal(
        "add", f"{speaker_label(entry)}: {line}", evidence=evidence, review_reason=suspect
    )
