"""Collect what an erasure would remove, from every tape that a person's memory cites.

Tapes are read from end to end in batches and matched in a thread: the event loop stays free, and
only one batch and the matches are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from bot.bus import MCP_CHANNEL
from bot.core.errors import TapeNotFound
from bot.memory.erasure.closure import Closure, ErasureRights
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.persons_entries import EntryLocation, is_persons_entry
from bot.memory.records.fact import Fact
from bot.memory.records.imports import assistant_of
from bot.memory.records.tombstones import is_erased
from bot.memory.session.file_folder import folder_tapes
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.long_term_memory import LongTermMemory, named_home
from bot.memory.session.scope.identities import (
    PERSON_SCOPE_PREFIX,
    WORKSPACE_PREFIX,
    channel_of,
    is_shared_scope,
)
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.store import TapeStore

_NEAR = 4
_SEARCHED = 20


@dataclass(slots=True)
class CandidateCollector:
    """Search the tapes for what a person wants erased; an owner may erase what all share."""

    memory: LongTermMemory
    rights: ErasureRights
    owner: bool = False

    @property
    def store(self) -> TapeStore:
        """The store of the session's tape."""
        return self.memory.tape.store

    async def collect(
        self, query: ErasureQuery, request: TapeEntry | None = None, asking: Iterable[str] = ()
    ) -> Closure:
        """Find what would be erased, without changing anything.

        Args:
            query: What to erase.
            request: The entry that asks for it, on the session's tape.
            asking: The platform's ids of further messages that ask.

        Raises:
            TapeError: A tape cannot be read.
        """
        scopes, known = await self._scopes(), await self.store.list_tapes()
        home = self.memory.home.name
        found = Closure(query, self.rights, home, scopes, origins=await self._origins(known))
        found.asking.update(asking)
        if request is not None:
            found.requested_by(self.memory.tape.name, request)
        found.tapes = await self._own_tapes(found, known)
        size = -1
        while size != found.size:
            size = found.size
            found.begin()
            cited = {tape for tape, _ in found.evidence} & {*known}
            found.tapes |= dict.fromkeys(sorted(cited - found.tapes.keys()), True)
            for tape in found.tapes:
                await visit_entries(self.store, tape, partial(found.look, tape))
        if found.everybodys:
            # The workspace's other tapes hold ids, names and numbers only, no text to erase.
            others = [
                tape
                for tape in known
                if tape not in found.tapes
                and (tape == WORKSPACE_SCOPE or not tape.startswith(WORKSPACE_PREFIX))
            ]
            found.tapes |= dict.fromkeys(others, False)
            for tape in others:
                await visit_entries(self.store, tape, partial(found.look, tape))
        found.settle()
        for tape in found.tapes:
            found.seen[tape] = await visit_entries(self.store, tape, partial(found.count, tape))
        words = [needle.strip() for needle in query.needles]
        said = found.home_facts() or found.counted()
        if not said and len(words) > 1 and query.takes_all and not query.entries:
            found.near = await self._near(found, " ".join(words))
        return found

    async def _near(self, found: Closure, text: str) -> dict[EntryLocation, TapeEntry]:
        """Return people's messages that the store's search finds for a text, best first."""
        tapes, kinds = tuple(found.tapes), frozenset({"message"})
        query = SearchQuery(text, tapes=tapes, kinds=kinds, limit=_SEARCHED, without_assistant=True)
        hits = [
            hit
            for hit in await self.store.search(query)
            if hit.direct
            and is_persons_entry(hit.entry)
            and not is_erased(hit.entry)
            and not found.is_request((hit.tape, hit.entry.id), hit.entry)
            and self.rights.may_erase_message(hit.tape, hit.entry)
        ]
        return {found.place(hit.tape, hit.entry.id): hit.entry for hit in hits[:_NEAR]}

    async def _scopes(self) -> dict[str, Mapping[int, Fact]]:
        """Return the facts of the person's scopes, and of the workspace if they may erase these."""
        home = self.memory.home
        await home.open()
        found: dict[str, Mapping[int, Fact]] = {home.name: dict(home.fold.facts)}
        for identity in self._identities():
            # Each identity's scope keeps its facts from before the link; unlinking restores them.
            before = self.memory.scopes.identity_scope(identity)
            await before.open()
            found.setdefault(before.name, dict(before.fold.facts))
        if self.memory.fold.facts.facts:
            found.setdefault(self.memory.tape.name, dict(self.memory.fold.facts.facts))
        if self.owner:
            await self.memory.workspace.open()
            found[WORKSPACE_SCOPE] = dict(self.memory.workspace.fold.facts)
        return found

    def _identities(self) -> tuple[str, ...]:
        """Return all identities of the person that the home scope belongs to."""
        return self.memory.scopes.identities(self.memory.home.name)

    async def _own_tapes(self, found: Closure, known: list[str]) -> dict[str, bool]:
        """Return the person's tapes, the home scope first: its records name the evidence."""
        home = self.memory.home.name
        names = [home, self.memory.tape.name]
        names += [one.tape for fact in found.scopes[home].values() for one in fact.evidence]
        if self.owner:
            names.append(WORKSPACE_SCOPE)
        for identity in self._identities():
            theirs = PERSON_SCOPE_PREFIX + identity
            begins = f"{channel_of(identity)}:"
            others = [one for one in known if one.startswith(begins) and not is_shared_scope(one)]
            # A chat that was not used since the identities were linked still names its old scope.
            others += [one for one in known if assistant_of(one) or channel_of(one) == MCP_CHANNEL]
            names += [one for one in others if await named_home(self.store, one) in (home, theirs)]
            names.append(theirs)
        # Last: what a file repeats is known by then.
        names += folder_tapes(self.memory)
        parents = {tape: parent for tape, (parent, _) in found.origins.items()}
        while more := [one for one in parents if one not in names and parents[one] in names]:
            names += more
        return dict.fromkeys([tape for tape in names if tape in {*known}], True)

    async def _origins(self, known: Iterable[str]) -> dict[str, EntryLocation]:
        """Return of each fork the tape that it copied, with the last id that it copied."""
        origins: dict[str, EntryLocation] = {}
        for tape in known:
            with suppress(TapeNotFound):
                for anchor in await self.store.list_anchors(tape):
                    source = anchor.state.get("source")
                    if anchor.parent is not None and isinstance(source, list) and len(source) == 2:
                        last = source[1] if type(source[1]) is int else anchor.at
                        origins[tape] = (anchor.parent, last)
        return origins


async def visit_entries(
    store: TapeStore,
    tape: str,
    look: Callable[[TapeEntry], object],
    first: int = 1,
    through: int | None = None,
) -> int:
    """Call a function in a thread with each entry of a tape, oldest first; return the last id."""
    done = first - 1
    with suppress(TapeNotFound):
        async with aclosing(read_batches(store, tape, first, through)) as parts:
            async for entries in parts:
                await anyio.to_thread.run_sync(list, map(look, entries))
                done = entries[-1].id if entries else done
    return done
