"""Link and unlink a person's identities, and move facts between their scopes accordingly.

Each step is a compare-and-set on the tape ``workspace:people``, because several processes may
write. The move is then carried out by changes of the scopes' tapes, under keys derived from the
event, and recorded as settled. A crash therefore leaves a step undone, or done and completed by the
next reader.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

import anyio

from bot.core.clock import Clock, format_time
from bot.core.errors import TapeNotFound
from bot.memory.records.fact import Fact
from bot.memory.records.fact_undo import LINK_KEY
from bot.memory.records.proposals import BatchOutcome, Proposal, ProposalBatch, parse_outcome
from bot.memory.session.linking.memory_split import (
    Side,
    ValueHistory,
    joining_facts,
    joining_records,
    leaving_facts,
    leaving_records,
    missing_facts,
    staying_facts,
    staying_records,
)
from bot.memory.session.scope.identities import (
    IDENTITIES_TAPE,
    IdentityFold,
    LinkClaim,
    LinkOffer,
    LinkParty,
    LinkRefusal,
    ScopeMove,
    channel_of,
    link_entry,
)
from bot.memory.session.scope.scope_memory import Change, ScopeMemory
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore


class IdentityLinker:
    """Read and change the links between identities; nothing else writes them.

    Args:
        store: The store of the tape, which the first step creates.
        clock: The current time.
        scope: Returns the scope of an identity.
    """

    def __init__(self, store: TapeStore, clock: Clock, scope: Callable[[str], ScopeMemory]) -> None:
        self._tape = WorkspaceTape(store, IDENTITIES_TAPE, IdentityFold())
        self._clock = clock
        self._scope = scope
        self._moving = anyio.Lock(fast_acquire=True)

    @property
    def people(self) -> IdentityFold:
        """The links, as far as the tape was read."""
        return self._tape.fold

    async def open(self) -> None:
        """Read new entries of the tape."""
        await self._tape.refresh()

    # Steps.

    async def offer(self, party: LinkParty, digest: str) -> LinkOffer:
        """Offer a code, which replaces an earlier one.

        Args:
            party: The side that is shown the code.
            digest: Digest of the code.
        """
        told = {"name": party.name, "chat": party.session, "code": digest}
        await self._tape.change(lambda: ([self._step("offered", party.identity, **told)], None))
        return self.people.offers[party.identity]

    async def claim(self, party: LinkParty, digest: str, key: str) -> LinkClaim | LinkRefusal:
        """Claim a code that was shown to another identity.

        Args:
            party: The side that enters the code.
            digest: Digest of the code as entered.
            key: Key of the command; a repetition claims once.
        """
        who, people = party.identity, self.people

        def compose() -> tuple[list[TapeEntry], LinkRefusal | None]:
            now = self._clock.now()
            if people.claim_of_command(key) is not None:
                return [], None
            if people.has_failed_claim(who, key):
                return [], "wrong"
            if not people.may_claim(who, now):
                return [], "often"
            valid = (one for one in people.offers.values() if one.is_valid(now))
            offer = next((one for one in valid if one.digest == digest), None)
            if offer is None:
                return [self._step("missed", who, key=key)], "wrong"
            of = offer.party.identity
            if (why := people.link_refusal(of, who)) is not None:
                return [], why
            told = {"name": party.name, "chat": party.session, "of": of, "offer": offer.entry}
            return [self._step("claimed", who, key=key, **told)], None

        refusal = await self._tape.change(compose)
        return refusal or people.claim_of_command(key) or "wrong"

    async def confirm(self, identity: str, claim: int | None, key: str) -> ScopeMove | None:
        """Confirm a claim of one's own code.

        Args:
            identity: The identity that was shown the code.
            claim: Id of the claim; None for the one that waits.
            key: Key of the command.

        Returns:
            The resulting move; None if no such claim waits, or it expired.
        """

        def compose() -> tuple[list[TapeEntry], None]:
            waits = self.find_waiting_claim(identity, claim)
            if waits is None or self.people.move_of_command(key) is not None:
                return [], None
            if self.people.link_refusal(identity, waits.party.identity) is not None:
                return [], None
            return [self._step("confirmed", identity, claim=waits.entry, key=key)], None

        await self._tape.change(compose)
        return self.people.move_of_command(key)

    async def reject_claim(self, identity: str, claim: int | None) -> LinkClaim | None:
        """Reject a claim of one's code and return it; None if no such claim waits."""

        def compose() -> tuple[list[TapeEntry], LinkClaim | None]:
            waits = self.find_waiting_claim(identity, claim)
            made = [self._step("refused", identity, claim=waits.entry)] if waits else []
            return made, waits

        return await self._tape.change(compose)

    async def unlink(self, identity: str, key: str) -> ScopeMove | None:
        """Unlink an identity from the person's others; return None if it was not linked."""

        def compose() -> tuple[list[TapeEntry], None]:
            alone = len(self.people.members(identity)) == 1
            done = alone or self.people.move_of_command(key) is not None
            return ([] if done else [self._step("unlinked", identity, key=key)]), None

        await self._tape.change(compose)
        return self.people.move_of_command(key)

    def find_waiting_claim(self, identity: str, claim: int | None = None) -> LinkClaim | None:
        """Return the valid claim that an identity must answer, if its id matches; else None."""
        return self.people.waiting_claim(identity, self._clock.now(), claim)

    def _step(self, op: str, who: str, **more: Any) -> TapeEntry:
        return link_entry(op, who, self._clock.now(), **more)

    # Moving facts.

    async def finish_moves(self, through: ScopeMove | None = None) -> BatchOutcome:
        """Carry out the moves that are not settled; a repetition has no effect.

        Args:
            through: The move up to which they are carried out; by default all are.

        Returns:
            The decisions on the facts that ``through`` brought to their new scope.

        Raises:
            TapeWriteError: The storage failed; a retry continues from there.
        """
        async with self._moving:
            for entry in sorted(self.people.unfinished):
                if through is None or entry <= through.entry:
                    await self._carry_out(self.people.moves[entry])
        if through is None:
            return BatchOutcome()
        target = self._scope(through.target)
        await target.open()
        decided = target.fold.decided_keys.get(f"{LINK_KEY}{through.entry}", 0)
        recorded = await target.find_batch(decided)
        return BatchOutcome() if recorded is None else parse_outcome(recorded)

    async def _carry_out(self, move: ScopeMove) -> None:
        source, target = self._scope(move.source), self._scope(move.target)
        await source.open()
        await target.open()
        key = f"{LINK_KEY}{move.entry}"
        if move.claim is not None:
            # The scope of those who join stays unchanged.
            await _take(target, key, joining_facts(source.fold, target.fold))
            await self._hold(target, key, lambda: joining_records(source.fold, target.fold))
            paused = source.fold.paused or target.fold.paused
        else:
            await self._part(move, key, source, target)
            # A pause set while linked holds on both sides.
            paused = source.fold.paused
        await target.pause(paused=paused)

        def compose() -> tuple[list[TapeEntry], None]:
            settled = move.entry not in self.people.unfinished
            return ([] if settled else [self._step("settled", move.target, move=move.entry)]), None

        await self._tape.change(compose)

    async def _part(
        self, move: ScopeMove, key: str, source: ScopeMemory, target: ScopeMemory
    ) -> None:
        """Give those who leave what rests on their words, and end the rest of it here.

        They are imports, so that no undo returns to one side what belongs to the other.
        """
        joint, own = source.fold, target.fold
        channels = {*map(channel_of, move.identities)}
        leaves, stays = (Side(joint, channels, leaves=leaving) for leaving in (True, False))
        history = ValueHistory()
        with suppress(TapeNotFound):
            async with aclosing(read_batches(source.tape.store, source.name, 1)) as parts:
                async for entries in parts:
                    for entry in entries:
                        history.apply(entry)
        remaining = staying_facts(stays, joint)
        ended = [
            fact
            for fact in missing_facts(joint, own)
            if any(map(leaves.owns, leaves.heirs(fact)))
            or channel_of(await _place_of_end(fact, leaves, source)) in channels
        ]
        await _take(target, key, leaving_facts(leaves, own, ended))
        await self._hold(target, key, lambda: leaving_records(leaves, joint, own, history))
        # Last: after a crash, the above is told from the same facts.
        await self._hold(source, key, lambda: staying_records(stays, joint, history))
        await _take(source, key, remaining)

    async def _hold(
        self, scope: ScopeMemory, key: str, changes: Callable[[], dict[str, Any]]
    ) -> None:
        """Change a scope's shared values and beliefs, once per key."""

        def make(_version: int) -> Change[None]:
            data = changes()
            return Change(None, {**data, "by": "import"} if data else None)

        await scope.change(make, f"{key}:held", ts=format_time(self._clock.now()))


async def _take(scope: ScopeMemory, key: str, proposals: list[Proposal]) -> None:
    await scope.apply(ProposalBatch(key, "import", tuple(proposals)))


async def _place_of_end(fact: Fact, side: Side, scope: ScopeMemory) -> str:
    """Return where a person ended a fact; empty if other words did."""
    batch = None if side.heirs(fact) else await scope.find_batch(fact.batch)
    # The key of a change contains the session that made it.
    return str(batch.data.get("key")).partition(":")[2] if batch is not None else ""
