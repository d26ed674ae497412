"""What a person said in an entry, and the files that came with it. Pure."""

from __future__ import annotations

from bot.memory.records.attachments import attachments_in
from bot.memory.records.event_names import COMMAND
from bot.memory.records.tombstones import is_erased
from bot.tape.entries import TapeEntry

EntryLocation = tuple[str, int]
"""Tape name and entry id."""


def blobs_in(entry: TapeEntry) -> set[str]:
    """Return the names of an entry's files in the blob store."""
    return {file.blob for file in attachments_in(entry.meta) if file.blob is not None}


def is_persons_entry(entry: TapeEntry) -> bool:
    """Return whether an entry holds a person's own words: a user message or a command."""
    if entry.kind == "message":
        return entry.payload.get("role") == "user"
    return entry.kind == "event" and entry.name == COMMAND


def message_texts(entry: TapeEntry) -> list[str]:
    """Return the texts of a message or command, with its quotation and its attachments."""
    if is_erased(entry):
        return []
    # A command's first word is the subcommand, not the person's own text.
    command = str(entry.data.get("arguments") or "").partition(" ")[2]
    found = [str(entry.payload.get("content") or command)]
    if isinstance(quote := entry.meta.get("quote"), str):
        found.append(quote)
    for file in attachments_in(entry.meta):
        found += [file.name, *filter(None, (file.text, file.note))]
    return found
