"""Semantic synthesis: what is believed in a scope, the facts and what was concluded from what happened.

Rule 1: a belief rests on evidence that is there; without any it is refused.
Rule 2: what is believed already is made surer by evidence of its own, and by nothing else.
Rule 3: time, and evidence that falls away, lower a rank; only a person ends a belief.
Rule 4: facts are changed through the gate and nothing else; here they are beliefs of the type ``fact``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused
from bot.memory.bus.belief_reader import BeliefReader
from bot.memory.bus.belief_updates import (
    apply_evidence_faults,
    belief_faults,
    belief_number,
    decay_ranks,
    find_same_belief,
    is_current,
    retire_contradicted_beliefs,
    revalidate_belief,
    sort_by_confidence,
    strengthen_belief,
    weaken_belief,
)
from bot.memory.bus.belief_validation import validate_belief
from bot.memory.bus.compartment_records import SynthesizedPattern
from bot.memory.bus.evidence_status import find_evidence_faults, ineligibility_reason
from bot.memory.bus.provenance import entry_of
from bot.memory.facts.evidence import cite
from bot.memory.facts.fact_fold import bus_entry
from bot.memory.facts.proposals import Proposal, ProposalBatch
from bot.memory.scope_memory import ScopeMemory
from bot.memory.transcript import recorded_at
from bot.tape.entries import TapeEntry

MAX_BELIEFS = 500
"""Beliefs of one scope, retired ones not counted."""

MAX_PROMPT_BELIEF_BYTES = 800
T = TypeVar("T")
_SHOWN_FROM = 0.5
_UNKNOWN = datetime.fromtimestamp(0, UTC)


class SemanticSynthesisStore(BeliefReader):
    """What is believed in one scope: reads it, and changes it."""

    # Changing.

    async def add_pattern(
        self,
        pattern: SynthesizedPattern,
        *,
        cause: str = "",
        record: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a belief and return its id.

        Where one of its type says the same, that is made surer by what is new of the evidence instead.
        Beliefs that cannot hold beside the new one become stale.

        Args:
            pattern: Without id; its evidence are episodes, or beliefs of the same scope by their ids.
            cause: What makes it happen: the same cause again changes nothing. Empty for none.
            record: What else the event says, such as the gate's decision.

        Raises:
            MemoryRefused: It rests on nothing that holds, says nothing, or passes a bound.
            TapeWriteError: The storage refused; nothing was changed.
        """
        await self._home.open()
        if cause and cause in self._home.fold.decided_keys:
            return await self._added_by(cause)
        made = await validate_belief(pattern, self._home, self._store, self._session.name)
        known = find_same_belief(made, self._home.compartments.patterns.values())
        of_own = known.evidence_ids if known is not None else []
        fresh = [one for one in made.evidence_ids if not await self._unfit(one, of_own)]
        newest = await self._newest(made.evidence_ids)

        def compose(_: int) -> tuple[dict[str, Any] | None, str]:
            held = self._home.compartments
            now = self._clock.now()
            twin = find_same_belief(made, held.patterns.values())
            if twin is not None and twin.status != "retired":
                more = [one for one in fresh if one not in twin.evidence_ids]
                changed = [strengthen_belief(twin, more, now).as_json()] if more else []
                return ({"patterns": changed} if more else None), twin.id
            if twin is not None and newest <= twin.last_validated:
                raise MemoryRefused(f"{twin.id} said so and was ended since: nothing newer says it")
            if sum(one.status != "retired" for one in held.patterns.values()) >= MAX_BELIEFS:
                raise MemoryRefused(
                    f"there are {MAX_BELIEFS} beliefs already: end some first (`/memory beliefs`)"
                )
            added = replace(made, id=f"p{held.next_pattern}", created_at=now, last_validated=now)
            ended = retire_contradicted_beliefs(added, held.patterns.values())
            return {"patterns": [one.as_json() for one in (added, *ended)]}, added.id

        done = await self._change(compose, cause, record)
        return done if done is not None else await self._added_by(cause)

    async def strengthen(self, pattern_id: str, new_evidence_id: str) -> bool:
        """Make a belief surer by evidence of its own; False where it is none, and nothing changed.

        It is some where a person said it, in words of their own, in an entry that it does not rest on
        yet; see ``evidence.unfit``. Being recalled strengthens nothing.

        Raises:
            MemoryRefused: There is no such belief.
            TapeWriteError: The storage refused; nothing was changed.
        """
        pattern = await self._known(pattern_id)
        if self._home.fold.paused or await self._unfit(new_evidence_id, pattern.evidence_ids):
            return False
        if pattern.pattern_type == "fact":
            return await self._said_again(pattern_id, new_evidence_id)

        def compose(_: int) -> tuple[dict[str, Any] | None, bool]:
            now = self._home.compartments.patterns[pattern_id]
            if now.status == "retired" or new_evidence_id in now.evidence_ids:
                return None, False
            surer = strengthen_belief(now, [new_evidence_id], self._clock.now())
            return {"patterns": [surer.as_json()]}, True

        return bool(await self._change(compose))

    async def weaken(self, pattern_id: str, reason: str, *, cause: str = "") -> None:
        """Doubt a belief: it loses 0.2 of its confidence, down to 0.05, and keeps the reason.

        Raises:
            MemoryRefused: There is no such belief, or it is a fact: a person corrects or ends those.
        """
        self._own(await self._known(pattern_id))

        def compose(_: int) -> tuple[dict[str, Any] | None, None]:
            doubted = weaken_belief(self._home.compartments.patterns[pattern_id], reason)
            return {"patterns": [doubted.as_json()]}, None

        await self._change(compose, cause)

    async def revalidate(
        self,
        pattern_id: str,
        still_valid: bool,
        *,
        cause: str = "",
        evidence_id: str = "",
        asker: str = "",
    ) -> None:
        """Take down what a person says of a belief: that it still holds, or that it does not.

        Of a fact, the session's zone is for the caller to bring up to date.

        Args:
            pattern_id: Its id.
            still_valid: It holds: it counts as validated now. Else it ends, and stays on record.
            cause: What makes it happen: the same cause again changes nothing. Empty for none.
            evidence_id: The entry in which they say so; a fact is confirmed by nothing else.
            asker: The platform's id of who says so.

        Raises:
            MemoryRefused: There is no such belief, or nobody said that a fact holds.
            TapeWriteError: The storage refused; nothing was changed.
        """
        pattern = await self._known(pattern_id)
        if pattern.pattern_type == "fact":
            await self._fact_revalidated(pattern_id, still_valid, cause, evidence_id, asker)
            return
        self._own(pattern)

        def compose(_: int) -> tuple[dict[str, Any] | None, None]:
            now = self._home.compartments.patterns[pattern_id]
            judged_now = revalidate_belief(now, self._clock.now(), still_valid=still_valid)
            return {"patterns": [judged_now.as_json()], "by": "person", "asker": asker}, None

        await self._change(compose, cause)

    # Upkeep.

    async def decay_all(self, *, asked: bool = False) -> int:
        """Record how far facts have sunk in rank; return how many facts and beliefs did. Nothing is removed.

        Facts lose 0.5 % of their rank a day since they were last said, those that a person asked for
        nothing. The confidence of other beliefs is a function of time, and nothing is stored.

        Args:
            asked: Also where it was done less than a day ago.
        """
        await self._home.open()
        if not decay_ranks(self._home.fold, self._clock.now(), asked=asked)[1]:
            return 0

        def compose(_: int) -> tuple[dict[str, Any] | None, int]:
            ranks, moved = decay_ranks(self._home.fold, self._clock.now(), asked=asked)
            told = {str(number): rank for number, rank in sorted(ranks.items())}
            return ({"ranks": told} if moved else None), moved

        return await self._change(compose) or 0

    async def check_evidence(self) -> list[str]:
        """Look after what beliefs rest on; return what is doubted or stale since, by id.

        What was superseded or erased, is missing, or is a belief that ended, is evidence no more. Where
        two pieces at the least and half of all still hold, a belief loses 0.2 of its confidence; else it
        is stale, as is a shared value (``shared:KEY``) whose source does not hold. Each piece counts once.
        """
        await self._home.open()
        held = self._home.compartments
        cited = {ev for one in held.patterns.values() if is_current(one) for ev in one.evidence_ids}
        cited |= {one.source for one in held.references.values()}
        found = await find_evidence_faults(self._store, cited, self._session.name) if cited else {}

        def compose(_: int) -> tuple[dict[str, Any] | None, list[str]]:
            now = self._home.compartments
            believed = dict(now.patterns)
            changed: list[SynthesizedPattern] = []
            for one in sorted(believed.values(), key=belief_number):
                faults = belief_faults(one, believed, self._home.fold, found)
                if is_current(one) and (fresh := apply_evidence_faults(one, faults)) is not None:
                    believed[one.id] = fresh
                    changed.append(fresh)
            stale = [
                replace(one, stale=True)
                for one in now.references.values()
                if one.source in found and not one.stale and one.value is not None
            ]
            data = {"patterns": [one.as_json() for one in changed]} if changed else {}
            data |= {"references": [one.as_json() for one in stale]} if stale else {}
            told = [*(one.id for one in changed), *(f"shared:{one.key}" for one in stale)]
            return data or None, told

        return await self._change(compose) or []

    # How it is done.

    async def _change(
        self,
        compose: Callable[[int], tuple[dict[str, Any] | None, T]],
        cause: str = "",
        record: Mapping[str, Any] | None = None,
    ) -> T | None:
        """Write what a function of the present state gives as one event; None where it was done already."""

        def entries(version: int) -> tuple[list[TapeEntry], T | None]:
            fold = self._home.fold
            if cause and cause in fold.decided_keys:
                return [], None
            data, result = compose(version)
            if data is None:
                return [], result
            data |= {**(record or {}), **({"key": cause} if cause else {})}
            # Dated by the clock that decides, so that a rank is compared with times of the same.
            return [bus_entry(fold, data, ts=format_time(self._clock.now()))], result

        return await self._home.append_change(entries)

    async def _added_by(self, cause: str) -> str:
        """Return the id of the belief that a cause added, or made surer, before."""
        at = self._home.fold.decided_keys[cause]
        entry = next(iter(await self._home.tape.read_entries(at, at)), None)
        records = entry.data.get("patterns") if entry is not None else None
        return str(records[0].get("id")) if isinstance(records, list) and records else ""

    async def _newest(self, evidence: list[str]) -> datetime:
        """Return when the newest of some evidence came to be."""
        newest = _UNKNOWN
        for one in evidence:
            read = await entry_of(self._store, one)
            known = await self.get_pattern(one) if read is None else None
            when = recorded_at(read[1]) if read else known.last_validated if known else None
            newest = max(newest, when or _UNKNOWN)
        return newest

    async def _unfit(self, episode: str, known: list[str]) -> str:
        return await ineligibility_reason(self._store, episode, known, self._session.name)

    async def _said_again(self, number: str, episode: str) -> bool:
        read = await entry_of(self._store, episode)
        if read is None:
            return False
        again = Proposal("strengthen", fact=int(number), evidence=(cite(*read),))
        outcome = await self._home.apply(
            ProposalBatch(f"again:{number}:{episode}", "assistant", (again,))
        )
        return bool(outcome.with_verdict("approved")) and not outcome.repeated

    async def _fact_revalidated(
        self, number: str, still_valid: bool, cause: str, episode: str, asker: str
    ) -> None:
        said = await entry_of(self._store, episode)
        if still_valid and said is None:
            raise MemoryRefused("that a fact still holds is for a person to say")
        evidence = (cite(*said),) if said is not None else ()
        change = Proposal(
            "strengthen" if still_valid else "retire", fact=int(number), evidence=evidence
        )
        key = cause or f"revalidated:{number}:{self._home.fold.version}"
        await self._home.apply(ProposalBatch(key, "person", (change,), asker))

    def _own(self, pattern: SynthesizedPattern) -> None:
        """See that a belief is one that this store changes itself.

        Raises:
            MemoryRefused: It is a fact or a summary.
        """
        if pattern.id not in self._home.compartments.patterns:
            raise MemoryRefused(
                f"{pattern.id} is a {pattern.pattern_type}: a person corrects it (`/memory edit`) or "
                "ends it (`/memory forget`)"
            )


def render_prompt_beliefs(
    home: ScopeMemory, now: datetime, most_bytes: int = MAX_PROMPT_BELIEF_BYTES
) -> str:
    """Return the beliefs that the prompt shows, a line each, the surest first.

    Active ones with a confidence of 0.5 or more left, facts apart; as many as fit.

    Args:
        home: The scope, open.
        now: The current time.
        most_bytes: Room there is.
    """
    lines: list[str] = []
    for one in sort_by_confidence(home.compartments.patterns.values(), now):
        if not is_current(one) or one.status != "active" or one.confidence_at(now) < _SHOWN_FROM:
            continue
        line = f"- {' '.join(one.text.split())} ({one.pattern_type} {one.id})"
        size = len(line.encode("utf-8", "replace")) + 1
        if size <= most_bytes:
            most_bytes -= size
            lines.append(line)
    return "\n".join(lines)
