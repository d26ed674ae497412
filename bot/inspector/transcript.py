"""What was said in conversations, read from their tapes (``bot.bus.Transcript``).

Rule 1: a person's message is a line as soon as it is on the tape; an answer is one once the end of its
    turn is, at the place of the entry with its text. Both are written at once, so nothing comes to
    stand before a line that was read already.
Rule 2: tapes are read from their ends, as far as is asked for; nothing is written.
Rule 3: what was commanded from elsewhere, and its answer, are no part of the conversation. A press of
    a button is no line where its answer takes the place of what the button stood below.
Rule 4: what is erased is shown as erased.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from bot.bus import Attachment, Button, OutgoingFile, TranscriptMessage
from bot.core.errors import TapeNotFound
from bot.inspector.reading.entry_text import entry_time
from bot.memory.attachments import EntryAttachment, attachments_in
from bot.memory.conversation_entries import TURN_END
from bot.memory.forgetting.tombstones import ERASED_TEXT, is_erased
from bot.memory.transcript import sender_name
from bot.memory.turn_fold import COMMAND, REPLY, UndeliveredAnswer
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

VIA = "via"
"""In the meta of a command and the data of its turn's end: where its answer is shown."""

MOST_SCANNED = 20_000
"""Entries looked through for lines; what is further back is found by reading on from a line."""

_END_WITHIN = 64
"""Entries behind an answer's text among which the end of its turn is: they are written at once."""


@dataclass(slots=True)
class TranscriptReader:
    """Makes lines of entries that come newest first.

    Attributes:
        exports: The folder that files of answers lie in.
    """

    exports: Path
    _end: TapeEntry | None = None
    _pressed: set[str] = field(default_factory=set)

    def take(self, entry: TapeEntry) -> TranscriptMessage | None:
        """Take an entry in; return its line where it has one."""
        if entry.kind == "event" and entry.name == TURN_END:
            # Only what stands right before it is its answer; one that answers nothing ends here.
            self._end = entry if entry.data.get("answered") is True else None
            return None
        if entry.kind == "message" and entry.payload.get("role") == "user":
            return self._heard(entry, _words(entry))
        if entry.kind == "event" and entry.name == COMMAND:
            return self._commanded(entry)
        spoken = entry.kind == "message" and entry.payload.get("role") == "assistant"
        if spoken or (entry.kind == "event" and entry.name == REPLY):
            return self._answered(entry)
        return None

    def _answered(self, said: TapeEntry) -> TranscriptMessage | None:
        end, self._end = self._end, None
        if end is None or end.data.get(VIA) is not None:
            return None
        inbound = end.data.get("inbound")
        heard = tuple(filter(_is_text, inbound)) if isinstance(inbound, list) else ()
        answer = UndeliveredAnswer.from_entry(str(end.data.get("turn")), said, None, heard)
        if answer.replaces is not None:
            self._pressed.update(heard)
        return TranscriptMessage(
            position=said.id,
            id=answer.turn,
            author="bot",
            name="",
            text=ERASED_TEXT if is_erased(said) else answer.text,
            at=entry_time(said),
            buttons=tuple(Button(*pair) for pair in answer.buttons),
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
    """Reads lines from tapes.

    Args:
        store: Holds the tapes.
        exports: The folder that files of answers lie in.
    """

    def __init__(self, store: TapeStore, exports: Path) -> None:
        self._store = store
        self._exports = exports
        # Some stores count from the start of their process.
        self._start = token_hex(8)

    async def newest(
        self, session: str, limit: int, before: int | None = None
    ) -> list[TranscriptMessage]:
        """Return the newest lines, oldest first; of those before a position where one is given.

        A conversation that has no tape yet has none.
        """
        found: list[TranscriptMessage] = []
        if limit > 0:
            async with aclosing(self._back(session, before)) as lines:
                async for line in lines:
                    found.append(line)
                    if len(found) == limit:
                        break
        return found[::-1]

    async def since(self, session: str, position: int) -> list[TranscriptMessage]:
        """Return the lines behind a position, oldest first."""
        async with aclosing(self._back(session, None, until=position)) as lines:
            found = [line async for line in lines]
        return found[::-1]

    async def erasure_version(self, session: str) -> str:
        """Return a mark that is another one once something was erased, or after a start."""
        return f"{self._start}.{await self._store.erasures(session)}"

    async def message(self, session: str, position: int) -> TranscriptMessage | None:
        """Return the line of a position; None where there is none."""
        try:
            near = await self._store.read(session, position, position + _END_WITHIN)
        except TapeNotFound:
            return None
        lines = _lines(TranscriptReader(self._exports), reversed(near))
        return next((line for line in lines if line.position == position), None)

    async def files(self, session: str, answer: str) -> tuple[OutgoingFile, ...]:
        """Return the files of an answer by its id, also of one that was shown elsewhere; none where it has none."""
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
                    if entry.name == TURN_END:
                        end = entry if entry.data.get("turn") == answer else None
        except TapeNotFound:
            pass
        return ()

    async def _back(
        self, session: str, before: int | None, *, until: int = 0
    ) -> AsyncGenerator[TranscriptMessage, None]:
        """Yield lines, newest first, down to the one behind ``until``."""
        reader, scanned = TranscriptReader(self._exports), 0
        # What is a line depends on what follows it.
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
    """Return the files that an answer names: by the last part of a name alone, so never of another folder."""
    return tuple(OutgoingFile(name, exports / Path(file).name) for name, file in files)


def _lines(reader: TranscriptReader, entries: Iterable[TapeEntry]) -> Iterable[TranscriptMessage]:
    return (line for entry in entries if (line := reader.take(entry)) is not None)


def _words(entry: TapeEntry) -> str:
    return str(entry.payload.get("content") or "")


def _attachment(one: EntryAttachment) -> Attachment:
    # Which kinds there are was looked at where it was read.
    kind: Any = one.kind
    return Attachment(kind, one.name, one.mime, one.size, one.blob, one.text, one.note)


def _is_text(value: object) -> bool:
    return isinstance(value, str)
