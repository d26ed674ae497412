"""What programs propose: nobody's word, on a tape of the program, waiting for the person.

Rule 1: a proposal is written to the program's tape first; the entry is its evidence and names its
    batch, so what a kill interrupted is proposed once.
Rule 2: whatever a proposal says, a person decides about it.
"""

from __future__ import annotations

from datetime import timedelta
from weakref import WeakValueDictionary

import anyio

from bot.core.clock import Clock, format_time, parse_time
from bot.core.errors import MemoryRefused, VersionConflict
from bot.mcp_server.arguments import ProposeArguments
from bot.mcp_server.client import MemoryClient
from bot.mcp_server.results import ProposeResult
from bot.mcp_server.sessions import ReadableSessions
from bot.memory.gate.memory_validation import memory_line
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.attachments import one_line
from bot.memory.records.evidence import FROM_OUTSIDE
from bot.memory.records.fact import LONGEST_QUOTE, Evidence, Fact
from bot.memory.records.proposals import Proposal, ProposalBatch
from bot.memory.records.tombstones import is_erased
from bot.memory.session.linking.scope_registry import scope_entry
from bot.memory.session.scope.identities import PERSON_SCOPE_PREFIX
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry, tool_result
from bot.tape.store import TapeStore

PROPOSED = "memory.propose"
"""Name of the entries with proposals: results of a tool, which are nobody's words."""

MOST_PENDING = 100
"""Facts that wait for the person, above which nothing more can be proposed."""

MOST_A_DAY = 100
"""Proposals of one program in 24 hours."""

_ATTEMPTS = 5
_DAY = timedelta(days=1)
_TEXTS = {
    "pending": "It waits for the user, who accepts or drops it in a chat with /memory pending.",
    "active": "It is in memory already.",
    "dropped": "The user dropped it. Do not propose it again.",
    "retired": "It was in memory once, and has ended since.",
    "superseded": "It was in memory once; a newer fact is in its place.",
}


class Proposals:
    """Writes down what programs propose."""

    def __init__(self, store: TapeStore, sessions: ReadableSessions, clock: Clock) -> None:
        self._store = store
        self._sessions = sessions
        self._clock = clock
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def propose(self, client: MemoryClient, asked: ProposeArguments) -> ProposeResult:
        """Propose a fact; return what became of it.

        Raises:
            MemoryRefused: It cannot be proposed; nothing was written.
            TapeWriteError: The storage failed; the same call completes it.
        """
        text = memory_line(asked.text)
        if not text:
            raise MemoryRefused("the text says nothing")
        if (secret := detect_secret(text)) is not None:
            raise MemoryRefused(f"it looks like {secret!s}, which no program puts into memory")
        lock = self._locks.setdefault(client.tape, anyio.Lock())
        async with lock:
            home = await self._sessions.home(client)
            if home.fold.paused:
                raise MemoryRefused("the user has paused memory; try again another day")
            entry = await self._written(client, text, home)
            return await self._decided(client, entry, home)

    async def _written(self, client: MemoryClient, text: str, home: ScopeMemory) -> TapeEntry:
        """Return the entry of a proposal, which is written unless the tape has it."""
        for _ in range(_ATTEMPTS):
            await self._store.create_tape(client.tape, f"Proposals of {client.name}")
            entries = await self._store.read(client.tape)
            held = [one for one in entries if _is_proposal(one) and not is_erased(one)]
            known = next((one for one in held if one.payload["content"] == text), None)
            if known is not None:
                return known
            self._check_room(held, home)
            first = [] if held else [scope_entry(f"{PERSON_SCOPE_PREFIX}{client.person}")]
            new = tool_result(f"proposal-{entries[-1].id + 1}", PROPOSED, text).with_meta(
                **{FROM_OUTSIDE: True}, client=client.label, origin=f"mcp:{client.name}"
            )
            try:
                written = await self._store.append_many(
                    client.tape, [*first, new], expect=entries[-1].id
                )
            except VersionConflict:
                continue
            return written[-1]
        raise MemoryRefused("other proposals of this program are being written; try again")

    def _check_room(self, held: list[TapeEntry], home: ScopeMemory) -> None:
        if len(home.fold.pending()) >= MOST_PENDING:
            raise MemoryRefused(
                f"{MOST_PENDING} facts wait for the user already, who decides about them first"
            )
        now = self._clock.now()
        times = (parse_time(one.meta.get("ts")) for one in held[-MOST_A_DAY:])
        if sum(at is not None and now - at < _DAY for at in times) >= MOST_A_DAY:
            raise MemoryRefused(f"{MOST_A_DAY} proposals in a day are enough; try again tomorrow")

    async def _decided(
        self, client: MemoryClient, entry: TapeEntry, home: ScopeMemory
    ) -> ProposeResult:
        label = str(entry.meta.get("client") or client.name)
        text = str(entry.payload["content"])
        evidence = Evidence(
            tape=client.tape,
            entry=entry.id,
            quote=one_line(text, LONGEST_QUOTE),
            who=label,
            when=str(entry.meta.get("ts") or format_time(self._clock.now())),
            origin="client",
        )
        proposal = Proposal("add", text, evidence=(evidence,))
        key = f"client:{client.tape}#{entry.id}"
        outcome = await home.apply(ProposalBatch(key, "client", (proposal,)))
        fact = _fact_of(home, client.tape, entry.id)
        for decision in outcome.decisions:
            if fact is None and decision.verdict in ("refused", "logged"):
                return ProposeResult(status="refused", text=f"Not proposed: {decision.reason!s}.")
            fact = fact or decision.fact
        if fact is None:
            return ProposeResult(status="refused", text="Not proposed: it was proposed before.")
        told = _TEXTS[fact.status]
        return ProposeResult(
            status=fact.status, number=str(fact.id), text=f"Fact {fact.id}. {told}"
        )


def _is_proposal(entry: TapeEntry) -> bool:
    return entry.kind == "tool_result" and entry.payload.get("name") == PROPOSED


def _fact_of(home: ScopeMemory, tape: str, entry: int) -> Fact | None:
    """Return the newest fact that rests on a proposal."""
    facts = (
        fact
        for fact in home.fold.facts.values()
        if fact.text and any((one.tape, one.entry) == (tape, entry) for one in fact.evidence)
    )
    return max(facts, key=lambda fact: fact.id, default=None)
