"""Semantic synthesis: add, strengthen, weaken and validate the beliefs of a scope.

Rule 1: a belief rests on existing evidence; without any it is refused.
Rule 2: an existing belief becomes more certain only by new evidence.
Rule 3: time and lost evidence lower a rank; only a person ends a belief.
Rule 4: facts change only through the gate; here they appear as beliefs of the type ``fact``.
Rule 5: what a model concludes is in no prompt until a judge or a person says yes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.memory.gate.belief_updates import (
    MOST_EVIDENCE,
    UNJUDGED_REASON,
    apply_evidence_faults,
    belief_faults,
    belief_number,
    count_decayed,
    find_same_belief,
    is_current,
    is_summary,
    judge_belief,
    mark_stale,
    revalidate_belief,
    sort_by_confidence,
    strengthen_belief,
    weaken_belief,
)
from bot.memory.gate.evidence_status import find_evidence_faults, ineligibility_reason
from bot.memory.gate.memory_validation import is_placeholder
from bot.memory.gate.secret_detection import check_no_secret
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import entry_of, episode_id, parse_episode_id
from bot.memory.records.evidence import cite
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.records.transcript import recorded_at
from bot.memory.session.bus.belief_reader import BeliefReader
from bot.memory.session.scope.scope_memory import Change, ScopeMemory

MAX_BELIEFS = 500
"""Limit on the beliefs of one scope, not counting retired ones."""

MAX_PROMPT_BELIEF_BYTES = 800
MAX_BELIEF_TEXT = 1_000
MAX_BELIEF_CONTENT = 4_000
"""Size limit of a belief's content, in bytes of JSON."""

