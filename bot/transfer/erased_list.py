"""Keep a list of what was erased, by ids, and erase it again from a restored backup.

The list, ``erased.jsonl``, stands in the home and beside its backups. A line has no words: digests of
tapes' names, ids of entries, numbers of facts, times, and the signature of the home that erased.

Rule 1: a line is written before its entries are erased, so a kill loses none.
Rule 2: a line counts for entries that are older than it: after a restore, ids are given again. It is as new
    as the newest entry that it names, whatever the clock says.
Rule 3: what an erasure left of an entry is known by its digest: a backup from after it stays as it is. Of an
    older entry all texts go, where the erasure may have left some.
"""

from __future__ import annotations

import json
import logging
import os
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot.bus.local import LocalBus
from bot.bus.media.blobs import FolderBlobs
from bot.core.clock import Clock, format_time
from bot.core.files import PRIVATE_FILE, list_files_below, write_all
from bot.memory.erasure.entry_eraser import EntryEraser
from bot.memory.erasure.persons_entries import EntryLocation, blobs_in
from bot.memory.erasure.text_matcher import EVERYTHING, TextMatcher
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.fact_fold import CHANGE_EVENTS
from bot.memory.records.tombstones import entry_digest, is_erased, tombstone, written_at
from bot.tape.entries import TapeEntry
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder, workspaces_in
from bot.transfer.backup_key import is_signed, signing_key

ERASED_LIST = "erased.jsonl"
_COPIES = (("exports", "*"), ("console", "*"), ("channels/web", "*"), ("channels", "*.damaged"))
"""Folders of a home with copies of what was said, and the names of these."""

logger = logging.getLogger(__name__)


class ErasedList:
    """Writes what is erased to the list of the home, and to that beside the backups, if there are any."""

    def __init__(self, home: Path, backups: Path | None, clock: Clock, workspace: str = "") -> None:
        self._home, self._backups, self._clock = home, backups, clock
        self._tapes = TapeFolder(home / "tapes", workspace)

    def note(
        self,
        tape: str,
        *,
        ids: Collection[int] = (),
        parts: Mapping[int, str] = MappingProxyType({}),
        facts: Collection[int] = (),
        beliefs: Collection[str] = (),
        quotes: Collection[tuple[int, str, int]] = (),
        blobs: Collection[str] = (),
        reset: bool = False,
        newest: str = "",
    ) -> None:
        """Write durably what is erased of a tape, whose ``newest`` entry to be erased has this time.

        ``ids`` go as a whole; ``parts`` are digests of what is left of others (``entry_digest``); facts
        and beliefs go from its records; ``quotes`` of facts that stay: fact, tape and entry.

        Raises:
            OSError: The home's list cannot be written.
        """
        told = {
            "tape": tape_digest(self._tapes, tape),
            "at": max(format_time(self._clock.now()), newest),
            "parts": {str(number): parts[number] for number in sorted(parts)},
            "ids": sorted(ids),
            "facts": sorted(facts),
            "beliefs": sorted(beliefs),
            "quotes": sorted(
                [fact, tape_digest(self._tapes, where), entry] for fact, where, entry in quotes
            ),
            "blobs": sorted(blobs),
            "reset": reset,
        }
        key = signing_key(self._home)
        text = json.dumps(told, ensure_ascii=True)
        line = json.dumps({"line": text, "signature": b64encode(key.sign(text.encode())).decode()})
        _append(self._home / ERASED_LIST, line)
        if self._backups is not None and self._backups.is_dir():
            try:
                _append(self._backups / ERASED_LIST, line)
            except OSError as error:
                # The next backup brings it along.
                logger.warning("cannot write beside the backups what was erased: %s", error)


def tape_digest(folder: TapeFolder, tape: str) -> str:
    """Return what stands for a workspace's tape, whose name may be a person's number."""
    return sha256(folder.stem(tape).encode()).hexdigest()[:32]


