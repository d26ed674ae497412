"""Check that each fact's quotes stand on the tapes, and that somebody said that its sentence holds. Pure.

Rule 1: every quote is verbatim in a person's own words on its tape.
Rule 2: text that the bot itself rendered from memory is no evidence.
Rule 3: a model's sentence that no judge and no person confirmed is a quotation.
Rule 4: each fact is reported at most once here, with its worst fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.i18n import N_, _
from bot.memory.audit.findings import AuditedScope, AuditFinding, redacted_fact_text
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.evidence import sender_text, third_party_texts
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.records.tombstones import is_erased
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
_MODELS = ("assistant", "consolidation")


def unsupported_facts(scope: AuditedScope) -> Iterator[AuditFinding]:
    """Yield active facts that rest on the bot's own output, on nothing, or on no person's words."""
    for fact in scope.fold.active():
        yield from _one(scope, fact)


def _one(scope: AuditedScope, fact: Fact) -> Iterator[AuditFinding]:
    do = _(
        "{edit} in your own words, or {remove}",
        edit=scope.edit_command(fact),
        remove=scope.remove_commands(fact),
    )
    admission, text = scope.admission_text(fact), redacted_fact_text(fact)
    echo = next((what for what in (_echo(*one) for one in scope.evidence_of(fact)) if what), None)
    if echo is not None:
        why = _(
            "its evidence is {echo} ({admission}): {text}",
            echo=echo,
            admission=admission,
            text=text,
        )
        yield AuditFinding("loops", scope.name, (fact.id,), why, do)
    elif (missing := _unsupported(scope, fact)) is not None:
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


def _echo(cited: Evidence, entry: TapeEntry | None) -> str | None:
    """Describe a piece of evidence that the bot itself produced; None for any other."""
    if entry is None or is_erased(entry) or (what := _rendering(entry)) is None:
        return None
    if cited.origin == "import" and entry.kind == "anchor":
        return None
    return f"{_(what)} (#{entry.id})"


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


def _unsupported(scope: AuditedScope, fact: Fact) -> str | None:
    """Return what is missing below a fact; None if nothing is."""
    cited = scope.evidence_of(fact)
    if not cited:
        return _("it has no evidence")
    if any(_imported(evidence, entry) for evidence, entry in cited):
        return None
    broken = [why for one in cited if (why := _missing(*one))]
    if len(broken) == len(cited) or (broken and fact.quoted):
        return broken[0]
    admission = scope.replay.admissions.get((fact.admitted, fact.id))
    by_model = admission is not None and admission.author in _MODELS and admission.op != "accept"
    if by_model and not fact.quoted and not fact.judged and not _confirmed(scope, fact):
        return _("no judge and no person said that it holds")
    return None


def _confirmed(scope: AuditedScope, fact: Fact) -> bool:
    """Return whether a person accepted or said a fact again."""
    return any(
        admission.author == "person" or admission.op == "accept"
        for (_entry, number), admission in scope.replay.admissions.items()
        if number == fact.id
    )


def _imported(cited: Evidence, entry: TapeEntry | None) -> bool:
    return cited.origin == "import" and entry is not None and not is_erased(entry)


def _missing(cited: Evidence, entry: TapeEntry | None) -> str:
    """Return why a piece of evidence is invalid; empty if it is not."""
    where = {"entry": f"#{cited.entry}", "tape": cited.tape}
    if entry is None:
        return _("its evidence, {entry} of {tape}, does not exist", **where)
    if is_erased(entry):
        return _("its evidence, {entry} of {tape}, was erased", **where)
    texts = third_party_texts(entry) if cited.origin == "quoted" else [sender_text(entry)]
    if any(_holds(text, cited.quote) for text in texts):
        return ""
    if any(_holds(text, cited.quote) for text in third_party_texts(entry)):
        return _("its evidence, {entry} of {tape}, quotes another person", **where)
    return _("its quote is not in its evidence, {entry} of {tape}", **where)


def _holds(text: str, quote: str) -> bool:
    """Return whether a text has a quote verbatim, but for white space."""
    return " ".join(quote.removesuffix("…").split()) in " ".join(text.split())
