"""Write all memory of a session to a zip file that a user can download.

It contains neither settings and tokens nor other people's conversations, nor what is shared by all
sessions.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.bus.media.blobs import Blobs
from bot.core.clock import SystemClock
from bot.core.errors import TapeWriteError
from bot.core.files import PRIVATE_FILE, list_files, private_directory
from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.memory.gate.belief_updates import is_current, sort_by_confidence
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import LOOP_STEP
from bot.memory.records.episodes import EPISODE_EVENT, entry_of
from bot.memory.records.fact_fold import CHAIN_EVENTS, FACTS_EVENT
from bot.memory.records.tombstones import tombstone
from bot.memory.session.archive_summary import ArchiveSummary
from bot.memory.session.bus.shared_reference import (
    SharedReferenceStore,
    citation,
    current_references,
    sort_references,
)
from bot.memory.session.file_folder import FileFolders, folder_tapes_of, listing
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.scope_memory import ScopeKind, ScopeMemory
from bot.memory.session.state.session_fold import SCOPE_EVENT
from bot.memory.session.state.zone_snapshot import (
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
)
from bot.tape.batches import read_batches
from bot.tape.codec import encode_line
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore
from bot.transfer.export import atomic_writer
from bot.transfer.markdown import MarkdownTranscript
from bot.transfer.memory_markdown import belief_md, history_md, problems_md, reference_md
from bot.transfer.session_memory import SessionMemory, read_session_memory

Pieces = AsyncGenerator[bytes, None]

_README = N_("""\
What tapebot remembers of {session}, as of {moment}.

MEMORY.md           active facts, a line each, by subject
HISTORY.md          summaries of consolidated messages, oldest first
notes/              daily notes, a file per day
facts.json          all facts, also ended and pending ones, with their evidence and the facts that they
                    replaced
references.md       shared values by key, each with its versions and sources
reference.json      the current values, for programs
beliefs.md          conclusions, with their confidence and evidence
problems.md         current and past problems: names, states, summaries, notes
decisions.jsonl     every change of these, with its reason and author; a line each
conversation.md     all messages, for reading
conversation.jsonl  all entries, for programs; `tapebot import jsonl` reads it
{files}
Times are in {timezone}, except in the files for programs, where they are in UTC.
`tapebot import nanobot FOLDER` reads MEMORY.md, HISTORY.md and the notes from the unpacked folder.
""")

_FILES_LINE = N_("files/              the files that are kept here\n")

_NOT_IN_NAMES = LazyPattern(r"[^A-Za-z0-9]+")
_LONGEST_NAME = 60
_MARK = 8
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a date in a zip
_KEPT = 10


@dataclass(slots=True)
class _Counted:
    """Counts for the summary of an archive."""

    history: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class MemoryArchives:
    """Write archives to one folder."""

    store: TapeStore
    folder: Path
    timezone: tzinfo
    blobs: Blobs | None = None

    async def write(self, session: str, key: str, moment: datetime) -> ArchiveSummary:
        """Write a session's archive; the same key on the same day replaces the earlier file.

        Of a session's archives only the newest few are kept.

        Raises:
            TapeNotFound: There is no such session.
            TapeWriteError: The storage failed; the file was not written.
        """
        path = self.folder / archive_name(session, key, moment.astimezone(self.timezone))
        try:
            await anyio.to_thread.run_sync(private_directory, self.folder)
            archive_summary = await write_archive(
                self.store, session, path, self.timezone, moment, blobs=self.blobs
            )
            await anyio.to_thread.run_sync(_keep_newest, self.folder, session)
        except OSError as error:
            raise TapeWriteError(
                _("{name} could not be written ({error})", name=path.name, error=error.strerror)
            ) from error
        return archive_summary


def archive_name(session: str, key: str, moment: datetime) -> str:
    """Return a unique archive name: ``memory-telegram-42-20260306-<hash>-<hash>.zip``."""
    readable = _NOT_IN_NAMES.sub("-", session).strip("-")[:_LONGEST_NAME]
    return f"memory-{readable}-{moment:%Y%m%d}-{_mark(session)}-{_mark(key)}.zip"


def _note_name(day: str) -> str:
    # A tape may be imported, so nothing on it may name a file outside of the folder.
    return f"notes/{_NOT_IN_NAMES.sub('-', day)[:_LONGEST_NAME]}.md"


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]


def _keep_newest(folder: Path, session: str) -> None:
    """Remove a session's older archives and unfinished files, so that nobody can fill the disk."""
    found: list[tuple[int, Path]] = []
    for path in list_files(folder, f"memory-*-{_mark(session)}-*.zip*"):
        # An erasure may have removed it meanwhile.
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path))
    for _age, path in sorted(found)[:-_KEPT]:
        path.unlink(missing_ok=True)


