"""Read the beliefs of a scope, with their confidence, decay and evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlencode

from pydantic import Field

from bot.bus import WebUser
from bot.core.clock import format_time
from bot.core.errors import TapeNotFound
from bot.core.i18n import _
from bot.core.reasons import reason_text
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.decisions import Signal, signals
from bot.inspector.reading.facts import LoadedMemory, load_memory
from bot.memory.gate.belief_updates import sort_by_confidence
from bot.memory.records.compartment_records import (
    EpisodeEntry,
    PatternType,
    SynthesizedPattern,
)
from bot.memory.records.episodes import entry_of, parse_episode_id
from bot.memory.records.evidence import cite
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
from bot.memory.session.bus.belief_reader import BeliefReader
from bot.memory.session.bus.episodic_trace import EpisodicTraceStore
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

WhichBeliefs = Literal["current", "retired", "all"]


class SupportingEntry(ReadModel):
    """An entry cited as evidence."""

    id: str = Field(description="`tape#entry`; of a fact or a belief its number or name.")
    state: Literal["there", "erased", "gone"]
    who: str = Field(description="The speaker's display name; empty if unknown.")
    at: str = Field(description="Time, ISO 8601 in UTC; empty if unknown.")
    quote: str = Field(description="The text, shortened; empty if it no longer exists.")
    href: str = Field(description="The page that shows it; empty if it no longer exists.")


class EvidenceRef(ReadModel):
    """A reference from a belief to a piece of its evidence."""

    id: str = Field(description="`tape#entry`, a fact's number, another belief, or `h45`.")
    kind: Literal["entry", "fact", "belief", "history"]
    href: str = Field(description="The page that shows it.")


class Belief(ReadModel):
    """A belief, distilled from what happened."""

    name: str = Field(description="Its name in chats, such as `p3`.")
    type: PatternType
    text: str
    when: str = Field(description="The condition of a policy; otherwise empty.")
    then: str = Field(description="The action of a policy; otherwise empty.")
    status: Literal["active", "stale", "retired"] = Field(
        description="`stale`: no longer used; `retired`: ended by a person."
    )
    reason: str = Field(description="Reason for its status; may be empty.")
    confidence: float = Field(description="Current confidence, 0 to 1.")
    confirmed_confidence: float = Field(description="Confidence when it was last confirmed.")
    confirmed: str = Field(description="Time of the last confirmation, ISO 8601 in UTC.")
    in_a_month: float = Field(description="Confidence in 30 days, if nothing confirms it.")
    decay: float = Field(description="Share lost per day without confirmation.")
    protected: bool = Field(description="It does not decay.")
    created: str = Field(description="ISO 8601 in UTC.")
    evidence: list[EvidenceRef]


class BeliefList(ReadModel):
    """The beliefs of a scope, the most confident first."""

    tape: str
    scope: str = Field(description="The tape that stores them.")
    session: str = Field(
        description="The conversation in which commands change them; may be empty."
    )
    count: int
    retired: int = Field(description="Number of beliefs that a person ended.")
    beliefs: list[Belief]
    after: int | None = Field(description="Offset of the next page; null at the end.")


class BeliefWhy(ReadModel):
    """A belief with its evidence and the gate's decision."""

    belief: Belief
    chain: list[SupportingEntry] = Field(description="Its original evidence, oldest first.")
    decided: str = Field(
        description="Time of the gate's decision, ISO 8601 in UTC; empty if unknown."
    )
    by: str = Field(description="Who proposed it: `assistant`, `consolidation`, `person`.")
    reason: str = Field(description="The gate's reason.")
    signals: list[Signal] = Field(description="The gate's signals.")


async def beliefs_in(
    web: WebContext, visitor: WebUser, tape: str, *, which: WhichBeliefs, offset: int, limit: int
) -> BeliefList:
    """Return the beliefs of a conversation's scope, or of a scope.

    Raises:
        TapeNotFound: There is no such tape.
    """
    memory = await load_memory(web, visitor, tape)
    beliefs = [
        belief for belief in memory.facts.compartments.patterns.values() if _has_words(belief)
    ]
    ended = sum(belief.status == "retired" for belief in beliefs)
    found = sort_by_confidence(
        (belief for belief in beliefs if _is_of(belief, which)), web.agent.clock.now()
    )
    shown = found[offset : offset + limit]
    return BeliefList(
        tape=tape,
        scope=memory.scope_tape.name,
        session=memory.session,
        count=len(found),
        retired=ended,
        beliefs=[_view(web, memory, belief) for belief in shown],
        after=offset + limit if len(found) > offset + limit else None,
    )


