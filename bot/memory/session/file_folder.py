"""The files of a person or a group: fold their tapes, and search the files' text.

Rule 1: the folder of a person is what was kept in all their linked private chats; each chat's files
    stay on the tape of the identity that uses it, so that linking and unlinking move nothing.
Rule 2: the folder of a group, like its facts, is the group's own, and read only there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio

from bot.core.errors import TapeNotFound
from bot.memory.records.event_names import FILE_TEXT
from bot.memory.records.file_names import name_key, numbered_name
from bot.memory.records.files import FILES_PREFIX, FolderFold, KeptFile
from bot.memory.records.tombstones import is_erased
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.recall import RecalledPassage, passage_pieces
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX, IdentityFold, channel_of
from bot.memory.session.scope.workspace_tape import append_with_retry, catch_up
from bot.tape.entries import TapeEntry
from bot.tape.folding import FoldedTape, fold_tape
from bot.tape.search import MAX_QUERY_LENGTH, SearchQuery
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_MOST_OPEN = 256
_RECALLED = 4
"""Sections of files that a recall looks at."""

_CANDIDATES = 4
"""Hits that are read per wanted section: older versions of files are among them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileSection:
    """A section of a file's text.

    Attributes:
        file: The file.
        name: Its name in the folder.
        place: Where in the file, such as ``page 3``; empty if the file has no places.
        text: The text.
        score: The rank of a hit; 0 otherwise.
    """

    file: KeptFile
    name: str
    place: str
    text: str
    score: float = 0.0

    @property
    def source(self) -> str:
        """The source to cite: the file's name, and the place in it."""
        return f"{self.name}, {self.place}" if self.place else self.name


def folder_tapes(memory: LongTermMemory) -> list[str]:
    """Return the tapes of a session's folder: first the one that new files are kept on."""
    channel = channel_of(memory.tape.name)
    tapes = folder_tapes_of(memory.home.name, memory.scopes.identity_linker.people)
    return sorted(tapes, key=lambda tape: channel_of(_scope_of(tape)) != channel)


def folder_tapes_of(home: str, people: IdentityFold) -> list[str]:
    """Return the tapes of the folder that belongs to a scope, given the links between identities."""
    if not home.startswith(PERSON_SCOPE_PREFIX):
        return [f"{FILES_PREFIX}{home}"]
    members = people.members(home.removeprefix(PERSON_SCOPE_PREFIX))
    return [f"{FILES_PREFIX}{PERSON_SCOPE_PREFIX}{member}" for member in members]


def _scope_of(tape: str) -> str:
    return tape.removeprefix(FILES_PREFIX).removeprefix(PERSON_SCOPE_PREFIX)


class FolderTape:
    """One tape of files, and the state folded from it.

    Args:
        store: The store of all tapes; the first change creates the tape.
        name: The tape's name.

    Attributes:
        tape: The tape.
        fold: The state, as far as the tape was read.
    """

    def __init__(self, store: TapeStore, name: str) -> None:
        self.tape = TapeService(store, name)
        self.tape.observe(self._apply)
        self.fold = FolderFold(name)
        self._opening = anyio.Lock(fast_acquire=True)
        self._kept: FoldedTape[FolderFold] | None = None
        self._erasures = 0

    @property
    def exists(self) -> bool:
        """Whether the tape exists, as far as is known."""
        return self._kept is not None

    async def open(self) -> FolderFold:
        """Read what is new on the tape, and return its state; a folder without files has no tape."""
        store, name = self.tape.store, self.tape.name
        if not self.exists and store.is_known_absent(name):
            return self.fold
        async with self._opening:
            try:
                # Before reading: an erasure meanwhile is noticed the next time.
                erasures = await store.erasures(name)
                if self._kept is None or erasures != self._erasures:
                    self._kept = await fold_tape(store, name, partial(FolderFold, name))
                    self.fold, self._erasures = self._kept.fold, erasures
                elif (last := await self.tape.version()) != self.fold.version:
                    await catch_up(self.tape, self.fold, last)
                await self._kept.keep(self.fold.version)
            except TapeNotFound:
                self.fold, self._kept = FolderFold(name), None
            return self.fold

    async def change(self, compose: Callable[[FolderFold, int], tuple[list[TapeEntry], T]]) -> T:
        """Append what ``compose`` returns for the state and the tape's version, by compare-and-set.

        It may be called more than once.

        Raises:
            VersionConflict: Others wrote first each time.
            TapeWriteError: The storage failed; nothing was changed.
        """
        await self.tape.ensure_bootstrap_anchor()
        await self.open()

        return await append_with_retry(
            self.tape, self, lambda version: compose(self.fold, version), self.open
        )

    async def erase(self, tombstones: list[TapeEntry]) -> None:
        """Replace the entries of versions that are stale.

        The state without them is the same, so it is not folded anew: that reads all texts.

        Raises:
            TapeWriteError: The storage failed; calling again goes on.
        """
        store, name = self.tape.store, self.tape.name
        await store.erase(name, tombstones)
        if self._kept is not None and await store.erasures(name) == self._erasures + 1:
            self._erasures += 1
            gone = {entry.id for entry in tombstones}
            stale = self.fold.stale.items()
            self.fold.stale = {entry: file for entry, file in stale if entry not in gone}
            await self._kept.keep_after_erasure(self.fold.version, self._erasures)
        await self.open()

    @property
    def version(self) -> int:
        """Id of the last entry applied."""
        return self.fold.version

    def _apply(self, entry: TapeEntry) -> None:
        self.fold.apply(entry)


