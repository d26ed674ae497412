"""Write all memory of a session to a zip file that a user can download, or some of its files to a folder.

It contains neither settings and tokens nor other people's conversations, nor what is shared by all
sessions.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import partial
from hashlib import sha256
from pathlib import Path

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
from bot.memory.records.episodes import EPISODE_EVENT
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import CHANGE_EVENTS, FACTS_EVENT, FactFold
from bot.memory.records.tombstones import tombstone
from bot.memory.session.archive_summary import ArchiveSummary
from bot.memory.session.bus import shared_reference as references
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
from bot.transfer import memory_files
from bot.transfer.markdown import MarkdownTranscript
from bot.transfer.memory_files import SessionMemory, read_session_memory
from bot.transfer.whole_files import atomic_writer, in_own_thread, pulled

Pieces = AsyncGenerator[bytes, None]
Batches = AsyncGenerator[list[TapeEntry], None]

_HEAD = N_("What tapebot remembers of {session}, as of {moment}.\n\n")
_TAIL = N_("""
Times are in {timezone}, except in the files for programs, where they are in UTC.
`tapebot import nanobot FOLDER` reads MEMORY.md, HISTORY.md and the notes from the unpacked folder.
""")
_NOT_IN_NAMES = LazyPattern(r"[^A-Za-z0-9]+")
_LONGEST_NAME = 60
_MARK = 8
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a date in a zip
_KEPT = 10


def _files(store: TapeStore, memory: SessionMemory) -> dict[str, tuple[str, Pieces]]:
    """Return what is exported: by file name what the README says of it, and its content."""
    session, facts, timezone = memory.session, memory.facts, memory.timezone
    told = MarkdownTranscript(timezone)
    head = {"session": session, "home": memory.home}
    values = [one.as_json() for one in references.current_references(facts.compartments)]
    # Of an erased fact only its number is left.
    known = [fact for fact in facts.facts.values() if fact.text]
    return {
        "MEMORY.md": (
            N_("active facts, a line each, by subject"),
            _once(memory_files.memory_md(memory)),
        ),
        "HISTORY.md": (
            N_("summaries of consolidated messages, oldest first"),
            _each(
                read_batches(store, session), lambda entry: memory_files.history_md(entry, timezone)
            ),
        ),
        "notes/": (N_("daily notes, a file per day"), _once("")),
        "facts.json": (
            N_("all facts, also ended and pending ones, with evidence and what they replaced"),
            _once(
                json.dumps(head)[:-1]
                + ', "facts": [\n'
                + ",\n".join(_fact_json(fact, facts) for fact in known)
                + "\n]}\n"
            ),
        ),
        "references.md": (
            N_("shared values by key, each with its versions and sources"),
            _references(store, memory),
        ),
        "reference.json": (
            N_("the current values, for programs"),
            _once(json.dumps(head | {"references": values}, indent=1) + "\n"),
        ),
        "beliefs.md": (
            N_("conclusions, with their confidence and evidence"),
            _beliefs(store, memory),
        ),
        "problems.md": (
            N_("current and past problems: names, states, summaries, notes"),
            _once(memory_files.problems_md(memory)),
        ),
        "decisions.jsonl": (
            N_("every change of these, with its reason and author; a line each"),
            _each(_decisions(store, memory), encode_line),
        ),
        "conversation.md": (
            N_("all messages, for reading"),
            _each(_said(store, memory), told.block, told.head(memory.title, session)),
        ),
        "conversation.jsonl": (
            N_("all entries, for programs; `tapebot import jsonl` reads it"),
            _each(_said(store, memory), encode_line),
        ),
    }


def _fact_json(fact: Fact, facts: FactFold) -> str:
    return json.dumps(fact.as_json() | {"chain": [other.id for other in facts.history(fact)]})


async def _decisions(store: TapeStore, memory: SessionMemory) -> Batches:
    # Of a person without facts there is no tape.
    if not memory.facts.last_change:
        return
    own = memory.home == memory.session
    async with aclosing(_said(store, memory) if own else read_batches(store, memory.home)) as parts:
        async for entries in parts:
            events = [entry for entry in entries if entry.kind == "event"]
            yield [entry for entry in events if entry.name in (FACTS_EVENT, BUS_EVENT)]


async def _references(store: TapeStore, memory: SessionMemory) -> Pieces:
    kind: ScopeKind = "session" if memory.home == memory.session else "person"
    scope = ScopeMemory(TapeService(store, memory.home), kind, SystemClock(), memory.facts)
    values, compartments = (
        references.SharedReferenceStore(scope, scope.clock),
        memory.facts.compartments,
    )
    for current in references.sort_references(compartments.references.values()):
        numbers = sorted(compartments.versions[current.key], reverse=True)
        found = [await values.get(current.key, number) for number in numbers]
        versions = [(one, references.citation(one, scope)) for one in found if one is not None]
        # A key whose words were erased is left out.
        if any(one.value is not None for one, _cited in versions):
            yield _encoded(memory_files.reference_md(versions))


async def _beliefs(store: TapeStore, memory: SessionMemory) -> Pieces:
    current = filter(is_current, memory.facts.compartments.patterns.values())
    for belief in sort_by_confidence([*current], memory.now):
        yield _encoded(await memory_files.belief_md(belief, memory, store))


async def _blobs(store: TapeStore, home: str, blobs: Blobs) -> list[tuple[str, Pieces]]:
    """Return the files of a scope's folder, as members of the archive."""
    linker = ScopeRegistry(store, SystemClock()).identity_linker
    await linker.open()
    folders, tapes = FileFolders(store), folder_tapes_of(home, linker.people)
    folds = [await folders.tape(tape).open() for tape in tapes]
    return [(f"files/{name}", _blob(blobs, one.blob)) for name, one in listing(folds).items()]


