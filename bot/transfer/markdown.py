"""Render a tape as a Markdown transcript. Pure.

Rule 1: people's text is in block quotes, which nothing in it can leave: each line is quoted, and
    tags and link definitions are escaped.
Rule 2: control characters, including those that change the direction of text, are removed.
Rule 3: entries are in the order of the tape; bookkeeping is left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import tzinfo

from bot.agent.schedules.wording import event_text
from bot.agent.texts import known_text
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.memory.records import transcript
from bot.memory.records.attachments import attachments_in
from bot.memory.records.boundaries import boundary_steps, boundary_summary
from bot.memory.records.conversation_entries import (
    NO_TURNS,
    TURN_END,
    is_overheard,
    replaced_entry_id,
)
from bot.memory.records.event_names import HISTORY_EVENT, REPLY
from bot.memory.records.pending_calls import describe_call_event
from bot.memory.records.schedules import SCHEDULE_EVENTS
from bot.tape.entries import TapeEntry

_LONGEST = 200
_INLINE = LazyPattern(r"([\\`*_\[\]<>&~|#!$])")
_TAG = LazyPattern(r"<(?=[A-Za-z/!?])")
_LINES = LazyPattern(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# These join letters and emoji; without them some words and emoji change.
_JOINERS = "\u200c\u200d"
_HIDDEN = frozenset({"Cc", "Cf", "Cs"})


class MarkdownTranscript:
    """Render entries one by one."""

    def __init__(self, timezone: tzinfo) -> None:
        self._timezone = timezone

    def head(self, title: str | None, session: str) -> str:
        """Return the start of the transcript."""
        shown = {"shown": _inline(title or session), "code": _code(session)}
        return _("# {shown}\n\nThe session {code}, as its tape has it.\n", **shown)

    def block(self, entry: TapeEntry) -> str:
        """Render an entry as a block; empty for bookkeeping."""
        payload = entry.payload
        if entry.kind == "message":
            return self._message(entry)
        if entry.kind == "tool_call":
            said = str(payload.get("content") or "")
            block = self._said("tapebot", entry, said) if said.strip() else ""
            calls = [f"{call.get('name')} {call.get('arguments') or ''}" for call in entry.calls]
            return block + "".join(_("\n- uses {code}\n", code=_code(call)) for call in calls)
        if entry.kind == "tool_result":
            told = _(
                "{tool} answers ({status}): {outcome}",
                tool=_code(payload.get("name")) or _("a tool"),
                status=_inline(str(payload.get("status"))),
                outcome=_code(payload.get("content")) or _("nothing"),
            )
            return f"\n- {told}\n"
        if entry.kind == "anchor":
            return self._anchor(entry)
        return self._event(entry) if entry.kind == "event" else ""

    def _message(self, entry: TapeEntry) -> str:
        remarks = [_("only overheard")] if is_overheard(entry) else []
        if (old := replaced_entry_id(entry)) is not None:
            remarks.append(_("in place of #{old}", old=old))
        elif "edits" in entry.meta:
            remarks.append(_("an edit"))
        text, quote = transcript.answer_text(entry), entry.meta.get("quote")
        if isinstance(quote, str) and quote.strip():
            text += "\n\n" + "\n".join(f"> {line}" for line in _lines(quote))
        block = self._said(transcript.message_author(entry), entry, text, remarks)
        for file in attachments_in(entry.meta):
            note = f" ({_inline(known_text(file.note))})" if file.note else ""
            block += f"\n- {file.kind} {_code(file.name)}{note}\n"
        return block

    def _anchor(self, entry: TapeEntry) -> str:
        if not entry.is_boundary:
            named = {"code": _code(entry.name), "target": entry.target_id}
            return _("\n- anchor {code} at #{target}\n", **named) if entry.target_id else ""
        when = transcript.shown_entry_time(entry, self._timezone)
        block = f"\n## {_inline(str(entry.name))}, {when}\n"
        if summary := boundary_summary(entry.data).strip():
            block += f"\n{_quoted(summary)}\n"
        steps = map(_inline, boundary_steps(entry.data))
        return block + "".join(_("\n- next: {inline}\n", inline=step) for step in steps)

    def _event(self, entry: TapeEntry) -> str:
        data = entry.data
        if entry.name == "command":
            text = f"/{data.get('name')} {data.get('arguments') or ''}".rstrip()
            return self._said(transcript.speaker_label(entry), entry, text)
        if entry.name == REPLY:
            return self._said("tapebot", entry, str(data.get("text") or ""))
        if entry.name == HISTORY_EVENT:
            return self._said("History", entry, str(data.get("entry") or ""))
        told = describe_call_event(entry)
        if entry.name in SCHEDULE_EVENTS:
            told = event_text(entry)
        elif entry.name == TURN_END and data.get("status") not in ("ok", *NO_TURNS):
            told = _("the turn ended: {inline}", inline=str(data.get("status")))
        return f"\n- {_inline(told)}\n" if told is not None else ""

    def _said(self, who: str, entry: TapeEntry, text: str, remarks: Sequence[str] = ()) -> str:
        when = transcript.shown_entry_time(entry, self._timezone)
        about = ", ".join([when, f"#{entry.id}", *remarks])
        return f"\n**{_inline(who)}** ({about})\n\n{_quoted(text)}\n"


def _quoted(text: str) -> str:
    """Return a text as a block quote that it cannot leave."""
    shown = _TAG.sub("&lt;", text).replace("]:", "]\\:")
    return "\n".join(f"> {line}".rstrip() for line in _lines(shown))


def _inline(text: str) -> str:
    """Return a text escaped for use within a line."""
    return _INLINE.sub(r"\\\1", _one_line(text))


def _code(value: object) -> str:
    """Return a value as a code span, shortened if long; empty without a value."""
    text = _one_line(str(value if value is not None else "")).replace("`", "'")
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST].rstrip()}…"
    return f"`{text}`" if text else ""


def _one_line(text: str) -> str:
    return " ".join(" ".join(_lines(text)).split())


def _lines(text: str) -> list[str]:
    return [_visible(line) for line in _LINES.sub("\n", text).split("\n")]


def _visible(line: str) -> str:
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        char
        for char in line
        if char in _JOINERS or char == "\t" or unicodedata.category(char) not in _HIDDEN
    )