async def write_archive(
    store: TapeStore,
    session: str,
    path: Path,
    timezone: tzinfo,
    moment: datetime,
    *,
    blobs: Blobs | None = None,
) -> ArchiveSummary:
    """Write all memory of a session to a file; needs memory for one batch of entries, or one file.

    Raises:
        TapeNotFound: There is no such session.
        OSError: The storage failed; the file at the path is unchanged.
    """
    session_memory = await read_session_memory(store, session)
    files = [] if blobs is None else await _folder(store, session_memory.home, blobs)
    counted = _Counted()
    local = moment.astimezone(timezone)
    readme = _(
        _README,
        session=session,
        moment=f"{local:%Y-%m-%d %H:%M}",
        timezone=getattr(timezone, "key", timezone),
        files=_(_FILES_LINE) if files else "",
    )
    members: list[tuple[str, Pieces]] = [
        ("README.txt", _text(readme)),
        ("MEMORY.md", _text(session_memory.memory_md())),
        ("HISTORY.md", history_pieces(store, session, timezone, counted)),
        *(
            (_note_name(note.date), _text(f"{note.content.strip()}\n"))
            for note in session_memory.notes
        ),
        ("facts.json", _facts(session_memory)),
        ("references.md", references_pieces(store, session_memory)),
        ("reference.json", _text(reference_json(session_memory))),
        ("beliefs.md", beliefs_pieces(store, session_memory, moment, timezone)),
        ("problems.md", _text(problems_md(session_memory.own.compartments, moment, timezone))),
        ("decisions.jsonl", _decisions(store, session_memory)),
        ("conversation.md", _transcript(store, session_memory, timezone)),
        ("conversation.jsonl", _conversation(store, session_memory)),
        *files,
    ]
    size = await _zipped(path, members, local)
    return ArchiveSummary(
        path,
        size,
        len(session_memory.facts.active()),
        counted.history,
        len(session_memory.notes),
        counted.messages,
        len(files),
    )


async def _folder(store: TapeStore, home: str, blobs: Blobs) -> list[tuple[str, Pieces]]:
    """Return the files of a scope's folder, as members of the archive."""
    linker = ScopeRegistry(store, SystemClock()).identity_linker
    await linker.open()
    folders = FileFolders(store)
    folds = [await folders.tape(tape).open() for tape in folder_tapes_of(home, linker.people)]
    return [(f"files/{name}", _bytes(blobs, file.blob)) for name, file in listing(folds).items()]


async def _bytes(blobs: Blobs, name: str) -> Pieces:
    yield await blobs.get(name) or b""


async def history_pieces(
    store: TapeStore, session: str, timezone: tzinfo, counted: _Counted | None = None
) -> Pieces:
    """Yield ``HISTORY.md``: all history on the tape, oldest first.

    Raises:
        TapeNotFound: There is no such session.
    """
    async with aclosing(read_batches(store, session)) as parts:
        async for entries in parts:
            told = [piece for entry in entries if (piece := history_md(entry, timezone))]
            if counted is not None:
                counted.history += len(told)
                counted.messages += sum(entry.kind == "message" for entry in entries)
            yield "".join(told).encode("utf-8", "backslashreplace")


async def _text(text: str) -> Pieces:
    yield text.encode("utf-8", "backslashreplace")


async def _facts(session_memory: SessionMemory) -> Pieces:
    head = {"session": session_memory.session, "home": session_memory.home}
    yield (json.dumps(head)[:-1] + ', "facts": [').encode()
    mark = "\n"
    for fact in list(session_memory.facts.facts.values()):
        # Of an erased fact only its number is left.
        if fact.text:
            chain = [other.id for other in session_memory.facts.history(fact)]
            yield (mark + json.dumps(fact.as_json() | {"chain": chain})).encode()
            mark = ",\n"
    yield b"\n]}\n"


async def _decisions(store: TapeStore, session_memory: SessionMemory) -> Pieces:
    if not session_memory.facts.last_entry_id:
        return
    own = session_memory.home == session_memory.session
    async with aclosing(
        _said(store, session_memory) if own else read_batches(store, session_memory.home)
    ) as parts:
        async for entries in parts:
            yield b"".join(encode_line(entry) for entry in entries if _is_decision(entry))


def _is_decision(entry: TapeEntry) -> bool:
    return entry.kind == "event" and entry.name in (FACTS_EVENT, BUS_EVENT)


async def _transcript(store: TapeStore, session_memory: SessionMemory, timezone: tzinfo) -> Pieces:
    markdown_transcript = MarkdownTranscript(timezone)
    yield markdown_transcript.head(
        await store.get_title(session_memory.session), session_memory.session
    ).encode()
    async with aclosing(_said(store, session_memory)) as parts:
        async for entries in parts:
            yield "".join(map(markdown_transcript.block, entries)).encode()


