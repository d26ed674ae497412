"""Which scopes there are, and which of them a session reads.

Rule 1: what is learned in a private chat belongs to the person, and is read in their private chats alone.
Rule 2: what is learned in a group belongs to the group's own session.
Rule 3: a chat in which somebody else turns up is a group from then on.
Rule 4: everybody reads the workspace; only an owner puts something there.
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakValueDictionary

from bot.bus import Inbound
from bot.clock import Clock
from bot.memory.facts.fold import FactFold
from bot.memory.fold import SCOPE
from bot.memory.forgetting.doors import Doors
from bot.memory.scope import ScopeMemory
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

WORKSPACE = "workspace:shared"
PERSON = "person:"


def person_scope(channel: str, sender: str) -> str:
    """Return the tape of a person: one identity on one channel."""
    return f"{PERSON}{channel}:{sender}"


def is_scope(tape: str) -> bool:
    """Say whether a tape holds the facts of a person or of the workspace, and no conversation."""
    return tape == WORKSPACE or tape.startswith(PERSON)


def scope_entry(home: str) -> TapeEntry:
    """Return the event that says where a session's facts belong."""
    return event(SCOPE, {"home": home})


def new_home(inbound: Inbound, home: str) -> str | None:
    """Return the scope that a session belongs to from a message on; None where it stays.

    Args:
        inbound: The message.
        home: The scope that it belongs to; empty where that is not settled.
    """
    theirs = person_scope(inbound.address.channel, inbound.sender.id)
    wanted = theirs if inbound.private else inbound.session
    if not home:
        return wanted
    return inbound.session if home not in (wanted, inbound.session) else None


class Live(Protocol):
    """A session with a worker: its state is in memory, and must follow an erasure on its tape."""

    @property
    def tape(self) -> str:
        """Its tape."""
        ...

    @property
    def busy(self) -> bool:
        """Something runs that knows what is on the tape."""
        ...

    def let_go(self) -> None:
        """Give up what runs in the background on words that are about to be erased."""
        ...

    async def reload(self) -> None:
        """Read the tape anew."""
        ...


class Scopes:
    """The scopes of a program; each is open once.

    Args:
        store: Where tapes live.
        clock: Dates decisions.

    Attributes:
        live: Sessions that have a worker, by tape.
        doors: Through which sessions are opened, and closed while their tapes are erased.
    """

    def __init__(self, store: TapeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.live: dict[str, Live] = {}
        self.doors = Doors()
        # Sessions hold what they use; what nobody holds is read anew when it is asked for.
        self._people: WeakValueDictionary[str, ScopeMemory] = WeakValueDictionary()
        self._workspace = ScopeMemory(TapeService(store, WORKSPACE), "workspace", clock)

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
            return ScopeMemory(session, "session", self._clock, facts)
        return self.person(home)

    def person(self, name: str) -> ScopeMemory:
        """Return a person's scope by the name of its tape."""
        found = self._people.get(name)
        if found is None:
            found = ScopeMemory(TapeService(self._store, name), "person", self._clock)
            self._people[name] = found
        return found

    def statistics(self) -> dict[str, Any]:
        """Return a snapshot."""
        return {"people": len(self._people), "shared_facts": len(self._workspace.active())}