async def _blob(blobs: Blobs, name: str) -> Pieces:
    yield await blobs.get(name) or b""


async def _once(text: str) -> Pieces:
    yield _encoded(text)


async def _each(
    batches: Batches, render: Callable[[TapeEntry], str | bytes], head: str = ""
) -> Pieces:
    """Yield all entries, each as it is rendered."""
    yield _encoded(head)
    async with aclosing(batches):
        async for entries in batches:
            yield b"".join(_encoded(render(entry)) for entry in entries)


def _encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")


async def _said(store: TapeStore, memory: SessionMemory) -> Batches:
    """Yield the session's tape in batches, without content of other scopes."""
    home = memory.home
    async with aclosing(read_batches(store, memory.session)) as parts:
        async for entries in parts:
            kept: list[TapeEntry] = []
            for entry in entries:
                if entry.kind == "event" and entry.name == SCOPE_EVENT:
                    home = str(entry.data.get("home") or memory.session)
                kept.append(_own(entry, foreign=home != memory.home))
            yield kept


def _own(entry: TapeEntry, *, foreign: bool) -> TapeEntry:
    """Return an entry without content that is shared, exported elsewhere, or foreign."""
    if entry.kind == "event":
        data = dict(entry.data)
        if entry.name in (SHARED_EVENT, REFERENCE_EVENT) or (
            foreign and entry.name == LONG_TERM_EVENT
        ):
            data["content"] = ""
        elif foreign and entry.name in CHANGE_EVENTS:
            data.pop("working", None)
        elif foreign and entry.name == EPISODE_EVENT:
            data["content"] = {}
        elif foreign and entry.name == LOOP_STEP:
            data.pop("extra", None)
        return replace(entry, payload={**entry.payload, "data": data})
    if foreign and entry.kind in ("tool_call", "tool_result"):
        return tombstone(entry)
    return entry


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
            summary = await write_archive(
                self.store, session, path, self.timezone, moment, blobs=self.blobs
            )
            await anyio.to_thread.run_sync(_keep_newest, self.folder, session)
        except OSError as error:
            raise TapeWriteError(
                _("{name} could not be written ({error})", name=path.name, error=error.strerror)
            ) from error
        return summary


def archive_name(session: str, key: str, moment: datetime) -> str:
    """Return a unique archive name: ``memory-telegram-42-20260306-<hash>-<hash>.zip``."""
    readable = _NOT_IN_NAMES.sub("-", session).strip("-")[:_LONGEST_NAME]
    return f"memory-{readable}-{moment:%Y%m%d}-{_mark(session)}-{_mark(key)}.zip"


async def write_archive(
    store: TapeStore,
    session: str,
    path: Path,
    timezone: tzinfo,
    moment: datetime,
    *,
    blobs: Blobs | None = None,
) -> ArchiveSummary:
    """Write all memory of a session to a file; needs memory for one batch of entries, or one file."""
    memory = await read_session_memory(store, session, timezone, moment)
    described, dailies = _files(store, memory), memory.zone.dailies
    sent = [] if blobs is None else await _blobs(store, memory.home, blobs)
    members = [("README.txt", _readme(memory, described, has_files=bool(sent)))]
    for name, (_about, pieces) in described.items():
        notes = [(_note_name(one.date), _once(f"{one.content.strip()}\n")) for one in dailies]
        members += notes if name == "notes/" else [(name, pieces)]
    members += sent
    async with AsyncExitStack() as opened:
        for _name, pieces in members:
            await opened.enter_async_context(aclosing(pieces))
        size = await in_own_thread(partial(_write, path, members, moment.astimezone(timezone)))
    counts = (len(memory.facts.active()), memory.history, len(dailies), memory.messages)
    return ArchiveSummary(path, size, *counts, len(sent))


async def write_files(
    store: TapeStore, session: str, folder: Path, timezone: tzinfo, names: Collection[str]
) -> None:
    """Write some of an archive's files to a folder, replacing those there."""
    described = _files(store, await read_session_memory(store, session, timezone))
    into = private_directory(folder).resolve()
    for name in names:
        async with aclosing(described[name][1]) as pieces:
            await in_own_thread(partial(_write_one, into / name, pieces))


def _write_one(path: Path, pieces: Pieces) -> None:
    with atomic_writer(path) as file:
        file.writelines(pulled(pieces))


def _readme(
    memory: SessionMemory, described: Mapping[str, tuple[str, Pieces]], *, has_files: bool
) -> Pieces:
    abouts = {name: about for name, (about, _pieces) in described.items()}
    abouts |= {"files/": N_("the files that are kept here")} if has_files else {}
    local = f"{memory.now.astimezone(memory.timezone):%Y-%m-%d %H:%M}"
    text = _(_HEAD, session=memory.session, moment=local)
    text += "".join(f"{name:<20}{_(about)}\n" for name, about in abouts.items())
    return _once(text + _(_TAIL, timezone=getattr(memory.timezone, "key", memory.timezone)))


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


def _write(path: Path, members: Sequence[tuple[str, Pieces]], moment: datetime) -> int:
    """Write the members to a zip file in a worker thread; return its size in bytes."""
    with atomic_writer(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, pieces in members:
                info = zipfile.ZipInfo(name, max(moment.timetuple()[:6], _EARLIEST))
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = PRIVATE_FILE << 16
                with archive.open(info, "w", force_zip64=True) as member:
                    member.writelines(pulled(pieces))
        return file.tell()