async def _conversation(store: TapeStore, session_memory: SessionMemory) -> Pieces:
    async with aclosing(_said(store, session_memory)) as parts:
        async for entries in parts:
            yield b"".join(map(encode_line, entries))


async def _said(
    store: TapeStore, session_memory: SessionMemory
) -> AsyncGenerator[list[TapeEntry], None]:
    """Yield the session's tape in batches, without content of other scopes."""
    home = session_memory.home
    async with aclosing(read_batches(store, session_memory.session)) as parts:
        async for entries in parts:
            kept: list[TapeEntry] = []
            for entry in entries:
                if entry.kind == "event" and entry.name == SCOPE_EVENT:
                    home = str(entry.data.get("home") or session_memory.session)
                kept.append(_own(entry, foreign=home != session_memory.home))
            yield kept


def _own(entry: TapeEntry, *, foreign: bool) -> TapeEntry:
    """Return an entry without content that is shared, exported elsewhere, or foreign."""
    if entry.kind == "event":
        data = dict(entry.data)
        if entry.name in (SHARED_EVENT, REFERENCE_EVENT) or (
            foreign and entry.name == LONG_TERM_EVENT
        ):
            data["content"] = ""
        elif foreign and entry.name in CHAIN_EVENTS:
            data = {key: value for key, value in data.items() if key not in ("working", "state")}
        elif foreign and entry.name == EPISODE_EVENT:
            data["content"] = {}
        elif foreign and entry.name == LOOP_STEP:
            data.pop("extra", None)
        return replace(entry, payload={**entry.payload, "data": data})
    if foreign and entry.kind in ("tool_call", "tool_result"):
        return tombstone(entry)
    return entry


async def _zipped(path: Path, members: Sequence[tuple[str, Pieces]], moment: datetime) -> int:
    """Write the members to a zip file in a worker thread; return its size in bytes."""
    async with AsyncExitStack() as opened:
        for _name, pieces in members:
            await opened.enter_async_context(aclosing(pieces))
        # While it waits for data it must not occupy a thread that the store needs to read them.
        own = anyio.CapacityLimiter(1)
        return await anyio.to_thread.run_sync(partial(_write, path, members, moment), limiter=own)


def _write(path: Path, members: Sequence[tuple[str, Pieces]], moment: datetime) -> int:
    with atomic_writer(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, pieces in members:
                info = zipfile.ZipInfo(name, max(moment.timetuple()[:6], _EARLIEST))
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = PRIVATE_FILE << 16
                with archive.open(info, "w", force_zip64=True) as member:
                    while (piece := _pulled(pieces)) is not None:
                        member.write(piece)
        return file.tell()


def _pulled(pieces: Pieces) -> bytes | None:
    # A cancellation between two waits is only noticed here.
    anyio.from_thread.check_cancelled()
    return anyio.from_thread.run(_next, pieces)


async def _next(pieces: Pieces) -> bytes | None:
    return await anext(pieces, None)


def reference_json(session_memory: SessionMemory) -> str:
    """Return ``reference.json``: the current values for programs."""
    values = [
        reference.as_json() for reference in current_references(session_memory.facts.compartments)
    ]
    head = {"session": session_memory.session, "home": session_memory.home, "references": values}
    return json.dumps(head, indent=1) + "\n"


async def references_pieces(
    store: TapeStore, session_memory: SessionMemory
) -> AsyncGenerator[bytes, None]:
    """Yield ``references.md``: each value with its versions, newest first."""
    kind: ScopeKind = "session" if session_memory.home == session_memory.session else "person"
    scope = ScopeMemory(
        TapeService(store, session_memory.home), kind, SystemClock(), session_memory.facts
    )
    values = SharedReferenceStore(scope, scope.clock)
    for current in sort_references(session_memory.facts.compartments.references.values()):
        numbers = sorted(session_memory.facts.compartments.versions[current.key], reverse=True)
        found = [await values.get(current.key, number) for number in numbers]
        references = [reference for reference in found if reference is not None]
        # A key whose words were erased is left out.
        if any(reference.value is not None for reference in references):
            yield reference_md(
                (reference, citation(reference, scope)) for reference in references
            ).encode("utf-8", "backslashreplace")


async def beliefs_pieces(
    store: TapeStore, session_memory: SessionMemory, moment: datetime, timezone: tzinfo
) -> AsyncGenerator[bytes, None]:
    """Yield ``beliefs.md``: current beliefs, the most certain first."""
    beliefs = [
        belief
        for belief in session_memory.facts.compartments.patterns.values()
        if is_current(belief)
    ]
    for other in sort_by_confidence(beliefs, moment):
        entries = {ground: await entry_of(store, ground) for ground in other.evidence_ids}
        told = belief_md(other, session_memory.facts, entries, moment, timezone)
        yield told.encode("utf-8", "backslashreplace")
