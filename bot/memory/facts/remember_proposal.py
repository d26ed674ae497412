"""What a person asks to remember in so many words, as a proposal. Pure.

Rule 1: in a group a line says who speaks: "I" is whoever that is.
Rule 2: in a group what tells the assistant what to do is the owner's to say; of others it waits.
"""

from __future__ import annotations

from bot.memory.facts.evidence import cite
from bot.memory.facts.proposals import Proposal
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.transcript import is_owner, speaker_label
from bot.tape.entries import TapeEntry

INSTRUCTION_REFUSED = "it tells the assistant what to do, and an owner did not say it"


def propose_remembered_line(
    tape: str, entry: TapeEntry, line: str, quote: str | None = None
) -> Proposal:
    """Return what is proposed where a person asks to remember a line.

    Args:
        tape: That holds what they said.
        entry: Their message or command.
        line: What is to be remembered.
        quote: The words of the entry that count; by default all.
    """
    evidence = (cite(tape, entry, quote),)
    if entry.meta.get("private") is not False:
        return Proposal("add", line, evidence=evidence)
    suspect = INSTRUCTION_REFUSED if contains_instructions(line) and not is_owner(entry) else ""
    return Proposal(
        "add", f"{speaker_label(entry)}: {line}", evidence=evidence, review_reason=suspect
    )
