"""Collect what the model sees in a turn: people's own words, and text from outside. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bot.agent.flow.spoken import Found, SpokenWords
from bot.core.reasons import Reason
from bot.memory.records.argument_labels import Origin
from bot.memory.records.conversation_entries import is_overheard
from bot.memory.records.fact import Fact
from bot.memory.records.outside_text import (
    acting_words,
    describe_outside,
    outside_texts,
    typed_words,
)
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import is_automation, is_owner, message_author, sender_id
from bot.memory.session.scope.identities import channel_of
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry


@dataclass(frozen=True, slots=True)
class FlowView:
    """What could have shaped a call.

    Attributes:
        words: Own words of the people who are answered, and those that facts rest on.
        texts: Texts from outside, by their entries.
        sources: What is in view from outside, for people; empty if nothing is.
        described: Whether the turn is offered anything with a description by others.
    """

    words: tuple[SpokenWords, ...] = ()
    texts: tuple[SpokenWords, ...] = ()
    sources: tuple[Reason, ...] = ()
    described: bool = False

    @property
    def acting(self) -> tuple[SpokenWords, ...]:
        """The words that decide about acts: those in which nobody else can be speaking."""
        return tuple(SpokenWords(acting_words(one.text), one.found) for one in self.words)

    @property
    def ordering(self) -> tuple[SpokenWords, ...]:
        """The words that decide about what only tells their writer something: up to a quotation."""
        return tuple(SpokenWords(acting_words(one.text, ":："), one.found) for one in self.words)

    @property
    def outside(self) -> bool:
        """Whether text from outside could have shaped a call."""
        return self.described or bool(self.sources)


def flow_view(
    fold: SessionFold,
    answered: Sequence[TapeEntry],
    facts: Iterable[Fact],
    *,
    tape: str,
    described: bool = False,
    summaries: bool = False,
    beliefs: bool = False,
) -> FlowView:
    """Return what the model sees in a turn."""
    # What a turn overheard asked it nothing.
    asking = [one for one in answered if not is_automation(one) and not is_overheard(one)]
    askers = {sender_id(entry) for entry in asking}
    shown = {entry.id: entry for entry in (*fold.window.conversation(), *answered)}
    found = [_of_entry(entry, askers) for entry in shown.values() if not is_erased(entry)]
    sources = [source for one in found for source in one.sources]
    if len(askers) > 1 and any(entry.meta.get("private") is False for entry in asking):
        sources.append(Reason("source_people"))
    if beliefs:
        sources.append(Reason("source_belief"))
    facts = list(facts)
    if not all(fact.is_own_words for fact in facts):
        sources.append(Reason("source_fact"))
    if not sources and fold.outside.since:
        sources.append(Reason("source_own", entry=f"#{fold.outside.since}"))
    if not sources and summaries and fold.outside.first:
        sources.append(Reason("source_summaries", entry=f"#{fold.outside.first}"))
    texts = [text for one in found for text in one.texts]
    opened, held = fold.turns.open_turn, fold.turns.instructions
    if opened is not None and held is not None and opened.client.get("system"):
        sources.append(Reason("source_instructions", entry=f"#{held.id}"))
        texts.append(SpokenWords(str(opened.client["system"]), Found(Origin.OUTSIDE, held.id)))
    # Words that an edit took back permit nothing, though the model still sees them.
    newest = set({_place(shown[number]): number for number in sorted(shown)}.values())
    words = [word for one in found for word in one.words if word.found.entry in newest]
    words += [word for fact in facts for word in _evidence(fact, askers, tape)]
    described = described or (opened is not None and bool(opened.client.get("tools")))
    return FlowView(tuple(words), tuple(texts), tuple(sources), described)


def _place(entry: TapeEntry) -> object:
    """Return which message of the platform an entry is, or changes; its own id if it is none."""
    return entry.meta.get("edits") or entry.meta.get("inbound") or entry.id


def _of_entry(entry: TapeEntry, askers: Collection[str]) -> FlowView:
    """Return what an entry shows the model."""
    own, others = typed_words(entry), outside_texts(entry)
    sources = [describe_outside(entry)] if others else []
    words = []
    if own and _is_asker(entry, askers):
        origin = Origin.OWNER if is_owner(entry) else Origin.PERSON
        words.append(SpokenWords(own, Found(origin, entry.id)))
    elif own:
        others.append(own)
        sources.append(Reason("source_words", who=message_author(entry), entry=f"#{entry.id}"))
    texts = (SpokenWords(text, Found(Origin.OUTSIDE, entry.id)) for text in others)
    return FlowView(tuple(words), tuple(texts), tuple(sources))


def _is_asker(entry: TapeEntry, askers: Collection[str]) -> bool:
    """Return whether a message is from whom the turn answers; a private chat has one person."""
    return entry.meta.get("private", True) is True or sender_id(entry) in askers


def _evidence(fact: Fact, askers: Collection[str], tape: str) -> list[SpokenWords]:
    """Return the words that a fact rests on, if whom the turn answers said them."""
    if not fact.is_own_words:
        return []
    return [
        SpokenWords(one.quote, Found(Origin.MEMORY, one.entry if one.tape == tape else 0))
        for one in fact.evidence
        if one.origin == "person"
        # Of a group member, on the same platform: elsewhere the same id is somebody else.
        or (one.is_own_words and one.sender in askers and channel_of(one.tape) == channel_of(tape))
    ]
