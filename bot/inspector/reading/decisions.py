"""Read the evidence of facts, and the write gate's decisions on them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any, Literal
from urllib.parse import urlencode

from pydantic import Field

from bot.agent.commands.memory.fact_text import AUTHOR_NAMES
from bot.agent.commands.message_links import message_url
from bot.core.errors import TapeNotFound
from bot.core.i18n import N_, _
from bot.core.reasons import reason_text
from bot.inspector.reading import ReadModel
from bot.memory.records.fact import Evidence, EvidenceOrigin, Fact
from bot.memory.records.fact_fold import FACTS_EVENT, FactFold
from bot.memory.records.fact_undo import undone_batch_id
from bot.memory.records.proposals import (
    ProposalDecision,
    ProposalOperation,
    ProposalVerdict,
    parse_outcome,
)
from bot.memory.records.tombstones import is_erased
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_STEPS = 60
"""The most records that are read back for the decisions on one fact."""

_LATELY = 25
"""The most records that are read for recent rejections."""

_LABELS: Mapping[str, str] = {
    "source_quality": N_("Source quality"),
    "conflict_level": N_("Conflict"),
    "blast_radius": N_("Reach of a mistake"),
    "alignment_score": N_("Alignment with priorities"),
    "progress_delta": N_("New information"),
    "judge": N_("Judge"),
}
_SCALES: Mapping[str, str] = {
    "alignment_score": N_("how well it serves the priorities: 1 fully or none set, 0 not at all"),
    "progress_delta": N_("how much of it was not known before: 1 all, 0 nothing"),
}
"""What the numbers of a signal mean."""

_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "conflict_level": {
        "none": N_("nothing contradicts it"),
        "low": N_("a weaker source contradicts it"),
        "medium": N_("another source contradicts it"),
        "high": N_("an equally good source contradicts it"),
    },
    "blast_radius": {
        "minimal": N_("would affect only this memory"),
        "moderate": N_("would affect a person in all their chats"),
        "severe": N_("would affect everyone"),
    },
}

Destination = Literal["memory", "ended", "waiting", "record", "nowhere"]
_WENT: Mapping[ProposalVerdict, Destination] = {
    "approved": "memory",
    "known": "memory",
    "pending": "waiting",
    "logged": "record",
    "refused": "nowhere",
}


class EvidenceView(ReadModel):
    """A quotation that a fact rests on."""

    tape: str = Field(description="The tape that contains them.")
    entry: int = Field(description="Id of the entry there.")
    quote: str = Field(description="The text, shortened; empty if it no longer exists.")
    who: str = Field(description="The speaker's display name.")
    when: str = Field(description="ISO 8601 in UTC; empty if unknown.")
    origin: EvidenceOrigin
    state: Literal["there", "erased", "gone"] = Field(
        description="`erased`: the text was erased; `gone`: the tape or the entry no longer exists."
    )
    href: str = Field(description="The page that shows the entry; empty if it no longer exists.")
    message: str | None = Field(description="The platform's address of the message, if known.")


class Signal(ReadModel):
    """A signal that the gate used."""

    name: str
    label: str = Field(description="The name for people.")
    value: str | float | bool | None
    meaning: str = Field(description="The value in words; may be empty.")


class DecisionView(ReadModel):
    """A decision of the write gate on one operation."""

    tape: str = Field(description="The scope's.")
    entry: int = Field(description="Id of the entry that records it there.")
    at: str = Field(description="When, ISO 8601 in UTC.")
    author: str = Field(description="The proposer: a person, consolidation, the assistant, …")
    asker: str = Field(description="Who asked for it; empty if nobody did or it is unknown.")
    operation: ProposalOperation
    verdict: ProposalVerdict
    reason: str = Field(description="In plain words.")
    signals: list[Signal] = Field(description="Computed from the origin of the text.")
    went: Destination = Field(
        description="Result: into memory, out of memory, pending, only on record, nothing."
    )
    text: str = Field(description="The proposed text; empty if there is none, or if it was erased.")
    made: int | None = Field(
        description="Number of the fact concerned, if it is another one or none was created."
    )
    undoes: int | None = Field(description="The entry whose change it undid.")


async def evidence_of(store: TapeStore, fact: Fact) -> list[EvidenceView]:
    """Return a fact's evidence, oldest first, each with whether its entry still exists."""
    return [await _evidence(store, evidence) for evidence in fact.evidence]


async def _evidence(store: TapeStore, evidence: Evidence) -> EvidenceView:
    try:
        found = (
            await store.read(evidence.tape, evidence.entry, evidence.entry) if evidence.tape else []
        )
    except TapeNotFound:
        found = []
    erased = bool(found) and is_erased(found[0])
    state: Literal["there", "erased", "gone"] = "there"
    state = "gone" if not found else "erased" if erased else state
    query = urlencode({"tape": evidence.tape, "entry": evidence.entry})
    return EvidenceView(
        tape=evidence.tape,
        entry=evidence.entry,
        quote="" if erased else evidence.quote,
        who=evidence.who or evidence.origin,
        when=evidence.when,
        origin=evidence.origin,
        state=state,
        href=f"/timeline?{query}" if found else "",
        message=message_url(evidence.tape, evidence.inbound, private=evidence.origin != "member"),
    )