_SHOWN_FROM = 0.5
_UNKNOWN = datetime.fromtimestamp(0, UTC)
T = TypeVar("T")


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
        """Add a belief and return its id; one with the same text is strengthened instead.

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
        made = await self._valid(pattern)
        made = mark_stale(made, UNJUDGED_REASON) if unjudged else made
        known = find_same_belief(made, self._home.compartments.patterns.values())
        of_own = known.evidence_ids if known is not None else []
        fresh = [one for one in made.evidence_ids if not await self._unfit(one, of_own)]
        newest = await self._newest(made.evidence_ids)

        def make(_version: int) -> Change[str]:
            patterns, now = self._home.compartments.patterns, self._clock.now()
            twin = find_same_belief(made, patterns.values())
            if twin is not None and twin.status != "retired":
                more = [one for one in fresh if one not in twin.evidence_ids]
                changed = [strengthen_belief(twin, more, now)] if more else []
                return Change(twin.id, _data(changed, **(record or {})) if more else None)
            if twin is not None and newest <= twin.last_validated:
                raise MemoryRefused(
                    _("{id} said so and was ended since: nothing newer says it", id=twin.id)
                )
            if sum(belief.status != "retired" for belief in patterns.values()) >= MAX_BELIEFS:
                raise MemoryRefused(
                    _(
                        "there are {limit} beliefs already: end some first (`/memory beliefs`)",
                        limit=MAX_BELIEFS,
                    )
                )
            number = f"p{self._home.compartments.next_pattern}"
            added = replace(made, id=number, created_at=now, last_validated=now)
            return Change(number, _data([added], **(record or {})))

        return await self._change(make, cause) or await self._added_by(cause)

    async def strengthen(self, pattern_id: str, new_evidence_id: str) -> bool:
        """Strengthen a belief by new evidence; return False if it is not new, and nothing changed.

        Evidence is new if a person said it in their own words, in an entry that the belief does not
        rest on yet; see ``ineligibility_reason``. Recall strengthens nothing.

        Raises:
            MemoryRefused: There is no such belief.
        """
        pattern = await self._known(pattern_id)
        if self._home.fold.paused or await self._unfit(new_evidence_id, pattern.evidence_ids):
            return False
        if pattern.pattern_type == "fact":
            return await self._said_again(pattern_id, new_evidence_id)

        def make(_version: int) -> Change[bool]:
            now = self._home.compartments.patterns[pattern_id]
            if now.status == "retired" or new_evidence_id in now.evidence_ids:
                return Change(False)
            return Change(
                True, _data([strengthen_belief(now, [new_evidence_id], self._clock.now())])
            )

        return await self._change(make) is True

    async def weaken(self, pattern_id: str, reason: str, *, cause: str = "") -> None:
        """Lower a belief's confidence by 0.2, to no less than 0.05, and record the reason.

        Raises:
            MemoryRefused: There is no such belief, or it is a fact, which a person corrects or
                ends.
        """
        self._own(await self._known(pattern_id))

        def make(_version: int) -> Change[None]:
            doubted = weaken_belief(self._home.compartments.patterns[pattern_id], reason)
            return Change(None, _data([doubted]))

        await self._change(make, cause)

    async def revalidate(
        self,
        pattern_id: str,
        still_valid: bool,
        *,
        cause: str = "",
        evidence_id: str = "",
        asker: str = "",
    ) -> None:
        """Record a person's judgement that a belief still holds, or ends.

        To confirm a fact, ``evidence_id`` names the entry in which the person says so; the caller then
        updates the session's zone.

        Raises:
            MemoryRefused: There is no such belief, or a fact is confirmed without evidence.
        """
        pattern = await self._known(pattern_id)
        if pattern.pattern_type == "fact":
            await self._fact_revalidated(pattern_id, still_valid, cause, evidence_id, asker)
            return
        self._own(pattern)

        def make(_version: int) -> Change[None]:
            now = self._home.compartments.patterns[pattern_id]
            judged = revalidate_belief(now, self._clock.now(), still_valid=still_valid)
            return Change(None, _data([judged], by="person", asker=asker))

        await self._change(make, cause)

    async def judge(
        self, judgements: Sequence[tuple[SynthesizedPattern, Judgement]], cause: str
    ) -> None:
        """Record a judge's rulings on beliefs; one that changed since it was asked about stays as it is."""

        def make(_version: int) -> Change[None]:
            believed, now = self._home.compartments.patterns, self._clock.now()
            ruled = [
                judge_belief(pattern, judgement, now)
                for pattern, judgement in judgements
                if believed.get(pattern.id) == pattern
            ]
            return Change(None, _data(ruled, by="judge") if ruled else None)

        await self._change(make, cause)

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

        def make(_version: int) -> Change[int]:
            moved = count_decayed(self._home.fold, self._clock.now(), asked=asked)
            return Change(moved, {"decayed": True} if moved else None)

        return await self._change(make) or 0

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

        def make(_version: int) -> Change[list[str]]:
            now = self._home.compartments
            believed = dict(now.patterns)
            changed: list[SynthesizedPattern] = []
            for other in sorted(filter(is_current, believed.values()), key=belief_number):
                faults = belief_faults(other, believed, self._home.fold, found)
                if (fresh := apply_evidence_faults(other, faults)) is not None:
                    believed[other.id] = fresh
                    changed.append(fresh)
            stale = [
                replace(reference, stale=True)
                for reference in now.references.values()
                if reference.source in found and not reference.stale and reference.value is not None
            ]
            told = [*(one.id for one in changed), *(f"shared:{one.key}" for one in stale)]
            data = _data(changed) | ({"references": [s.as_json() for s in stale]} if stale else {})
            return Change(told, data if told else None)

        return await self._change(make) or []

    # Details.

    async def _change(self, make: Callable[[int], Change[T]], cause: str = "") -> T | None:
        # Uses the store's clock, by which beliefs decay.
        return await self._home.change(make, cause, ts=format_time(self._clock.now()))

    async def _added_by(self, cause: str) -> str:
        """Return the id of the belief that a cause added or strengthened."""
        return str((await self._home.changed_by(cause, "patterns")).get("id", ""))

    async def _valid(self, pattern: SynthesizedPattern) -> SynthesizedPattern:
        """Return a new belief in the form in which it is stored.

        Raises:
            MemoryRefused: It is not valid; the message says why.
        """
        if self._home.fold.paused:
            raise MemoryRefused(_("memory is paused: nothing is learned until `/memory resume`"))
        if pattern.pattern_type == "fact":
            raise MemoryRefused(_("a fact is remembered (`memory.save`), not concluded"))
        text = " ".join(pattern.text.split())
        content = {**pattern.content, "text": text}
        _check_content(text, content)
        return replace(
            pattern,
            content=content,
            evidence_ids=await self._valid_evidence(pattern.evidence_ids),
            confidence=min(1.0, max(0.0, pattern.confidence)),
            status="active",
            reason="",
        )

    async def _valid_evidence(self, given: Sequence[str]) -> list[str]:
        """Return evidence without duplicates, with summaries as the episodes that they are.

        Raises:
            MemoryRefused: A piece is invalid, or there are none or too many.
        """
        home, session = self._home, self._session.name
        named = (episode_id(session, int(one[1:])) if is_summary(one) else one for one in given)
        ids = list(dict.fromkeys(named))
        if not ids:
            raise MemoryRefused(
                _("a belief rests on evidence: name the entries that it is drawn from")
            )
        if len(ids) > MOST_EVIDENCE:
            raise MemoryRefused(
                _("name at most {limit} entries, the most telling ones", limit=MOST_EVIDENCE)
            )
        tapes = {place[0] for one in ids if (place := parse_episode_id(one)) is not None}
        if home.kind == "session" and tapes - {home.name}:
            raise MemoryRefused(_("what was said elsewhere is no evidence in this chat"))
        found = await find_evidence_faults(self._store, ids, session)
        resting = SynthesizedPattern("", "conclusion", {}, ids, 0.0, _UNKNOWN, _UNKNOWN)
        if faults := belief_faults(resting, home.compartments.patterns, home.fold, found):
            what = ", ".join(map(str, faults.values()))
            raise MemoryRefused(_("{what}: name evidence that holds", what=what))
        return ids

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


