"""Semantic synthesis: add, strengthen, weaken and validate the beliefs of a scope.

Rule 1: a belief rests on existing evidence; without any it is refused.
Rule 2: an existing belief becomes more certain only by new evidence.
Rule 3: time and lost evidence lower a rank; only a person ends a belief.
Rule 4: facts change only through the gate; here they appear as beliefs of the type ``fact``.
Rule 5: what a model concludes is in no prompt until a judge or a person says yes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.memory.gate.belief_updates import (
    UNJUDGED_REASON,
    apply_evidence_faults,
    belief_faults,
    belief_number,
    count_decayed,
    find_same_belief,
    is_current,
    judge_belief,
    mark_stale,
    revalidate_belief,
    sort_by_confidence,
    strengthen_belief,
    weaken_belief,
)
from bot.memory.gate.evidence_status import find_evidence_faults, ineligibility_reason
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import entry_of
from bot.memory.records.evidence import cite
from bot.memory.records.fact_fold import bus_entry
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.records.transcript import recorded_at
from bot.memory.session.bus.belief_reader import BeliefReader
from bot.memory.session.bus.belief_validation import validate_belief
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.entries import TapeEntry

MAX_BELIEFS = 500
"""Limit on the beliefs of one scope, not counting retired ones."""

MAX_PROMPT_BELIEF_BYTES = 800
T = TypeVar("T")
_SHOWN_FROM = 0.5
_UNKNOWN = datetime.fromtimestamp(0, UTC)


class SemanticSynthesisStore(BeliefReader):
    """Read and change the beliefs of one scope."""

    # Changes.

    async def add_pattern(
        self,
        pattern: SynthesizedPattern,
        *,
        cause: str = "",
        record: Mapping[str, Any] | None = None,
        unjudged: bool = False,
    ) -> str:
        """Add a belief and return its id.

        If a belief of the same type has the same text, it is strengthened by the new evidence instead.

        Args:
            pattern: A belief without id; its evidence is episodes, or beliefs of the same scope.
            cause: Key of the cause: a repetition changes nothing. Empty for none.
            record: Further data for the event, such as the gate's decision.
            unjudged: Whether a judge or a person is still to say that its evidence says it.

        Raises:
            MemoryRefused: It has no valid evidence or content, or exceeds a limit.
            TapeWriteError: The storage failed; nothing was changed.
        """
        await self._home.open()
        if cause and cause in self._home.fold.decided_keys:
            return await self._added_by(cause)
        made = await validate_belief(pattern, self._home, self._store, self._session.name)
        made = mark_stale(made, UNJUDGED_REASON) if unjudged else made
        known = find_same_belief(made, self._home.compartments.patterns.values())
        of_own = known.evidence_ids if known is not None else []
        fresh = [
            evidence_id
            for evidence_id in made.evidence_ids
            if not await self._unfit(evidence_id, of_own)
        ]
        newest = await self._newest(made.evidence_ids)

        def compose(_version: int) -> tuple[dict[str, Any] | None, str]:
            compartments = self._home.compartments
            now = self._clock.now()
            twin = find_same_belief(made, compartments.patterns.values())
            if twin is not None and twin.status != "retired":
                more = [one for one in fresh if one not in twin.evidence_ids]
                changed = [strengthen_belief(twin, more, now).as_json()] if more else []
                return ({"patterns": changed} if more else None), twin.id
            if twin is not None and newest <= twin.last_validated:
                raise MemoryRefused(
                    _("{id} said so and was ended since: nothing newer says it", id=twin.id)
                )
            if (
                sum(belief.status != "retired" for belief in compartments.patterns.values())
                >= MAX_BELIEFS
            ):
                raise MemoryRefused(
                    _(
                        "there are {limit} beliefs already: end some first (`/memory beliefs`)",
                        limit=MAX_BELIEFS,
                    )
                )
            added = replace(
                made, id=f"p{compartments.next_pattern}", created_at=now, last_validated=now
            )
            return {"patterns": [added.as_json()]}, added.id

        done = await self._change(compose, cause, record)
        return done if done is not None else await self._added_by(cause)

    async def strengthen(self, pattern_id: str, new_evidence_id: str) -> bool:
        """Strengthen a belief by new evidence; return False if it is not new, and nothing changed.

        Evidence is new if a person said it in their own words, in an entry that the belief does not
        rest on yet; see ``ineligibility_reason``. Recall strengthens nothing.

        Raises:
            MemoryRefused: There is no such belief.
            TapeWriteError: The storage failed; nothing was changed.
        """
        pattern = await self._known(pattern_id)
        if self._home.fold.paused or await self._unfit(new_evidence_id, pattern.evidence_ids):
            return False
        if pattern.pattern_type == "fact":
            return await self._said_again(pattern_id, new_evidence_id)

        def compose(_version: int) -> tuple[dict[str, Any] | None, bool]:
            now = self._home.compartments.patterns[pattern_id]
            if now.status == "retired" or new_evidence_id in now.evidence_ids:
                return None, False
            surer = strengthen_belief(now, [new_evidence_id], self._clock.now())
            return {"patterns": [surer.as_json()]}, True

        return bool(await self._change(compose))

    async def weaken(self, pattern_id: str, reason: str, *, cause: str = "") -> None:
        """Lower a belief's confidence by 0.2, to no less than 0.05, and record the reason.

        Raises:
            MemoryRefused: There is no such belief, or it is a fact, which a person corrects or
                ends.
        """
        self._own(await self._known(pattern_id))

        def compose(_version: int) -> tuple[dict[str, Any] | None, None]:
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
        """Record a person's judgement that a belief still holds, or does not.

        For a fact, the caller must update the session's zone.

        Args:
            pattern_id: Id of the belief.
            still_valid: True validates it now; False retires it.
            cause: Key of the cause: a repetition changes nothing. Empty for none.
            evidence_id: Id of the entry in which the person says so; required to confirm a fact.
            asker: User id of the person on the platform.

        Raises:
            MemoryRefused: There is no such belief, or a fact is confirmed without evidence.
            TapeWriteError: The storage failed; nothing was changed.
        """
        pattern = await self._known(pattern_id)
        if pattern.pattern_type == "fact":
            await self._fact_revalidated(pattern_id, still_valid, cause, evidence_id, asker)
            return
        self._own(pattern)

        def compose(_version: int) -> tuple[dict[str, Any] | None, None]:
            now = self._home.compartments.patterns[pattern_id]
            judged_now = revalidate_belief(now, self._clock.now(), still_valid=still_valid)
            return {"patterns": [judged_now.as_json()], "by": "person", "asker": asker}, None

        await self._change(compose, cause)

    async def judge(
        self, judgements: Sequence[tuple[SynthesizedPattern, Judgement]], cause: str
    ) -> None:
        """Record a judge's rulings on beliefs; one that changed since it was asked about stays as it is.

        Raises:
            TapeWriteError: The storage failed; nothing was changed.
        """

        def compose(_version: int) -> tuple[dict[str, Any] | None, None]:
            believed, now = self._home.compartments.patterns, self._clock.now()
            ruled = [
                judge_belief(pattern, judgement, now).as_json()
                for pattern, judgement in judgements
                if believed.get(pattern.id) == pattern
            ]
            return ({"patterns": ruled, "by": "judge"} if ruled else None), None

        await self._change(compose, cause)

    # Upkeep.

    async def decay_all(self, *, asked: bool = False) -> int:
        """Record that time lowers confidence; return how many beliefs lost some since the last record.

        It is a function of time and not stored; the prompt shows it as of the last record. Nothing is removed.

        Args:
            asked: Also run if the last decay was less than a day ago.
        """
        await self._home.open()
        if not count_decayed(self._home.fold, self._clock.now(), asked=asked):
            return 0

        def compose(_version: int) -> tuple[dict[str, Any] | None, int]:
            moved = count_decayed(self._home.fold, self._clock.now(), asked=asked)
            return ({"decayed": True} if moved else None), moved

        return await self._change(compose) or 0

    async def check_evidence(self) -> list[str]:
        """Check the evidence of beliefs and shared values; return the ids of those that changed.

        Evidence is invalid if it was superseded or erased, is missing, or is a belief that ended.
        If at least two pieces and half of all are valid, the belief loses 0.2 of its confidence;
        else it becomes stale. A shared value (``shared:KEY``) with an invalid source becomes stale.
        Each piece counts once.
        """
        await self._home.open()
        compartments = self._home.compartments
        cited = {
            ev
            for belief in compartments.patterns.values()
            if is_current(belief)
            for ev in belief.evidence_ids
        }
        cited |= {reference.source for reference in compartments.references.values()}
        found = await find_evidence_faults(self._store, cited, self._session.name) if cited else {}

        def compose(_version: int) -> tuple[dict[str, Any] | None, list[str]]:
            now = self._home.compartments
            believed = dict(now.patterns)
            changed: list[SynthesizedPattern] = []
            for other in sorted(believed.values(), key=belief_number):
                faults = belief_faults(other, believed, self._home.fold, found)
                if (
                    is_current(other)
                    and (fresh := apply_evidence_faults(other, faults)) is not None
                ):
                    believed[other.id] = fresh
                    changed.append(fresh)
            stale = [
                replace(reference, stale=True)
                for reference in now.references.values()
                if reference.source in found and not reference.stale and reference.value is not None
            ]
            data = {"patterns": [belief.as_json() for belief in changed]} if changed else {}
            data |= {"references": [reference.as_json() for reference in stale]} if stale else {}
            told = [
                *(belief.id for belief in changed),
                *(f"shared:{reference.key}" for reference in stale),
            ]
            return data or None, told

        return await self._change(compose) or []

    # Details.

    async def _change(
        self,
        compose: Callable[[int], tuple[dict[str, Any] | None, T]],
        cause: str = "",
        record: Mapping[str, Any] | None = None,
    ) -> T | None:
        """Write a composed change as one event; return None if the cause was handled before."""

        def entries(version: int) -> tuple[list[TapeEntry], T | None]:
            fold = self._home.fold
            if cause and cause in fold.decided_keys:
                return [], None
            data, result = compose(version)
            if data is None:
                return [], result
            data |= {**(record or {}), **({"key": cause} if cause else {})}
            # Uses the store's clock, by which beliefs decay.
            return [bus_entry(fold, data, ts=format_time(self._clock.now()))], result

        return await self._home.append_change(entries)

    async def _added_by(self, cause: str) -> str:
        """Return the id of the belief that a cause added or strengthened."""
        at = self._home.fold.decided_keys[cause]
        entry = next(iter(await self._home.tape.read_entries(at, at)), None)
        records = entry.data.get("patterns") if entry is not None else None
        return str(records[0].get("id")) if isinstance(records, list) and records else ""

    async def _newest(self, evidence: list[str]) -> datetime:
        """Return the time of the newest of some evidence."""
        newest = _UNKNOWN
        for one in evidence:
            read = await entry_of(self._store, one)
            belief = await self.get_pattern(one) if read is None else None
            when = recorded_at(read[1]) if read else belief.last_validated if belief else None
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
            raise MemoryRefused(_("that a fact still holds is for a person to say"))
        evidence = (cite(*said),) if said is not None else ()
        change = Proposal(
            "strengthen" if still_valid else "retire", fact=int(number), evidence=evidence
        )
        key = cause or f"revalidated:{number}:{self._home.fold.version}"
        await self._home.apply(ProposalBatch(key, "person", (change,), asker))

    def _own(self, pattern: SynthesizedPattern) -> None:
        """Check that this store may change a belief.

        Raises:
            MemoryRefused: It is a fact or a summary.
        """
        if pattern.id not in self._home.compartments.patterns:
            raise MemoryRefused(
                _(
                    "{id} is a {pattern_type}: a person corrects it (`/memory edit`) or ends it "
                    "(`/memory forget`)",
                    id=pattern.id,
                    pattern_type=pattern.pattern_type,
                )
            )


def render_prompt_beliefs(
    home: ScopeMemory, now: datetime, most_bytes: int = MAX_PROMPT_BELIEF_BYTES
) -> str:
    """Render beliefs for the prompt, a line each, most confident first.

    Includes active beliefs other than facts with at least 0.5 confidence left, as many as fit.

    Args:
        home: The scope; it must be open.
        now: The current time.
        most_bytes: Size limit in UTF-8 bytes.
    """
    lines: list[str] = []
    for belief in sort_by_confidence(home.compartments.patterns.values(), now):
        if (
            not is_current(belief)
            or belief.status != "active"
            or belief.confidence_at(now) < _SHOWN_FROM
        ):
            continue
        line = f"- {' '.join(belief.text.split())} ({belief.pattern_type} {belief.id})"
        size = len(line.encode("utf-8", "replace")) + 1
        if size <= most_bytes:
            most_bytes -= size
            lines.append(line)
    return "\n".join(lines)
