"""Sender and time of an entry, and conversations rendered as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.core.i18n import format_datetime
from bot.core.patterns import LazyPattern
from bot.memory.records.attachments import describe_attachments
from bot.memory.records.conversation_entries import AUTOMATION, QUESTION
from bot.memory.records.pasted_text import split_pasted
from bot.memory.records.prompt_escaping import escape_message, quote_block
from bot.tape.entries import TapeEntry

CORRECTION_NOTE = "(corrects an earlier message)"
"""Precedes a message that was edited after it had been answered."""

_LONGEST = 4_000
_EXCERPT = 300
_MARKS = LazyPattern(r"[\[\]()<>:\x00-\x1f]")


def sent_time(entry: TapeEntry) -> datetime | None:
    """Return when an entry was sent, by the platform's clock if known; timezone-aware."""
    return _moment(entry.meta.get("sent") or entry.meta.get("ts"))


def recorded_at(entry: TapeEntry) -> datetime | None:
    """Return when an entry was written to the tape, by the local clock; timezone-aware."""
    return _moment(entry.meta.get("ts"))


def format_entry_time(entry: TapeEntry, timezone: tzinfo | None = None) -> str:
    """Return ``YYYY-MM-DD HH:MM`` in the entry's recorded time zone, else in the given one."""
    named = entry.meta.get("tz")
    zone = _zone(named) if isinstance(named, str) else timezone
    return format_timestamp(entry.meta.get("sent") or entry.meta.get("ts"), zone)


def shown_entry_time(entry: TapeEntry, timezone: tzinfo | None = None) -> str:
    """Return the time of ``format_entry_time`` as the current language writes it."""
    told = format_entry_time(entry, timezone)
    return told if told == "?" else format_datetime(datetime.fromisoformat(told))


def format_timestamp(stamp: object, timezone: tzinfo | None) -> str:
    """Return an ISO time stamp as ``YYYY-MM-DD HH:MM`` in a time zone; ``?`` if invalid."""
    moment = _moment(stamp)
    try:
        if not moment:
            return "?"
        # ``strftime`` writes years before 1000 with fewer digits.
        there = moment.astimezone(timezone or UTC)
        return there.replace(tzinfo=None).isoformat(" ", "minutes")
    except OverflowError:
        return "?"


def format_timestamp_day(stamp: object, timezone: tzinfo | None) -> str:
    """Return the date of an ISO time stamp in a time zone; empty if invalid."""
    shown = format_timestamp(stamp, timezone)
    return "" if shown == "?" else shown[:10]


def sender_name(entry: TapeEntry) -> str:
    """Return a sender's display name on one line, without characters that mark a speaker."""
    sender = entry.meta.get("sender")
    return clean_name(str(sender.get("name") or "") if isinstance(sender, dict) else "")


def sender_id(entry: TapeEntry) -> str:
    """Return the sender's user id on the platform; empty if there is none."""
    sender = entry.meta.get("sender")
    return str(sender.get("id") or "") if isinstance(sender, dict) else ""


def clean_name(name: str) -> str:
    """Return a display name on one line, without characters that mark a speaker."""
    plain = " ".join(_MARKS.sub(" ", name).split())
    return plain[:64] or "user"


def speaker_label(entry: TapeEntry) -> str:
    """Return the sender's name, in groups with the user id, which cannot be forged."""
    sender = entry.meta.get("sender")
    if entry.meta.get("private") is False and isinstance(sender, dict) and "id" in sender:
        return f"{sender_name(entry)} ({sender['id']})"
    return sender_name(entry)


def is_owner(entry: TapeEntry) -> bool:
    """Say whether an owner of the bot wrote a message."""
    sender = entry.meta.get("sender")
    return isinstance(sender, dict) and sender.get("role") == "owner"


def is_automation(entry: TapeEntry) -> bool:
    """Say whether a message was sent by no person, such as a scheduled task."""
    return entry.kind == "message" and entry.payload.get("role") == AUTOMATION


def cause_label(entry: TapeEntry) -> str:
    """Return what caused a message that no person sent, such as ``schedule 3``."""
    cause = entry.meta.get("cause")
    told = cause if isinstance(cause, dict) else {}
    return clean_name(f"{told.get('kind') or AUTOMATION} {told.get('name') or ''}")


def message_author(entry: TapeEntry) -> str:
    """Return who wrote a message, for people: the sender, ``tapebot``, or what caused it."""
    if is_automation(entry):
        return cause_label(entry)
    if entry.payload.get("role") == "user":
        return speaker_label(entry)
    return f"tapebot, {cause_label(entry)}" if "cause" in entry.meta else "tapebot"


def render_transcript(entries: Iterable[TapeEntry], timezone: tzinfo | None = None) -> list[str]:
    """Render messages as ``[YYYY-MM-DD HH:MM] USER (name): text``, one item each.

    See ``message_lines``.
    """
    return [line for _, line in message_lines(entries, timezone)]


def message_lines(
    entries: Iterable[TapeEntry], timezone: tzinfo | None = None
) -> list[tuple[TapeEntry, str]]:
    """Return the messages that have a text, each with its line.

    An assistant's line names the tools that it used. Tool results are left out, quoted text is
    marked, and files are excerpted. Further lines of a message are indented, so that no text can
    pass for another speaker's line.
    """
    lines = []
    tools: list[str] = []
    for entry in entries:
        text = message_content(entry).strip()
        told = _cut(escape_message(text))
        if entry.kind == "message" and entry.payload.get("role") == "user":
            told = _told(text, sender_name(entry))
            who, tools = f"USER ({speaker_label(entry)})", []
        elif is_automation(entry):
            who, tools = f"AUTOMATION ({cause_label(entry)}, no person's words)", []
        elif entry.kind in ("message", "tool_call"):
            tools += [str(call.get("name")) for call in entry.calls]
            who = f"ASSISTANT [tools: {', '.join(dict.fromkeys(tools))}]" if tools else "ASSISTANT"
            # Tool calls without text are named in the line of the text that follows.
            tools = [] if text else tools
        else:
            continue
        text = told + quoted_block(entry) + describe_attachments(entry.meta, excerpt=_EXCERPT)
        text = text.strip()
        if text:
            spaced = "\n  ".join(text.splitlines())
            lines.append((entry, f"[{format_entry_time(entry, timezone)}] {who}: {spaced}"))
    return lines


def _told(text: str, writer: str) -> str:
    """Return a person's words, with pasted parts as quoted blocks."""
    shown = (
        quote_block(part.strip("\n")) + "\n" if theirs else escape_message(part).rstrip("\n")
        for part, theirs in split_pasted(_cut(text), writer)
    )
    return "".join(shown)


def message_content(entry: TapeEntry) -> str:
    """Return a message's text, with a note if it is an edit of an answered message."""
    text = str(entry.payload.get("content", ""))
    if entry.meta.get("edits") is not None and entry.meta.get("overheard") is True:
        return f"{CORRECTION_NOTE} {text}"
    return text


def answer_text(entry: TapeEntry) -> str:
    """Return a message's text as people see it: an answer with the question asked below it."""
    content, question = entry.payload.get("content"), entry.payload.get(QUESTION)
    return "\n\n".join(str(text) for text in (content, question) if text)


def quoted_block(entry: TapeEntry) -> str:
    """Return the text that a message quotes as a block; empty if it quotes none."""
    quote = entry.meta.get("quote")
    if not isinstance(quote, str) or not quote.strip():
        return ""
    return quote_block(_cut(quote.strip()))


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} … ({len(text) - _LONGEST} more characters)"


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