def _data(patterns: Sequence[SynthesizedPattern], **more: Any) -> dict[str, Any]:
    changed = {"patterns": [pattern.as_json() for pattern in patterns]} if patterns else {}
    return {**changed, **more}


def _check_content(text: str, content: dict[str, Any]) -> None:
    if not text or is_placeholder(text):
        raise MemoryRefused(_("it says nothing"))
    try:
        told = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MemoryRefused(_("a belief must be JSON ({error})", error=error)) from error
    size = len(told.encode("utf-8", "backslashreplace"))
    if len(text) > MAX_BELIEF_TEXT or size > MAX_BELIEF_CONTENT:
        raise MemoryRefused(
            _(
                "a belief has at most {limit} characters and {bytes} bytes in all",
                limit=MAX_BELIEF_TEXT,
                bytes=MAX_BELIEF_CONTENT,
            )
        )
    for said in map(str, content.values()):
        check_no_secret(said, "secret_unasked")


def render_prompt_beliefs(
    home: ScopeMemory, now: datetime, most_bytes: int = MAX_PROMPT_BELIEF_BYTES
) -> str:
    """Render an open scope's active beliefs with at least 0.5 confidence left, most confident first.

    Each is a line; as many are shown as fit into ``most_bytes`` of UTF-8. Facts are no part of them.
    """
    lines: list[str] = []
    for belief in sort_by_confidence(home.compartments.patterns.values(), now):
        known = is_current(belief) and belief.status == "active"
        if not known or belief.confidence_at(now) < _SHOWN_FROM:
            continue
        line = f"- {' '.join(belief.text.split())} ({belief.pattern_type} {belief.id})"
        size = len(line.encode("utf-8", "replace")) + 1
        if size <= most_bytes:
            most_bytes -= size
            lines.append(line)
    return "\n".join(lines)