async def why_believed(web: WebContext, visitor: WebUser, tape: str, name: str) -> BeliefWhy:
    """Return a belief with its whole chain of evidence and the gate's decision.

    Raises:
        TapeNotFound: There is no such tape, or no such belief.
    """
    memory = await load_memory(web, visitor, tape)
    pattern = memory.facts.compartments.patterns.get(name)
    if pattern is None or not _has_words(pattern):
        raise TapeNotFound(_("there is no belief {name} in {tape}", name=name[:20], tape=tape))
    store = _beliefs(web, memory)
    entry = await store.find_decision_entry(name)
    data = entry.data if entry is not None else {}
    decision, went_by = data.get("decision"), data.get("signals")
    return BeliefWhy(
        belief=_view(web, memory, pattern),
        chain=await _chain(web.store, await store.get_evidence_chain(name), memory.tape),
        decided=str(entry.meta.get("ts") or "") if entry is not None else "",
        by=str(data.get("by") or ""),
        reason=reason_text(decision.get("reason")) if isinstance(decision, dict) else "",
        signals=signals(went_by) if isinstance(went_by, dict) else [],
    )


async def supporting_entry(store: TapeStore, name: str, tape: str = "") -> SupportingEntry:
    """Return the entry of an id such as ``tape#12``; for a fact or belief, only its page."""
    place = parse_episode_id(name)
    if place is None:
        return SupportingEntry(
            id=name, state="there", who="", at="", quote="", href=_href(tape, name) if tape else ""
        )
    read = await entry_of(store, name)
    if read is None:
        return SupportingEntry(id=name, state="gone", who="", at="", quote="", href="")
    cited, erased = cite(*read), is_erased(read[1])
    return SupportingEntry(
        id=name,
        state="erased" if erased else "there",
        who=cited.who or cited.origin,
        at=cited.when,
        quote="" if erased else cited.quote,
        href=_href(tape, name),
    )


async def _chain(
    store: TapeStore, chain: Iterable[EpisodeEntry], tape: str
) -> list[SupportingEntry]:
    found = []
    for episode in chain:
        gone = episode.content.get("missing") is True
        rests = await supporting_entry(store, episode.id, tape)
        found.append(rests.model_copy(update={"state": "gone", "href": ""}) if gone else rests)
    return found


def _beliefs(web: WebContext, memory: LoadedMemory) -> BeliefReader:
    session = TapeService(web.store, memory.tape)
    conversation = memory.conversation
    return BeliefReader(
        memory.scope,
        EpisodicTraceStore(session, web.agent.clock),
        web.store,
        web.agent.clock,
        session,
        problem=conversation.problem if conversation is not None else None,
    )


def _has_words(belief: SynthesizedPattern) -> bool:
    """Return whether its words are still there, whatever its status."""
    return belief.text not in ("", ERASED_TEXT)


def _is_of(belief: SynthesizedPattern, which: WhichBeliefs) -> bool:
    return which == "all" or (belief.status == "retired") == (which == "retired")


def _view(web: WebContext, memory: LoadedMemory, belief: SynthesizedPattern) -> Belief:
    now = web.agent.clock.now()
    left = belief.confidence_at(now)
    return Belief(
        name=belief.id,
        type=belief.pattern_type,
        text=belief.text,
        when=str(belief.content.get("if") or ""),
        then=str(belief.content.get("then") or ""),
        status=belief.status,
        reason=reason_text(belief.reason).replace(f"{memory.tape}#", "#"),
        confidence=left,
        confirmed_confidence=belief.confidence,
        confirmed=format_time(belief.last_validated),
        in_a_month=left if belief.protected else left * (1.0 - belief.decay_rate) ** 30,
        decay=0.0 if belief.protected else belief.decay_rate,
        protected=belief.protected,
        created=format_time(belief.created_at),
        evidence=[_ground(name, memory.tape) for name in belief.evidence_ids],
    )


def _ground(name: str, tape: str) -> EvidenceRef:
    kind: Literal["entry", "fact", "belief", "history"] = "belief"
    if parse_episode_id(name) is not None:
        kind = "entry"
    elif name.isdecimal():
        kind = "fact"
    elif name.startswith("h"):
        kind = "history"
    return EvidenceRef(id=name, kind=kind, href=_href(tape, name))


def _href(tape: str, name: str) -> str:
    """Return the page that shows a piece of evidence, for links from a conversation's page."""
    if (place := parse_episode_id(name)) is not None:
        return f"/timeline?{urlencode({'tape': place[0], 'entry': place[1]})}"
    if name.isdecimal():
        return f"/fact?{urlencode({'tape': tape, 'number': name})}"
    if name.startswith("h") and name[1:].isdecimal():
        return f"/timeline?{urlencode({'tape': tape, 'entry': name[1:]})}"
    return f"/reference?{urlencode({'tape': tape, 'belief': name})}#beliefs"
