"""Read the states of all tapes that a session looks at in one round trip.

Before each message a session asks of many small tapes whether others wrote to them. A store for
which each question is a round trip answers all of them with the first one.

Rule 1: inside ``shared_state_reads`` a state may be half a second old, but never older than the
    message that is handled: its block begins with ``anew``.
Rule 2: it holds for the task that opened the block, and for what that task awaits. An erasure or a
    command never runs inside one, so that it sees what is there.
Rule 3: a write by the same session, also one that is refused, makes the tape's state unknown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio

_LONGEST = 0.5
_MOST_NAMES = 32


@dataclass(frozen=True, slots=True)
class TapeState:
    """The state of a tape.

    Attributes:
        version: Id of the last entry.
        live: Id of the live part's header.
        erasures: Number of erasures.
        title: A title to display.
    """

    version: int
    live: int
    erasures: int
    title: str | None


ReadStates = Callable[[Sequence[str]], Awaitable[Mapping[str, TapeState]]]
"""Returns the states of those of some tapes that exist."""


@dataclass
class StateReads:
    """States that a session has read, and the names that it asks for.

    Attributes:
        names: Tapes asked for before, the newest last.
        states: The states read; None where there is no such tape.
        read_at: When they were read.
    """

    names: OrderedDict[str, None] = field(default_factory=OrderedDict)
    states: dict[str, TapeState | None] = field(default_factory=dict)
    read_at: float = 0.0

    async def state(self, tape: str, read: ReadStates) -> TapeState | None:
        """Return a tape's state; None if there is no such tape."""
        self.remember(tape)
        now = anyio.current_time()
        if now > self.read_at + _LONGEST:
            self.forget_all()
        states = self.states
        if tape not in states:
            if not states:
                self.read_at = now
            wanted = [name for name in self.names if name not in states]
            found = await read(wanted)
            # What was forgotten meanwhile has another dictionary: these may be older than that.
            states.update({name: found.get(name) for name in wanted})
            return found.get(tape)
        return states[tape]

    def forget(self, tape: str) -> None:
        """Forget a tape's state, also one that is being read."""
        self.states = {name: state for name, state in self.states.items() if name != tape}

    def forget_all(self) -> None:
        """Forget all states, also those that are being read."""
        self.states = {}

    def remember(self, tape: str) -> None:
        """Read a tape's state along with the next ones."""
        self.names[tape] = None
        self.names.move_to_end(tape)
        if len(self.names) > _MOST_NAMES:
            self.names.popitem(last=False)


@dataclass
class _Block:
    reads: StateReads
    is_open: bool = True


_session: ContextVar[StateReads | None] = ContextVar("state_reads", default=None)
_block: ContextVar[_Block | None] = ContextVar("state_reads_block", default=None)


def begin_session_reads() -> None:
    """Let this task, and those that it starts, share state reads inside their blocks."""
    _session.set(StateReads())


@contextmanager
def shared_state_reads(*, anew: bool = False) -> Iterator[None]:
    """Let what is awaited in the block share state reads.

    Args:
        anew: Whether nothing that was read before counts.
    """
    reads = _session.get()
    if reads is None:
        yield
        return
    if anew:
        reads.forget_all()
    block = _Block(reads)
    token = _block.set(block)
    try:
        yield
    finally:
        # A task that was started inside has the variable, too.
        block.is_open = False
        _block.reset(token)


def current_reads() -> StateReads | None:
    """Return the reads that the running block shares; None outside of one."""
    block = _block.get()
    return block.reads if block is not None and block.is_open else None


def forget_state(tape: str) -> None:
    """Make a tape's state unknown to the session: it was written to, or somebody else did."""
    reads = _session.get()
    if reads is not None:
        reads.forget(tape)
