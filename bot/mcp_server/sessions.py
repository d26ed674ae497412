"""Which sessions a program may read.

Rule 1: never a group's: only sessions whose memory is the person's own, on all linked channels.
Rule 2: a program with sessions of its own reads only these.
Rule 3: whose a session is follows from its tape and from links between identities, as they are now.
"""

from __future__ import annotations

from collections import OrderedDict

from bot.bus import MCP_CHANNEL
from bot.core.errors import TapeNotFound
from bot.mcp_server.client import MemoryClient
from bot.memory.records.imports import assistant_of
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.long_term_memory import named_home, resolve_home
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX, channel_of, is_shared_scope
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_MOST_HELD = 20_000


class ReadableSessions:
    """Finds the sessions that programs may read."""

    def __init__(self, store: TapeStore, scopes: ScopeRegistry) -> None:
        self._store = store
        self._scopes = scopes
        self._homes: OrderedDict[str, tuple[int, str]] = OrderedDict()

    async def home(self, client: MemoryClient) -> ScopeMemory:
        """Return the scope of the person's facts, read up to now."""
        await self._scopes.identity_linker.open()
        channel, _, sender = client.person.partition(":")
        home = self._scopes.person(self._scopes.person_tape(channel, sender))
        await home.open()
        return home

    async def of(self, client: MemoryClient) -> list[str]:
        """Return the sessions that a program may read.

        Raises:
            TapeError: The storage failed.
        """
        tapes = await self._store.list_tapes()
        if client.own_sessions:
            return [tape for tape in tapes if _is_own(tape, client)]
        home = (await self.home(client)).name
        identities = self._scopes.identities(home) or (client.person,)
        channels = {channel_of(identity) for identity in identities}
        theirs = frozenset({home, *(f"{PERSON_SCOPE_PREFIX}{one}" for one in identities)})
        return [
            tape
            for tape in tapes
            if not is_shared_scope(tape) and await self._is_theirs(tape, channels, theirs, home)
        ]

    async def _is_theirs(
        self, tape: str, channels: set[str], theirs: frozenset[str], home: str
    ) -> bool:
        channel = channel_of(tape)
        if channel == MCP_CHANNEL or assistant_of(tape):
            # Nobody speaks there, so their scope does not change.
            return await self._home_on(tape) in theirs
        if channel not in channels:
            return False
        told = await self._home_on(tape)
        if not told.startswith(PERSON_SCOPE_PREFIX):
            return False
        return await resolve_home(TapeService(self._store, tape), told, self._scopes) == home

    async def _home_on(self, tape: str) -> str:
        """Return the scope that a session's tape names; empty if it names none."""
        try:
            version = await self._store.version(tape)
            held = self._homes.get(tape)
            if held is None or held[0] != version:
                held = self._homes[tape] = version, await named_home(self._store, tape)
                while len(self._homes) > _MOST_HELD:
                    self._homes.popitem(last=False)
        except TapeNotFound:
            return ""
        return held[1]


def _is_own(tape: str, client: MemoryClient) -> bool:
    number = tape.removeprefix(client.own_prefix)
    begins = tape.startswith(client.own_prefix)
    return tape == client.tape or (begins and number.isascii() and number.isdecimal())
