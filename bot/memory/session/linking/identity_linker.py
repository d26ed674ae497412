"""Link and unlink a person's identities, and move facts between their scopes accordingly.

Each step is a compare-and-set on the tape ``workspace:people``, because several processes may
write. The move is then carried out by batches on the scopes' tapes, under keys derived from the
event, and recorded as settled. A crash therefore leaves a step undone, or done and completed by the
next reader.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any, Literal, TypeVar

import anyio

from bot.core.clock import Clock, format_time
from bot.core.errors import TapeNotFound
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import bus_entry
from bot.memory.records.fact_undo import LINKED, PARTED, TAKEN
from bot.memory.records.proposals import BatchOutcome, ProposalBatch, parse_outcome
from bot.memory.session.linking.compartment_transfer import (
    ScopeHistory,
    departure_changes,
    join_changes,
    removal_changes,
)
from bot.memory.session.linking.fact_transfer import (
    departure_proposals,
    facts_ended_elsewhere,
    join_proposals,
    removal_proposals,
)
from bot.memory.session.scope.identities import (
    IDENTITIES_TAPE,
    IdentityFold,
    LinkClaim,
    LinkOffer,
    LinkParty,
    ScopeMove,
    channel_of,
    link_entry,
)
from bot.memory.session.scope.optimistic_writes import append_with_retry, catch_up
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

LinkRefusal = Literal["self", "joined", "channel", "wrong", "often"]
"""Why a code cannot be claimed: it is one's own, the two are linked already, or both have an
identity on one channel; the code is wrong or expired; there were too many wrong codes."""

T = TypeVar("T")


class IdentityLinker:
    """Read and change the links between identities; nothing else writes them.

    Args:
        store: The store of the tape, which the first step creates.
        clock: The current time.
        scope: Returns the scope of an identity.

    Attributes:
        people: The links, as far as the tape was read.
    """

    def __init__(self, store: TapeStore, clock: Clock, scope: Callable[[str], ScopeMemory]) -> None:
        self.people = IdentityFold()
        self._tape = TapeService(store, IDENTITIES_TAPE)
        self._tape.observe(self.people.apply)
        self._clock = clock
        self._scope = scope
        self._opening = anyio.Lock(fast_acquire=True)
        self._moving = anyio.Lock(fast_acquire=True)

    async def open(self) -> None:
        """Read new entries of the tape."""
        async with self._opening:
            try:
                last = await self._tape.store.version(IDENTITIES_TAPE)
                if last != self.people.version:
                    await catch_up(self._tape, self.people, last)
            except TapeNotFound:
                return

    # Steps.

    async def offer(self, party: LinkParty, digest: str) -> LinkOffer:
        """Offer a code, which replaces an earlier one.

        Args:
            party: The side that is shown the code.
            digest: Digest of the code.
        """

        def compose() -> tuple[list[TapeEntry], None]:
            told = {"name": party.name, "chat": party.session, "code": digest}
            return [link_entry("offered", party.identity, self._clock.now(), **told)], None

        await self._write(compose)
        return self.people.offers[party.identity]

    async def claim(self, party: LinkParty, digest: str, key: str) -> LinkClaim | LinkRefusal:
        """Claim a code that was shown to another identity.

        Args:
            party: The side that enters the code.
            digest: Digest of the code as entered.
            key: Key of the command; a repetition claims once.
        """
        who, now = party.identity, self._clock.now()

        def compose() -> tuple[list[TapeEntry], LinkRefusal | None]:
            people = self.people
            if self._claimed_by(key) is not None:
                return [], None
            if people.has_failed_claim(who, key):
                return [], "wrong"
            if not people.may_claim(who, now):
                return [], "often"
            offers = people.offers.values()
            offer = next(
                (
                    link_offer
                    for link_offer in offers
                    if link_offer.digest == digest and link_offer.is_valid(now)
                ),
                None,
            )
            if offer is None:
                return [link_entry("missed", who, now, key=key)], "wrong"
            of = offer.party.identity
            if (why := people.link_refusal(of, who)) is not None:
                return [], "self" if why == "self" else "joined" if why == "joined" else "channel"
            told = {"name": party.name, "chat": party.session, "of": of, "offer": offer.entry}
            return [link_entry("claimed", who, now, key=key, **told)], None

        refusal = await self._write(compose)
        claim = self._claimed_by(key)
        return refusal or claim or "wrong"

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
            now = self._clock.now()
            waits = self.find_waiting_claim(identity, claim)
            if waits is None or self.people.move_of_command(key) is not None:
                return [], None
            if self.people.link_refusal(identity, waits.party.identity) is not None:
                return [], None
            return [link_entry("confirmed", identity, now, claim=waits.entry, key=key)], None

        await self._write(compose)
        return self.people.move_of_command(key)

    async def reject_claim(self, identity: str, claim: int | None) -> LinkClaim | None:
        """Reject a claim of one's code and return it; None if no such claim waits."""

        def compose() -> tuple[list[TapeEntry], LinkClaim | None]:
            waits = self.find_waiting_claim(identity, claim)
            if waits is None:
                return [], None
            return [link_entry("refused", identity, self._clock.now(), claim=waits.entry)], waits

        return await self._write(compose)

    async def unlink(self, identity: str, key: str) -> ScopeMove | None:
        """Unlink an identity from the person's others; return None if it was not linked."""

        def compose() -> tuple[list[TapeEntry], None]:
            alone = len(self.people.members(identity)) == 1
            if alone or self.people.move_of_command(key) is not None:
                return [], None
            return [link_entry("unlinked", identity, self._clock.now(), key=key)], None

        await self._write(compose)
        return self.people.move_of_command(key)

    def find_waiting_claim(self, identity: str, claim: int | None = None) -> LinkClaim | None:
        """Return the valid claim that an identity must answer, if its id matches; else None."""
        link_claim = self.people.claims.get(identity)
        if link_claim is None or claim not in (None, link_claim.entry):
            return None
        return link_claim if link_claim.is_valid(self._clock.now()) else None

    def _claimed_by(self, key: str) -> LinkClaim | None:
        moved = (
            scope_move.claim
            for scope_move in self.people.moves.values()
            if scope_move.claim is not None
        )
        link_claims = (*self.people.claims.values(), *moved)
        return next((link_claim for link_claim in link_claims if link_claim.key == key), None)

    # Moving facts.

    async def finish_moves(self) -> None:
        """Move the facts of moves that a crash or another process left unfinished.

        Raises:
            TapeWriteError: The storage failed; a retry continues from there.
        """
        if self.people.unfinished:
            async with self._moving:
                for entry in sorted(self.people.unfinished):
                    await self._carry_out(self.people.moves[entry])

    async def apply_move(self, move: ScopeMove) -> BatchOutcome:
        """Move the facts for a move and for unfinished ones before it; a repetition has no effect.

        Returns:
            The decisions on the facts in their new scope.

        Raises:
            TapeWriteError: The storage failed; a retry continues from there.
        """
        async with self._moving:
            for entry in sorted(self.people.unfinished):
                if entry < move.entry:
                    await self._carry_out(self.people.moves[entry])
            return await self._carry_out(move)

    async def _carry_out(self, move: ScopeMove) -> BatchOutcome:
        source, target = self._scope(move.source), self._scope(move.target)
        await source.open()
        await target.open()
        key = f"{LINKED if move.claim is not None else TAKEN}{move.entry}"
        if move.entry not in self.people.unfinished:
            # Both scopes may have changed since, or even been linked again.
            recorded = await target.find_batch(target.fold.decided_keys.get(key, 0))
            return BatchOutcome() if recorded is None else parse_outcome(recorded)
        if move.claim is not None:
            # The scope of those who join stays unchanged.
            batch = ProposalBatch(key, "import", join_proposals(source.fold, target.fold))
            outcome = await target.apply(batch)
            await self._hold(target, key, lambda: join_changes(source.fold, target.fold))
            if source.fold.paused:
                await target.pause(paused=True)
        else:
            outcome = await self._parted(move, key, source, target)
            # A pause set while linked holds on both sides.
            await target.pause(paused=source.fold.paused)

        def compose() -> tuple[list[TapeEntry], None]:
            if move.entry not in self.people.unfinished:
                return [], None
            more = {"move": move.entry}
            return [link_entry("settled", move.target, self._clock.now(), **more)], None

        await self._write(compose)
        return outcome

    async def _parted(
        self, move: ScopeMove, key: str, source: ScopeMemory, target: ScopeMemory
    ) -> BatchOutcome:
        """Give those who leave the facts that rest on their words, and end the rest of those here.

        Both batches are computed from the same state. They are imports, so that no undo returns to
        one side what belongs to the other.
        """
        leaving = removal_proposals(source.fold, move.identities)
        ended = await self._ended_by(move, source, target)
        gained = departure_proposals(source.fold, target.fold, move.identities, ended)
        outcome = await target.apply(ProposalBatch(key, "import", gained))
        channels = {channel_of(identity) for identity in move.identities}
        history = await _history(source)
        await self._hold(
            target, key, lambda: departure_changes(source.fold, target.fold, history, channels)
        )
        await self._hold(
            source, f"{PARTED}{move.entry}", lambda: removal_changes(source.fold, history, channels)
        )
        await source.apply(ProposalBatch(f"{PARTED}{move.entry}", "import", leaving))
        return outcome

    async def _hold(
        self, scope: ScopeMemory, key: str, changes: Callable[[], dict[str, Any]]
    ) -> None:
        """Change a scope's shared values and beliefs, once per key."""
        cause = f"{key}:held"

        def compose(_: int) -> tuple[list[TapeEntry], None]:
            if cause in scope.fold.decided_keys or not (data := changes()):
                return [], None
            now = format_time(self._clock.now())
            return [bus_entry(scope.fold, {**data, "key": cause, "by": "import"}, ts=now)], None

        await scope.append_change(compose)

    async def _ended_by(
        self, move: ScopeMove, source: ScopeMemory, target: ScopeMemory
    ) -> list[Fact]:
        """Return the facts that those who leave ended, and that their own scope still holds."""
        channels = {channel_of(identity) for identity in move.identities}
        facts: list[Fact] = []
        for fact in facts_ended_elsewhere(source.fold, target.fold):
            batch = await source.find_batch(fact.batch)
            # The key of a change contains the session that made it.
            parts = str(batch.data.get("key")).split(":") if batch is not None else []
            if len(parts) > 1 and parts[1] in channels:
                facts.append(fact)
        return facts

    # The tape.

    async def _write(self, compose: Callable[[], tuple[list[TapeEntry], T]]) -> T:
        await self._tape.store.create_tape(IDENTITIES_TAPE)
        await self.open()
        return await append_with_retry(self._tape, self.people, lambda _: compose(), self.open)


async def _history(scope: ScopeMemory) -> ScopeHistory:
    scope_history = ScopeHistory()
    with suppress(TapeNotFound):
        async with aclosing(read_batches(scope.tape.store, scope.name, 1)) as parts:
            async for entries in parts:
                for entry in entries:
                    scope_history.apply(entry)
    return scope_history
