"""Read conversations as chats show them from tapes: implements ``bot.bus.Transcript``.

Rule 1: a person's message appears as soon as it is on the tape; an answer appears when its turn's
    end is on the tape, at the position of the entry with its text. Both are written at once, so no
    message appears before one that was read already.
Rule 2: tapes are read from their ends, as far as needed; nothing is written.
Rule 3: remote commands and their answers are not part of the conversation. A button press does not
    appear if its answer replaces the message with the button.
Rule 4: erased messages appear as erased.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from bot.agent.approvals import decision_buttons
from bot.bus import Address, Attachment, Button, OutgoingFile, TranscriptMessage
from bot.bus.buttons import tape_buttons
from bot.core.errors import TapeNotFound
from bot.inspector.reading.entry_text import entry_time
from bot.memory.records.attachments import EntryAttachment, attachments_in
from bot.memory.records.event_names import (
    COMMAND,
    REPLY,
)
from bot.memory.records.pending_calls import TOOL_DECIDED
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
from bot.memory.records.transcript import answer_text, sender_name
from bot.memory.records.turn_marks import turn_end
from bot.memory.session.state.turn_fold import UndeliveredAnswer
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

VIA = "via"
"""Key in a command's meta and its turn's end: the surface that shows the answer."""

MOST_SCANNED = 20_000
"""Entries scanned for messages; older ones are found by reading on from a message."""

_END_WITHIN = 64
"""The most entries between an answer's text and its turn's end, which are one append."""


@dataclass(slots=True)
class TranscriptReader:
    """Convert entries, newest first, to messages.

    Attributes:
        session: The session's key.
        exports: Directory of the files attached to answers.
    """

    session: str
    exports: Path
    _end: TapeEntry | None = None
    _pressed: set[str] = field(default_factory=set)
    _decided: set[str] = field(default_factory=set)

    def take(self, entry: TapeEntry) -> TranscriptMessage | None:
        """Process an entry; return its message if it has one."""
        if (end := turn_end(entry)) is not None:
            # Only the text right before the end is its answer; other turns have none.
            self._end = end if end.data.get("answered") is True else None
        if entry.kind == "message" and entry.payload.get("role") == "user":
            return self._heard(entry, _words(entry))
        if entry.kind == "event" and entry.name == COMMAND:
            return self._commanded(entry)
        if entry.name == TOOL_DECIDED and type(number := entry.data.get("number")) is int:
            self._decided.update(command for _label, command in decision_buttons(number))
        spoken = entry.kind == "message" and entry.payload.get("role") == "assistant"
        if spoken or (entry.kind == "event" and entry.name == REPLY):
            return self._answered(entry)
        return None

    def _answered(self, entry: TapeEntry) -> TranscriptMessage | None:
        end, self._end = self._end, None
        if end is None or end.data.get(VIA) is not None:
            return None
        inbound = end.data.get("inbound")
        heard = tuple(filter(_is_text, inbound)) if isinstance(inbound, list) else ()
        answer = UndeliveredAnswer.from_entry(str(end.data.get("turn")), entry, None, heard)
        if answer.replaces is not None:
            self._pressed.update(heard)
        buttons: tuple[Button, ...] = ()
        if answer.buttons:
            place = Address.parse(self.session)
            buttons = tape_buttons(answer.buttons, place, place, answer.turn, entry.id)
        return TranscriptMessage(
            position=entry.id,
            id=answer.turn,
            author="bot",
            name="",
            text=ERASED_TEXT if is_erased(entry) else answer.text,
            at=entry_time(entry),
            buttons=tuple(one for one in buttons if one.command not in self._decided),
            replaces=answer.replaces,
            files=outfiles(self.exports, answer.files),
        )

    def _commanded(self, entry: TapeEntry) -> TranscriptMessage | None:
        if entry.meta.get(VIA) is not None or str(entry.meta.get("inbound")) in self._pressed:
            return None
        name, arguments = entry.data.get("name"), entry.data.get("arguments")
        return self._heard(entry, f"/{name} {arguments or ''}".rstrip())

    def _heard(self, entry: TapeEntry, text: str) -> TranscriptMessage:
        edits = entry.meta.get("edits")
        return TranscriptMessage(
            position=entry.id,
            id=str(entry.meta.get("inbound", entry.id)),
            author="person",
            name=sender_name(entry),
            text=ERASED_TEXT if is_erased(entry) else text,
            at=entry_time(entry),
            replaces=edits if isinstance(edits, str) else None,
            attachments=tuple(map(_attachment, attachments_in(entry.meta))),
        )


class TapeTranscript:
    """Read messages from tapes."""

    def __init__(self, store: TapeStore, exports: Path) -> None:
        self._store = store
        self._exports = exports
        # Some stores count erasures from the start of their process.
        self._start = token_hex(8)

    async def newest(
        self, session: str, limit: int, before: int | None = None
    ) -> list[TranscriptMessage]:
        """Return the newest messages, oldest first; with ``before``, those before that position.

        A conversation without a tape has none.
        """
        transcript_messages: list[TranscriptMessage] = []
        if limit > 0:
            async with aclosing(self._back(session, before)) as lines:
                async for line in lines:
                    transcript_messages.append(line)
                    if len(transcript_messages) == limit:
                        break
        return transcript_messages[::-1]

    async def since(self, session: str, position: int) -> list[TranscriptMessage]:
        """Return the messages after a position, oldest first."""
        async with aclosing(self._back(session, None, until=position)) as lines:
            transcript_messages = [line async for line in lines]
        return transcript_messages[::-1]

    async def erasure_version(self, session: str) -> str:
        """Return a token that changes after an erasure or a restart."""
        return f"{self._start}.{await self._store.erasures(session)}"

    async def message(self, session: str, position: int) -> TranscriptMessage | None:
        """Return the message at a position; None if there is none."""
        try:
            near = await self._store.read(session, position, position + _END_WITHIN)
        except TapeNotFound:
            return None
        lines = _lines(TranscriptReader(session, self._exports), reversed(near))
        return next((line for line in lines if line.position == position), None)

    async def files(self, session: str, answer: str) -> tuple[OutgoingFile, ...]:
        """Return the files of an answer by its id, including answers to remote commands."""
        end = None
        scanned = 0
        try:
            async with aclosing(self._store.read_back(session)) as entries:
                async for entry in entries:
                    scanned += 1
                    if scanned > MOST_SCANNED:
                        break
                    if end is not None and entry.kind == "event" and entry.name == REPLY:
                        return outfiles(
                            self._exports,
                            UndeliveredAnswer.from_entry(answer, entry, None, ()).files,
                        )
                    if (found := turn_end(entry)) is not None:
                        end = found if found.data.get("turn") == answer else None
        except TapeNotFound:
            pass
        return ()

    async def _back(
        self, session: str, before: int | None, *, until: int = 0
    ) -> AsyncGenerator[TranscriptMessage, None]:
        """Yield messages, newest first, down to the one after ``until``."""
        reader, scanned = TranscriptReader(session, self._exports), 0
        # Whether an entry is a message depends on the entries after it.
        start = None if before is None else before + _END_WITHIN
        try:
            async with aclosing(self._store.read_back(session, start)) as entries:
                async for entry in entries:
                    scanned += 1
                    if entry.id <= until or scanned > MOST_SCANNED:
                        return
                    line = reader.take(entry)
                    if line is not None and (before is None or entry.id < before):
                        yield line
        except TapeNotFound:
            return


def outfiles(exports: Path, files: Iterable[tuple[str, str]]) -> tuple[OutgoingFile, ...]:
    """Return an answer's files; only a path's last part is used, so never another directory."""
    return tuple(OutgoingFile(name, exports / Path(file).name) for name, file in files)


def _lines(reader: TranscriptReader, entries: Iterable[TapeEntry]) -> Iterable[TranscriptMessage]:
    return (line for entry in entries if (line := reader.take(entry)) is not None)


def _words(entry: TapeEntry) -> str:
    return answer_text(entry)


def _attachment(entry_attachment: EntryAttachment) -> Attachment:
    # The kind was validated when the entry was read.
    kind: Any = entry_attachment.kind
    return Attachment(
        kind,
        entry_attachment.name,
        entry_attachment.mime,
        entry_attachment.size,
        entry_attachment.blob,
        entry_attachment.text,
        entry_attachment.note,
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)