def _append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        # In front as well: a kill may have left half a line.
        write_all(descriptor, f"\n{line}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_list(source: Path, target: Path) -> None:
    """Add the lines of one list to another, if there are any."""
    # Appended, since the running program may write to it meanwhile.
    known = {*_lines(target)}
    if missing := [line for line in dict.fromkeys(_lines(source)) if line not in known]:
        _append(target, "\n".join(missing))


def _lines(path: Path) -> list[str]:
    text = path.read_text("utf-8", "replace") if path.exists() else ""
    return list(filter(None, text.split("\n")))


def signed_lines(path: Path, signer: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a list that a home signed; what others wrote counts for nothing."""
    for line in _lines(path):
        try:
            told = json.loads(line)
            text, signature = str(told["line"]), b64decode(told["signature"])
            if is_signed(text.encode(), signature, signer):
                yield json.loads(text)
        except (ValueError, KeyError, TypeError):
            continue


async def erase_again(home: Path, signer: str) -> int:
    """Erase from a restored home what its list names; return how many entries and files."""
    if not (lines := list(signed_lines(home / ERASED_LIST, signer))):
        return 0
    gone = {blob for line in lines for blob in line["blobs"]}
    changed = 0
    for workspace in workspaces_in(home / "tapes"):
        changed += await _erase_workspace(home / "tapes", workspace, lines, gone)
    blobs = FolderBlobs(home / "blobs")
    for blob in gone:
        changed += bool(await blobs.remove(blob))
    if changed:
        bus = LocalBus(home / "bus", max_queued_messages=1)
        await bus.purge()
        await bus.aclose()
        for folder, pattern in _COPIES:
            for path in filter(Path.is_file, list_files_below(home / folder, pattern)):
                path.unlink()
    return changed


async def _erase_workspace(
    tapes: Path, workspace: str, lines: list[dict[str, Any]], gone: set[str]
) -> int:
    """Erase from the tapes of a workspace; take the files that its entries still name out of ``gone``."""
    folder, changed = TapeFolder(tapes, workspace), 0
    store = FileTapeStore(tapes, workspace=workspace)
    try:
        names = {tape_digest(folder, name): name for name in await store.list_tapes()}
        places = {
            (names.get(line["tape"], ""), int(entry))
            for line in lines
            for entry in (*line["ids"], *line["parts"])
        }
        for digest, name in names.items():
            theirs = [line for line in lines if line["tape"] == digest]
            changed += await _erase_tape(store, name, theirs, names, places) if theirs else 0
        for name in names.values() if gone else ():
            async for entry in store.read_back(name):
                gone -= blobs_in(entry)
    finally:
        await store.close()
    return changed


async def _erase_tape(
    store: FileTapeStore,
    tape: str,
    lines: list[dict[str, Any]],
    names: dict[str, str],
    places: set[EntryLocation],
) -> int:
    changed = 0
    for line in lines:
        at, facts = line["at"], frozenset(line["facts"])
        if line["reset"]:
            entries = await store.read(tape)
            if entries and not any(written_at(one) > at for one in entries):
                await store.reset(tape)
                changed += len(entries)
            continue
        quotes = {(fact, names.get(where, ""), entry) for fact, where, entry in line["quotes"]}
        beliefs = frozenset(line["beliefs"])
        version, fresh = await store.version(tape), list[TapeEntry]()
        parts = {int(number): digest for number, digest in line["parts"].items()}
        for number in sorted(one for one in (*line["ids"], *parts) if one <= version):
            for entry in await store.read(tape, number, number):
                if parts.get(number) == entry_digest(entry):
                    continue
                by_number = entry.name in CHANGE_EVENTS - {BUS_EVENT}
                words = TextMatcher() if by_number else EVERYTHING
                eraser = EntryEraser(words, facts, places, beliefs, quotes=quotes)
                new = _erased(entry, eraser, whole=number not in parts)
                if written_at(entry) <= at and new != entry:
                    fresh.append(new)
        changed += await store.erase(tape, fresh) if fresh else 0
    return changed


def _erased(entry: TapeEntry, eraser: EntryEraser, *, whole: bool) -> TapeEntry:
    if is_erased(entry):
        return entry
    record = entry.kind == "event" and entry.name in CHANGE_EVENTS
    return tombstone(entry) if whole and not record else eraser.clear(entry)
