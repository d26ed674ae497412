"""The registry of memory scopes, and the rules for which scope a session uses.

Rule 1: what is learned in a private chat belongs to the person, and is read only in their private
    chats, on all channels whose identities they linked (``identities.py``).
Rule 2: what is learned in a group belongs to the group's own session.
Rule 3: a private chat becomes a group once another person writes in it.
Rule 4: everybody reads the workspace; only an owner writes to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from weakref import WeakValueDictionary

from bot.bus import Inbound
from bot.core.clock import Clock
from bot.memory.gate.write_gate import WriteGate
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.proposals import BatchOutcome
from bot.memory.session.linking.identity_linker import IdentityLinker
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX, ScopeMove
from bot.memory.session.scope.scope_memory import ScopeKind, ScopeMemory
from bot.memory.session.scope.session_locks import SessionLocks
from bot.memory.session.state.session_fold import SCOPE_EVENT
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

WORKSPACE_SCOPE = "workspace:shared"


def person_scope(channel: str, sender: str) -> str:
    """Return the name of the scope tape for one identity on one channel."""
    return f"{PERSON_SCOPE_PREFIX}{channel}:{sender}"


def scope_entry(home: str, parting: int = 0) -> TapeEntry:
    """Return the event that names a session's home scope, and the newest parting that it knows of."""
    return event(SCOPE_EVENT, {"home": home, **({"parting": parting} if parting else {})})


def changed_home(inbound: Inbound, home: str, person: str) -> str | None:
    """Return the home scope that a message gives a session; None if it does not change.

    Args:
        inbound: The message.
        home: The current home scope; empty if not settled yet.
        person: Scope of the message's author.
    """
    wanted = person if inbound.private else inbound.session
    if not home:
        return wanted
    return inbound.session if home not in (wanted, inbound.session) else None


class ActiveSession(Protocol):
    """A session with a worker, whose state in memory must follow erasures on its tape."""

    @property
    def key(self) -> str:
        """The session's key, which is the name of its tape."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether something is running that has read the tape."""
        ...

    def cancel_background_work(self) -> None:
        """Cancel background work on words that are about to be erased."""
        ...

    async def reload(self) -> None:
        """Read the tape again."""
        ...

    async def update_home(self) -> None:
        """Switch to the person's current scope after identities linked or unlinked."""
        ...


class ScopeRegistry:
    """All scopes of the process; each is open once.

    Args:
        store: The store of all tapes.
        clock: The current time.
        gate: Decides what is believed, in every scope.

    Attributes:
        clock: The current time.
        identity_linker: Links between identities.
        active_sessions: Sessions with a worker, by tape name.
        session_locks: Locks that keep sessions closed while their tapes are erased.
        observer: Called with tape name and entry for each append by this process to a scope's tape.
    """

    def __init__(self, store: TapeStore, clock: Clock, *, gate: WriteGate | None = None) -> None:
        self._store = store
        self.clock = clock
        self._gate = gate or WriteGate()
        self.active_sessions: dict[str, ActiveSession] = {}
        self.session_locks = SessionLocks()
        self.observer: Callable[[str, TapeEntry], object] | None = None
        # Sessions keep their scopes alive; an unused scope is read again on demand.
        self._people: WeakValueDictionary[str, ScopeMemory] = WeakValueDictionary()
        self.identity_linker = IdentityLinker(store, clock, self.identity_scope)
        self._workspace = self._scope(WORKSPACE_SCOPE, "workspace")

    def workspace(self) -> ScopeMemory:
        """Return the workspace scope, which everybody reads."""
        return self._workspace

    def home(self, session: TapeService, facts: FactFold, home: str) -> ScopeMemory:
        """Return the scope that a session's facts belong to.

        Args:
            session: The session's tape.
            facts: State of the facts on that tape.
            home: Name of the scope's tape; empty for the session's own.
        """
        if not home or home == session.name:
            return ScopeMemory(session, "session", self.clock, facts, gate=self._gate)
        return self.person(home)

    def identity_scope(self, identity: str) -> ScopeMemory:
        """Return an identity's own scope, whether or not it is linked to others."""
        return self.person(f"{PERSON_SCOPE_PREFIX}{identity}")

    def person_tape(self, channel: str, sender: str) -> str:
        """Return the scope tape of an identity's person, which all linked identities share."""
        return f"{PERSON_SCOPE_PREFIX}{self.identity_linker.people.primary_identity(f'{channel}:{sender}')}"

    def parting(self, home: str) -> int:
        """Return the id of the event after which a scope's identities last parted; 0 if never."""
        owner = home.removeprefix(PERSON_SCOPE_PREFIX)
        return self.identity_linker.people.partings.get(owner, 0) if owner != home else 0

    def identities(self, home: str) -> tuple[str, ...]:
        """Return the identities that use a person's scope now; none for any other tape."""
        identity = home.removeprefix(PERSON_SCOPE_PREFIX)
        members = self.identity_linker.people.members(identity)
        return members if home.startswith(PERSON_SCOPE_PREFIX) and members[0] == identity else ()

    def open_scopes(self) -> list[ScopeMemory]:
        """Return the workspace and the persons' scopes that are in use."""
        return [self._workspace, *self._people.values()]

    async def apply_move(self, move: ScopeMove) -> BatchOutcome:
        """Move facts and live sessions to their new scopes after a link or unlink.

        Returns:
            The decisions on the facts in their new scope.

        Raises:
            TapeWriteError: The storage failed; a retry continues from there.
        """
        # First the live sessions, so that they add nothing to the scope that they leave.
        for active_session in list(self.active_sessions.values()):
            await active_session.update_home()
        outcome = await self.identity_linker.finish_moves(move)
        for active_session in list(self.active_sessions.values()):
            await active_session.update_home()
        return outcome

    def person(self, name: str) -> ScopeMemory:
        """Return a person's scope by the name of its tape."""
        scope_memory = self._people.get(name)
        if scope_memory is None:
            scope_memory = self._scope(name, "person")
            self._people[name] = scope_memory
        return scope_memory

    def _scope(self, name: str, kind: ScopeKind) -> ScopeMemory:
        tape = TapeService(self._store, name)
        tape.observe(lambda entry: self.observer and self.observer(name, entry))
        return ScopeMemory(tape, kind, self.clock, gate=self._gate)
