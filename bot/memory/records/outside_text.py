"""Tell which texts of an entry come from outside, and which texts repeat them. Pure.

Text from outside is what neither the person nor tapebot wrote: results of tools that read the world,
quoted and forwarded text, files with their names, what other systems send.
"""

from __future__ import annotations

from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.memory.records.attachments import attachments_in
from bot.memory.records.evidence import (
    FROM_OUTSIDE,
    entry_origin,
    sender_text,
    third_party_texts,
)
from bot.memory.records.fact import OWN_WORDS
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import cause_label, is_automation, sender_id
from bot.tape.entries import TapeEntry

REPEATS_OUTSIDE = "repeats_outside"
"""Meta key that marks a result of tapebot's own records that may repeat text from outside."""

LINKS = "links"
"""Meta key of the addresses that code took out of a successful search or page, in its result."""

APPROVED = "approved"
"""Meta key of a call that was approved, in its result: the tool, the arguments, who asked, in which messages."""

SCHEDULED = "scheduled"
"""Meta key of the parts of a schedule's text that are a person's own words, or approved by one."""

_ANOTHER_SPEAKS = LazyPattern(
    r"[\"“”„‟«»‹›〝〞「」『』`<>|—\n]|(?:(?<=\s)|\A)['‘‚]|:(?=\s|\Z)|：|--|\s-\s"
)

LONGEST_TYPED = 2_000
"""Characters of a message that count as its sender's own: a longer one was hardly typed."""


def outside_texts(entry: TapeEntry) -> list[str]:
    """Return the texts of an entry that come from outside, or may repeat such text."""
    content = str(entry.payload.get("content") or "")
    if entry.kind == "tool_result":
        marked = entry.meta.get(FROM_OUTSIDE) is True or entry.meta.get(REPEATS_OUTSIDE) is True
        return [content, *_file_texts(entry)] if marked else []
    if entry.kind != "message":
        return []
    texts = third_party_texts(entry) + _file_texts(entry)
    nobody = entry.meta.get("private") is False and not sender_id(entry)
    pasted = entry_origin(entry) in OWN_WORDS and len(sender_text(entry)) > LONGEST_TYPED
    if entry.meta.get(FROM_OUTSIDE) is True or _is_from_a_system(entry) or pasted or nobody:
        texts.append(content)
    return texts


def typed_words(entry: TapeEntry) -> str:
    """Return the words that the sender of a message typed themselves; empty if nobody did."""
    if entry.kind != "message" or entry_origin(entry) not in OWN_WORDS or is_erased(entry):
        return ""
    # What tapebot gives a sub-task has no sender.
    words = sender_text(entry) if sender_id(entry) else ""
    return words if len(words) <= LONGEST_TYPED else ""


def acting_words(typed: str, passing: str = "") -> str:
    """Return the start of typed words in which their writer surely speaks for themselves.

    A quotation mark, a colon, a bracket, a dash or a new line may begin what somebody else said,
    but those signs that are ``passing``.
    """
    signs = _ANOTHER_SPEAKS.finditer(typed)
    ends = (sign.start() for sign in signs if not sign.group() or sign.group() not in passing)
    return typed[: next(ends, len(typed))]


def describe_outside(entry: TapeEntry) -> Reason:
    """Return what an entry's text from outside is, and which entry it is, for people."""
    at = f"#{entry.id}"
    if entry.kind == "tool_result":
        name = str(entry.payload.get("name"))
        if entry.meta.get(REPEATS_OUTSIDE) is True:
            return Reason("source_earlier", tool=name, entry=at)
        return Reason("source_result", tool=name, entry=at)
    if is_automation(entry):
        cause = cause_label(entry)
        call = cause.removeprefix("trigger approval ")
        if call != cause:
            return Reason("source_call", call=call, entry=at)
        return Reason("source_cause", cause=cause, entry=at)
    if entry.meta.get(FROM_OUTSIDE) is True:
        return Reason("source_task", entry=at)
    return Reason("source_quoted", entry=at)


def _is_from_a_system(entry: TapeEntry) -> bool:
    """Return whether another system sent a message; what a schedule says, a person had it say."""
    inbound = is_automation(entry) and "inbound" in entry.meta
    return inbound and not cause_label(entry).startswith("schedule ")


def _file_texts(entry: TapeEntry) -> list[str]:
    """Return names and texts of an entry's files: whoever made a file named it."""
    files = [one for one in attachments_in(entry.meta) if not one.is_own_voice]
    return [text for one in files for text in (one.name, one.text or "") if text]
