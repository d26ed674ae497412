"""Which scopes there are, and which of them a session reads.

Rule 1: what is learned in a private chat belongs to the person, and is read in their private chats alone; where
    they joined identities on several channels (``memory.people``), in those of all of them.
Rule 2: what is learned in a group belongs to the group's own session.
Rule 3: a chat in which somebody else turns up is a group from then on.
Rule 4: everybody reads the workspace; only an owner puts something there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakValueDictionary

from bot.bus import Inbound
from bot.core.clock import Clock
from bot.memory.facts.fact_fold import FactFold
from bot.memory.facts.proposals import BatchOutcome
from bot.memory.forgetting.session_locks import SessionLocks
from bot.memory.gate.policy import WriteGate
from bot.memory.identities import IDENTITIES_TAPE, LOGINS_TAPE, ScopeMove
from bot.memory.identity_linker import IdentityLinker
from bot.memory.scope_memory import ScopeKind, ScopeMemory
from bot.memory.session_fold import SCOPE_EVENT
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

WORKSPACE_SCOPE = "workspace:shared"
PERSON_SCOPE_PREFIX = "person:"


def person_scope(channel: str, sender: str) -> str:
    """Return the tape of a person: one identity on one channel."""
    return f"{PERSON_SCOPE_PREFIX}{channel}:{sender}"


def is_shared_scope(tape: str) -> bool:
    """Say whether a tape holds what is known of a person or in the workspace, and no conversation."""
    return tape in (WORKSPACE_SCOPE, IDENTITIES_TAPE, LOGINS_TAPE) or tape.startswith(
        PERSON_SCOPE_PREFIX
    )


def scope_entry(home: str) -> TapeEntry:
    """Return the event that says where a session's facts belong."""
    return event(SCOPE_EVENT, {"home": home})


def changed_home(inbound: Inbound, home: str, person: str) -> str | None:
    """Return the scope that a session belongs to from a message on; None where it stays.

    Args:
        inbound: The message.
        home: The scope that it belongs to; empty where that is not settled.
        person: The scope of who wrote it.
    """
    wanted = person if inbound.private else inbound.session
    if not home:
        return wanted
    return inbound.session if home not in (wanted, inbound.session) else None


class ActiveSession(Protocol):
    """A session with a worker: its state is in memory, and must follow an erasure on its tape."""

    @property
    def tape(self) -> str:
        """Its tape."""
        ...

    @property
    def is_busy(self) -> bool:
        """Something runs that knows what is on the tape."""
        ...

    def cancel_background_work(self) -> None:
        """Give up what runs in the background on words that are about to be erased."""
        ...

    async def reload(self) -> None:
        """Read the tape anew."""
        ...

    async def update_home(self) -> None:
        """Go to where the person's memory is by now: they joined another identity, or left."""
        ...


class ScopeRegistry:
    """The scopes of a program; each is open once.

    Args:
        store: Where tapes live.
        clock: Dates decisions.
        gate: Decides what is believed, in every scope.

    Attributes:
        clock: Dates decisions.
        identity_linker: Who is who.
        active_sessions: Sessions that have a worker, by tape.
        session_locks: Through which sessions are opened, and closed while their tapes are erased.
        observer: Shown each entry that this process appends to a scope's own tape, with the tape's name.
    """

    def __init__(self, store: TapeStore, clock: Clock, *, gate: WriteGate | None = None) -> None:
        self._store = store
        self.clock = clock
        self._gate = gate or WriteGate()
        self.active_sessions: dict[str, ActiveSession] = {}
        self.session_locks = SessionLocks()
        self.observer: Callable[[str, TapeEntry], object] | None = None
        # Sessions hold what they use; what nobody holds is read anew when it is asked for.
        self._people: WeakValueDictionary[str, ScopeMemory] = WeakValueDictionary()
        self.identity_linker = IdentityLinker(store, clock, self.identity_scope)
        self._workspace = self._scope(WORKSPACE_SCOPE, "workspace")

    def workspace(self) -> ScopeMemory:
        """Return what everybody reads."""
        return self._workspace

    def home(self, session: TapeService, facts: FactFold, home: str) -> ScopeMemory:
        """Return the scope that a session's facts belong to.

        Args:
            session: Its tape.
            facts: The facts on that tape.
            home: The scope's tape; empty for the session's own.
        """
        if not home or home == session.name:
            return ScopeMemory(session, "session", self.clock, facts, gate=self._gate)
        return self.person(home)

    def identity_scope(self, identity: str) -> ScopeMemory:
        """Return an identity's own scope, whether or not it is joined to others."""
        return self.person(f"{PERSON_SCOPE_PREFIX}{identity}")

    def person_tape(self, channel: str, sender: str) -> str:
        """Return the tape of the person that an identity is of: one for all that were joined."""
        return f"{PERSON_SCOPE_PREFIX}{self.identity_linker.people.primary_identity(f'{channel}:{sender}')}"

    def identities(self, home: str) -> tuple[str, ...]:
        """Return the identities whose scope a tape is now; none where it is no person's, or was left."""
        identity = home.removeprefix(PERSON_SCOPE_PREFIX)
        members = self.identity_linker.people.members(identity)
        return members if home.startswith(PERSON_SCOPE_PREFIX) and members[0] == identity else ()

    def open_scopes(self) -> list[ScopeMemory]:
        """Return the scopes that have a tape of their own, as far as somebody uses them."""
        return [self._workspace, *self._people.values()]

    async def apply_move(self, move: ScopeMove) -> BatchOutcome:
        """Let live sessions and facts follow when identities were joined, or parted.

        Returns:
            What became of the facts in the scope that they came to.

        Raises:
            TapeWriteError: The storage refused; doing it again goes on from there.
        """
        # First those that may still learn something: it must not reach the scope that they left.
        await self._follow()
        outcome = await self.identity_linker.apply_move(move)
        await self._follow()
        return outcome

    async def _follow(self) -> None:
        for one in list(self.active_sessions.values()):
            await one.update_home()

    def person(self, name: str) -> ScopeMemory:
        """Return a person's scope by the name of its tape."""
        found = self._people.get(name)
        if found is None:
            found = self._scope(name, "person")
            self._people[name] = found
        return found

    def _scope(self, name: str, kind: ScopeKind) -> ScopeMemory:
        tape = TapeService(self._store, name)
        tape.observe(lambda entry: self.observer and self.observer(name, entry))
        return ScopeMemory(tape, kind, self.clock, gate=self._gate)

    def statistics(self) -> dict[str, Any]:
        """Return a snapshot."""
        return {"people": len(self._people), "shared_facts": len(self._workspace.active())}
