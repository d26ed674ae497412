"""Guard the prompt against orders that nobody who may give them gave. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.core.errors import MemoryRefused
from bot.core.folding import split_sentences
from bot.core.i18n import _
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.evidence import (
    entry_origin,
    may_learn_from,
    sender_text,
    third_party_texts,
)
from bot.memory.records.fact import ORIGIN_TRUST
from bot.memory.records.quote_spans import find_quote
from bot.memory.records.transcript import is_owner
from bot.tape.entries import TapeEntry

_NEWEST = 20
"""Number of third-party texts in view that are checked."""

UNGROUNDED_QUALITY = ORIGIN_TRUST["quoted"]
"""Source quality of ungrounded text: that of a quotation."""


def may_instruct(entry: TapeEntry) -> bool:
    """Say whether an entry's author may instruct the assistant: a person in private, or an owner."""
    return entry_origin(entry) == "person" or is_owner(entry)


def third_party_texts_in_view(spoken: Iterable[TapeEntry]) -> list[str]:
    """Return the newest third-party texts in view: quotations, files and tool results."""
    found: list[str] = []
    for entry in spoken:
        found += third_party_texts(entry)
        found += [sender_text(entry)] if entry.kind == "tool_result" else []
    return found[-_NEWEST:]


def check_instructions(text: str, spoken: Sequence[TapeEntry], *, drafted: bool = False) -> None:
    """Refuse text for the model with instructions that no authorised person in view gave.

    They gave them if their words hold each sentence that is one; a sentence in other words may say more. A
    draft, perhaps for others, is suspect only if third-party text in view gives orders, too.

    Raises:
        MemoryRefused: The text contains such instructions.
    """
    if not contains_instructions(text) or (
        drafted and not any(map(contains_instructions, third_party_texts_in_view(spoken)))
    ):
        return
    own = [sender_text(entry) for entry in spoken if may_learn_from(entry) and may_instruct(entry)]
    orders = [
        sentence for sentence in split_sentences(text) if contains_instructions(sentence)
    ] or [text]
    if not all(any(find_quote(order, said) for said in own) for order in orders):
        raise MemoryRefused(_("it tells the assistant what to do, and no words of the user say so"))
