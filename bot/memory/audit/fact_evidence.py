"""Check that the evidence of each fact exists on the tapes and supports it. Pure.

Rule 1: a fact needs one piece of evidence that exists, holds its quote and supports its text;
    several pieces may support it together.
Rule 2: text that the bot itself rendered from memory is no evidence.
Rule 3: each fact is reported at most once here, with its worst fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, tzinfo

from bot.core.i18n import N_, _
from bot.memory.audit.findings import AuditedScope, AuditFinding, redacted_fact_text
from bot.memory.gate.claim_support import (
    sentences_with_quote,
    unsupported_reason,
    word_overlap,
)
from bot.memory.gate.fact_similarity import fact_comparison_key
from bot.memory.gate.memory_validation import memory_lines
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.records.evidence import sender_text, third_party_texts
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import sent_date, speaker_label
from bot.memory.session.state.zone_snapshot import (
    DAILY_EVENT,
    LONG_TERM_EVENT,
    REFERENCE_EVENT,
    SHARED_EVENT,
)
from bot.tape.entries import TapeEntry

_OWN = ("person", "member", "import")
_ECHOES = {
    LONG_TERM_EVENT: N_("the memory block"),
    SHARED_EVENT: N_("the memory block"),
    REFERENCE_EVENT: N_("the memory block"),
    DAILY_EVENT: N_("the daily notes"),
    HISTORY_EVENT: N_("a consolidation summary"),
    FACTS_EVENT: N_("the record of the facts themselves"),
    "reply": N_("the answer to a command"),
}
_RECALLING = frozenset(
    f"{package}{sign}{name}"
    for package, name in (
        ("memory", "recall"), ("memory", "show"), ("memory", "save"), ("memory", "daily"),
        ("tape", "search"), ("tape", "anchors"),
    )
    for sign in "._"
)  # fmt: skip
_REPEATED = 0.6
"""Share of a fact's words in an assistant's message that makes the message an echo."""


def unsupported_facts(
    scope: AuditedScope, timezone: tzinfo | None = None
) -> Iterator[AuditFinding]:
    """Yield active facts that rest on the bot's own output, on nothing, or on no person's words.

    Args:
        scope: The scope to check.
        timezone: The user's time zone, to resolve "tomorrow" and the like.
    """
    mutual = _mutual(scope)
    for one, other in sorted({(min(pair), max(pair)) for pair in mutual.items()}):
        facts = [fact for fact in scope.fold.active() if fact.id in (one, other)]
        first, *rest = map(redacted_fact_text, facts)
        why = _(
            "they are each other's evidence: {first} and {second}",
            first=first,
            second="".join(rest),
        )
        yield AuditFinding("loops", scope.name, (one, other), why, scope.remove_commands(*facts))
    for fact in scope.fold.active():
        if fact.id not in mutual and fact.id not in mutual.values():
            yield from _one(scope, fact, timezone)


def _one(scope: AuditedScope, fact: Fact, timezone: tzinfo | None) -> Iterator[AuditFinding]:
    do = _(
        "{edit} in your own words, or {remove}",
        edit=scope.edit_command(fact),
        remove=scope.remove_commands(fact),
    )
    admission, text = scope.admission_text(fact), redacted_fact_text(fact)
    echo = next(
        (what for what in (_echo(fact, *one) for one in scope.evidence_of(fact)) if what), None
    )
    if echo is not None:
        why = _(
            "its evidence is {echo} ({admission}): {text}",
            echo=echo,
            admission=admission,
            text=text,
        )
        yield AuditFinding("loops", scope.name, (fact.id,), why, do)
    elif (missing := _unsupported(scope, fact, timezone)) is not None:
        why = f"{missing} ({admission}): {text}"
        yield AuditFinding("unsupported", scope.name, (fact.id,), why, do)
    elif fact.origin not in _OWN:
        why = f"{_(_ORIGINS[fact.origin])} ({admission}): {text}"
        yield AuditFinding(
            "origin", scope.name, (fact.id,), why, f"{scope.why_command(fact)}; {do}"
        )


_ORIGINS = {
    "assistant": N_("the assistant said it, no person"),
    "tool": N_("a tool's result says it, no person"),
    "quoted": N_("quoted or forwarded text says it, no person"),
    "client": N_("a program says it, no person"),
}


# Echoes.


def _echo(fact: Fact, cited: Evidence, entry: TapeEntry | None) -> str | None:
    """Describe a piece of evidence that the bot itself produced; None for any other."""
    if entry is None or is_erased(entry):
        return None
    where = f"(#{entry.id})"
    if (what := _rendering(entry)) is not None:
        return None if cited.origin == "import" and entry.kind == "anchor" else f"{_(what)} {where}"
    # A line of another assistant's memory is not this bot's own text.
    spoken = entry.kind in ("message", "tool_call") and cited.origin != "import"
    if spoken and entry.payload.get("role") != "user":
        said = str(entry.payload.get("content", ""))
        if word_overlap(fact.text, said) >= _REPEATED:
            return _("an assistant's message that repeats it {where}", where=where)
    return None


def _rendering(entry: TapeEntry) -> str | None:
    """Describe an entry that the bot rendered from memory; None for any other."""
    if entry.kind == "system":
        return N_("a system prompt, which holds the memory block")
    if entry.kind == "anchor":
        return N_("a summary of the conversation") if entry.is_boundary else N_("the memory block")
    if entry.kind == "event":
        return _ECHOES.get(entry.name or "")
    if entry.kind == "tool_result" and entry.payload.get("name") in _RECALLING:
        return N_("recalled text")
    return None


def _mutual(scope: AuditedScope) -> dict[int, int]:
    """Map facts to facts where each of the two cites a rendering of the other."""
    active = scope.fold.active()
    shown = {fact.id: _shown_by(scope, fact) for fact in active}
    keys = {fact.id: fact_comparison_key(fact.text) for fact in active}
    rests = {
        fact: {one for one, key in keys.items() if one != fact and key in lines}
        for fact, lines in shown.items()
        if lines
    }
    return {
        fact: next(one for one in sorted(others) if fact in rests.get(one, ()))
        for fact, others in rests.items()
        if any(fact in rests.get(one, ()) for one in others)
    }


def _shown_by(scope: AuditedScope, fact: Fact) -> set[str]:
    """Return the normalized lines of all renderings that a fact cites."""
    return {
        fact_comparison_key(line)
        for _, entry in scope.evidence_of(fact)
        if entry is not None and _rendering(entry) is not None
        for line in memory_lines(
            str(entry.payload.get("content") or entry.data.get("content") or "")
        )
    }


# Support.


@dataclass(frozen=True, slots=True)
class _Said:
    """Text of one piece of evidence: the sentences around its quote, and the whole."""

    sentences: str
    whole: str
    when: date | None
    who: str


def _unsupported(scope: AuditedScope, fact: Fact, timezone: tzinfo | None) -> str | None:
    """Return why no evidence of a fact supports it; None if some does."""
    cited = scope.evidence_of(fact)
    if not cited:
        return _("it has no evidence")
    if any(_imported(evidence, entry) for evidence, entry in cited):
        return None
    saids: list[_Said] = []
    broken = ""
    for other, entry in cited:
        said = _said(other, entry, timezone)
        if isinstance(said, _Said):
            saids.append(said)
        else:
            broken = broken or said
    if not saids:
        return broken
    why = _against(fact.text, saids)
    if why is None or detect_secret(fact.text) is None:
        return why
    return _("its evidence does not support it")


def _imported(cited: Evidence, entry: TapeEntry | None) -> bool:
    return cited.origin == "import" and entry is not None and not is_erased(entry)


def _said(cited: Evidence, entry: TapeEntry | None, timezone: tzinfo | None) -> _Said | str:
    """Return the text of a piece of evidence, or the reason why it is invalid."""
    where = {"entry": f"#{cited.entry}", "tape": cited.tape}
    if entry is None:
        return _("its evidence, {entry} of {tape}, does not exist", **where)
    if is_erased(entry):
        return _("its evidence, {entry} of {tape}, was erased", **where)
    texts = third_party_texts(entry) if cited.origin == "quoted" else [sender_text(entry)]
    for text in texts:
        sentences = _holding(cited.quote, text)
        if sentences is not None:
            return _Said(sentences, text, sent_date(entry, timezone), speaker_label(entry))
    if any(_holding(cited.quote, text) is not None for text in third_party_texts(entry)):
        return _("its evidence, {entry} of {tape}, quotes another person", **where)
    return _("its quote is not in its evidence, {entry} of {tape}", **where)


def _holding(quote: str, text: str) -> str | None:
    """Return the sentences around a quote; the whole text for an empty quote; None if not found."""
    if not quote.strip():
        return text if text.strip() else None
    if (sentences := sentences_with_quote(quote, text)) is not None:
        return sentences
    # A quote of one word, a number or signs alone must occur literally.
    bare = " ".join(quote.removesuffix("…").split()).casefold()
    return text if bare and bare in " ".join(text.split()).casefold() else None


def _against(claim: str, saids: list[_Said]) -> str | None:
    """Return why no piece of evidence, nor all together, supports a claim; None if one does."""
    why: str | None = None
    together = _Said(
        " ".join(other.sentences for other in saids),
        " ".join(other.whole for other in saids),
        saids[-1].when,
        saids[-1].who,
    )
    names = tuple({other.who for other in saids})
    for one in (*saids, together) if len(saids) > 1 else saids:
        for said in dict.fromkeys((one.sentences, one.whole)):
            if _literally(claim, said, names):
                return None
            against = unsupported_reason(claim, said, when=one.when, names=names)
            if against is None:
                return None
            why = why or against
    return why


def _literally(claim: str, said: str, names: tuple[str, ...]) -> bool:
    """Return whether a text contains a claim literally, without its speaker prefix."""
    for name in names:
        claim = claim.removeprefix(f"{name}: ")
    key = fact_comparison_key(claim)
    return bool(key) and key in " ".join(fact_comparison_key(line) for line in said.splitlines())