async def decisions_on(scope: TapeService, fold: FactFold, fact: Fact) -> list[DecisionView]:
    """Return the decisions on a fact, newest first.

    If very many records were written since, only some of those between the first and the last are
    found.
    """
    decision_views: list[DecisionView] = []
    reached = False
    async with aclosing(_back(scope, fold.changes_back(fact.batch), _STEPS)) as entries:
        async for entry in entries:
            for decided in reversed(list(_of(entry, fact.id))):
                decision_views.append(_view(scope.name, entry, decided, fact))
                reached = reached or _begins(entry, decided, fact.id)
            if reached:
                break
    if not reached and all(
        decision_view.entry != fact.admitted for decision_view in decision_views
    ):
        admitted = await _record(scope, fact.admitted)
        if admitted is not None:
            first = _of(admitted, fact.id)
            decision_views += [_view(scope.name, admitted, decided, fact) for decided in first]
    return decision_views


async def rejected_decisions(scope: TapeService, fold: FactFold, limit: int) -> list[DecisionView]:
    """Return what the gate recently rejected or only recorded, newest first."""
    decision_views: list[DecisionView] = []
    async with aclosing(_back(scope, fold.changes_back(), _LATELY)) as entries:
        async for entry in entries:
            kept_out = [
                decision
                for decision in parse_outcome(entry).with_verdict("logged", "refused")
                if entry.name == FACTS_EVENT and decision.proposal.text
            ]
            decision_views += [
                _view(scope.name, entry, decision, None) for decision in reversed(kept_out)
            ]
            if len(decision_views) >= limit:
                break
    return decision_views[:limit]


async def reason_of(scope: TapeService, fact: Fact) -> str:
    """Return the gate's reason when it admitted a fact; empty if the record is gone."""
    return (await reasons_of(scope, [fact])).get(fact.id, "")


async def reasons_of(scope: TapeService, facts: Sequence[Fact]) -> dict[int, str]:
    """Return the gate's reasons by fact number, without those whose record is gone."""
    told: dict[tuple[int, int], str] = {}
    # Many facts share a record, and a record may be large: each is read once.
    for at in dict.fromkeys(fact.admitted for fact in facts):
        entry = await _record(scope, at)
        for decided in parse_outcome(entry).decisions if entry is not None else ():
            concerned = (decided.fact, decided.ended)
            told |= {
                (at, fact.id): reason_text(decided.reason) for fact in concerned if fact is not None
            }
    keys = {fact.id: (fact.admitted, fact.id) for fact in facts}
    return {number: told[key] for number, key in keys.items() if key in told}


async def _record(scope: TapeService, entry: int) -> TapeEntry | None:
    entries = await scope.read_entries(entry, entry) if entry else []
    return entries[0] if entries and entries[0].name == FACTS_EVENT else None


async def _back(
    scope: TapeService, changes: Iterable[int], steps: int
) -> AsyncGenerator[TapeEntry, None]:
    """Yield up to ``steps`` records of a scope."""
    for at in islice(changes, steps):
        for entry in await scope.read_entries(at, at):
            yield entry


def _of(entry: TapeEntry, number: int) -> Iterator[ProposalDecision]:
    """Yield the decisions of a record on a fact."""
    if entry.name != FACTS_EVENT:
        return
    for decided in parse_outcome(entry).decisions:
        concerned = (decided.fact, decided.ended)
        if any(fact is not None and fact.id == number for fact in concerned):
            yield decided


def _begins(entry: TapeEntry, decided: ProposalDecision, number: int) -> bool:
    """Return whether a decision is the first on a fact: the one that made it."""
    fact = decided.fact
    made = fact is not None and fact.id == number and fact.admitted == entry.id
    return made and decided.proposal.op in ("add", "supersede")


def _view(
    scope: str, entry: TapeEntry, decided: ProposalDecision, fact: Fact | None
) -> DecisionView:
    evidence = fact.evidence if fact is not None else ()
    author, asker = str(entry.data.get("author") or ""), entry.data.get("asker")
    known = {other.sender: other.who for other in evidence if other.sender}
    who = known.get(asker, asker) if isinstance(asker, str) else ""
    if author == "person" and not who and evidence:
        who = evidence[-1].who
    made = decided.fact.id if decided.fact is not None else None
    return DecisionView(
        tape=scope,
        entry=entry.id,
        at=str(entry.meta.get("ts") or ""),
        author=_(AUTHOR_NAMES[author]) if author in AUTHOR_NAMES else _("a person"),
        asker=who,
        operation=decided.proposal.op,
        verdict=decided.verdict,
        reason=reason_text(decided.reason),
        signals=signals(decided.signals),
        went=_went(decided, fact),
        text=decided.proposal.text,
        made=made if fact is None or made != fact.id else None,
        undoes=undone_batch_id(entry),
    )


def _went(decided: ProposalDecision, fact: Fact | None) -> Destination:
    of_it = fact is not None and decided.ended is not None and decided.ended.id == fact.id
    after = decided.ended if of_it else decided.fact
    ended = after is not None and after.status not in ("active", "pending")
    if decided.verdict == "approved" and ended:
        return "ended"
    return _WENT[decided.verdict]


def signals(found: Mapping[str, Any]) -> list[Signal]:
    """Return the gate's signals, in the order in which it evaluates them."""
    names = [*(name for name in _LABELS if name in found), *(n for n in found if n not in _LABELS)]
    return [_signal(name, found[name]) for name in names]


def _signal(name: str, value: object) -> Signal:
    value = reason_text(value) if name == "judge" else value
    meaning = _MEANINGS.get(name, {}).get(value, "") if isinstance(value, str) else ""
    if name == "source_quality" and isinstance(value, int | float):
        own = N_("a person's own words support it")
        meaning = own if value >= 0.9 else N_("its source is weak")
    meaning = meaning or _SCALES.get(name, "")
    plain = value if isinstance(value, str | bool | int | float | None) else str(value)
    return Signal(
        name=name,
        label=_(_LABELS[name]) if name in _LABELS else name,
        value=plain,
        meaning=_(meaning) if meaning else "",
    )
