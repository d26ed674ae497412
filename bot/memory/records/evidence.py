"""Turn tape entries into evidence, and separate a sender's own words from quotations. Pure."""

from __future__ import annotations

from bot.bus import Grant
from bot.core.clock import format_time
from bot.memory.records.attachments import attachments_in, one_line
from bot.memory.records.fact import LONGEST_QUOTE, OWN_WORDS, Evidence, EvidenceOrigin
from bot.memory.records.pasted_text import own_words, pasted_parts
from bot.memory.records.transcript import sender_id, sender_name, sent_time, speaker_label
from bot.tape.entries import TapeEntry

MEMORY_PAUSED = "paused"
"""Meta key that marks a message sent while memory was paused; nothing is learned from it."""

FROM_OUTSIDE = "from_outside"
"""Meta key that marks a tool's result as text from outside tapebot, which is nobody's word."""
LOCAL_ONLY = "local_only"
"""Meta key that marks an entry written in a private problem: only private models may see it, and
nothing is learned from it, because facts are shown to every model."""

GRANT = "grant"
"""Meta key of a message that came by a token: what that allows, as ``bot.bus.Grant`` writes it."""


def grant_of(entry: TapeEntry) -> Grant | None:
    """Return what the token allows by which a message came; None if its person sent it."""
    return Grant.from_json(entry.meta.get(GRANT))


def cite(tape: str, entry: TapeEntry, quote: str | None = None) -> Evidence:
    """Return an entry as evidence, by default with all of the sender's own words.

    What came by a token that may only propose is its program's word.
    """
    moment = sent_time(entry)
    origin, grant = entry_origin(entry), grant_of(entry)
    who = speaker_label(entry) if origin in OWN_WORDS else origin
    if grant is not None and grant.allows("propose") and not grant.allows("site"):
        origin = "client"
    return Evidence(
        tape=tape,
        entry=entry.id,
        quote=one_line(quote if quote is not None else sender_text(entry), LONGEST_QUOTE),
        who=who,
        when=format_time(moment) if moment is not None else "",
        origin=origin,
        sender=sender_id(entry),
        # An edit has its message's place on the platform.
        inbound=str(entry.meta.get("edits") or entry.meta.get("inbound") or ""),
    )


def sender_text(entry: TapeEntry) -> str:
    """Return the sender's own words in a message, command or tool result, without quotations."""
    text = str(entry.payload.get("content") or entry.data.get("arguments") or "")
    return own_words(text, sender_name(entry)) if _is_persons(entry) else text


def third_party_texts(entry: TapeEntry) -> list[str]:
    """Return the texts in a message that are not the sender's: quotes, pastes and files."""
    quote = entry.meta.get("quote")
    texts = [quote] if isinstance(quote, str) else []
    if _is_persons(entry):
        texts += pasted_parts(str(entry.payload.get("content") or ""), sender_name(entry))
    return [
        *texts,
        *(
            entry_attachment.third_party_text
            for entry_attachment in attachments_in(entry.meta)
            if entry_attachment.third_party_text
        ),
    ]


def entry_origin(entry: TapeEntry) -> EvidenceOrigin:
    """Return the origin of an entry's text, leaving quotations in it aside."""
    command = entry.kind == "event" and "sender" in entry.meta
    if command or _is_persons(entry):
        return "person" if entry.meta.get("private", True) else "member"
    return "tool" if entry.kind == "tool_result" else "assistant"


def _is_persons(entry: TapeEntry) -> bool:
    return entry.kind == "message" and entry.payload.get("role") == "user"


def may_learn_from(entry: TapeEntry) -> bool:
    """Say whether memory may learn from an entry: a person's own words.

    They were sent while memory was not paused, and not in a private problem, nor by a token without
    the right to propose.
    """
    grant = grant_of(entry)
    return (
        (grant is None or grant.allows("propose"))
        and entry_origin(entry) in OWN_WORDS
        and entry.meta.get(MEMORY_PAUSED) is not True
        and not is_local_only(entry)
    )


def is_local_only(entry: TapeEntry) -> bool:
    """Return whether only private models may see an entry."""
    return entry.meta.get(LOCAL_ONLY) is True