class FileFolders:
    """The folders of files of all sessions.

    Args:
        store: The store of all tapes.
    """

    def __init__(self, store: TapeStore) -> None:
        self._store = store
        self._tapes: OrderedDict[str, FolderTape] = OrderedDict()

    def tape(self, name: str) -> FolderTape:
        """Return a folder's tape by its name."""
        found = self._tapes.get(name) or FolderTape(self._store, name)
        self._tapes[name] = found
        self._tapes.move_to_end(name)
        while len(self._tapes) > _MOST_OPEN:
            self._tapes.popitem(last=False)
        return found

    async def tapes(self, memory: LongTermMemory) -> list[FolderTape]:
        """Return the open tapes of a session's folder: first the one that new files are kept on."""
        found = [self.tape(name) for name in folder_tapes(memory)]
        for tape in found:
            await tape.open()
        return found

    async def files(self, memory: LongTermMemory) -> dict[str, KeptFile]:
        """Return the files of a session's folder by their names, sorted."""
        return listing([tape.fold for tape in await self.tapes(memory)])

    async def search(self, memory: LongTermMemory, text: str, limit: int) -> list[FileSection]:
        """Return the sections of files that fit a query best; without words, none."""
        tapes = [tape for tape in await self.tapes(memory) if tape.fold.files]
        if not tapes or not text.strip():
            return []
        names = {
            (file.tape, file.entry): name
            for name, file in listing([tape.fold for tape in tapes]).items()
        }
        query = SearchQuery(
            text,
            tapes=tuple(tape.tape.name for tape in tapes),
            kinds=frozenset({"event"}),
            names=frozenset({FILE_TEXT}),
            limit=limit * _CANDIDATES,
        )
        sections: list[FileSection] = []
        for hit in await self._store.search(query):
            data = hit.entry.data
            name = names.get((hit.tape, _number(data.get("kept"))))
            file = self.tape(hit.tape).fold.files.get(_number(data.get("file")))
            if name is not None and file is not None and not is_erased(hit.entry) and hit.direct:
                sections.append(_section(file, name, hit.entry, hit.score))
        return sections[:limit]

    async def passages(self, memory: LongTermMemory, text: str) -> list[RecalledPassage]:
        """Return passages of files that fit a query, with file and place as their speaker."""
        found = await self.search(memory, text[:MAX_QUERY_LENGTH], _RECALLED)
        return [
            RecalledPassage(
                section.file.kept.astimezone(memory.zone.timezone).strftime("%Y-%m-%d")
                if section.file.kept
                else "",
                f"file:{section.source}",
                piece,
                None,
                0.0,
            )
            for section in found
            for piece in passage_pieces(section.text)
            if piece
        ]

    async def read(self, file: KeptFile, name: str) -> list[FileSection]:
        """Return all sections of a file's text, in order."""
        if not file.sections:
            return []
        entries = await self.tape(file.tape).tape.read_entries(file.ids[0], file.ids[-2])
        return [
            _section(file, name, entry, 0.0)
            for entry in entries
            if entry.name == FILE_TEXT and not is_erased(entry)
        ]


def listing(folds: list[FolderFold]) -> dict[str, KeptFile]:
    """Return the current files of a folder by their names, sorted.

    Linked chats may have kept files of the same name: the one kept first has it, others get numbers.
    """
    named: dict[str, KeptFile] = {}
    taken: set[str] = set()
    files = [file for fold in folds for file in fold.files.values()]
    for file in sorted(files, key=lambda file: (str(file.kept), file.tape, file.number)):
        name, number = file.name, 1
        while name_key(name) in taken:
            number += 1
            name = numbered_name(file.name, number)
        taken.add(name_key(name))
        named[name] = file
    return dict(sorted(named.items(), key=lambda item: name_key(item[0])))


def _section(file: KeptFile, name: str, entry: TapeEntry, score: float) -> FileSection:
    data = entry.data
    return FileSection(file, name, str(data.get("place") or ""), str(data.get("text") or ""), score)


def _number(value: object) -> int:
    return value if type(value) is int else 0
