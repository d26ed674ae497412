"""``/memory why N``: show a fact's evidence and the decisions about it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from bot.agent.commands.memory.erased_evidence import is_all_evidence_erased, is_evidence_erased
from bot.agent.commands.memory.fact_numbers import (
    FactNumber,
    find_fact,
    parse_fact_number,
    scope_of,
    unknown_number_text,
)
from bot.agent.commands.memory.fact_text import (
    AUTHOR_NAMES,
    confidence_text,
    decision_text,
    escape_markdown,
    fact_label,
    fact_line,
    validity_text,
)
from bot.agent.commands.memory.permissions import is_other_person
from bot.agent.commands.message_links import message_url
from bot.agent.commands.pagination import paginate, split_page_number
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.core.reasons import reason_text
from bot.memory.gate.fact_similarity import fact_comparison_key
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.proposals import find_fact_decision
from bot.memory.records.transcript import format_timestamp
from bot.tape.entries import TapeEntry

_USAGE = "Which one? For example: `/memory why 3`. `/memory` lists the numbers."


async def why_fact(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory why N``."""
    word, page = split_page_number(arguments)
    number = parse_fact_number(word)
    if number is None:
        return CommandReply(_USAGE)
    fact = find_fact(number, context)
    if fact is None:
        return CommandReply(unknown_number_text(number, context))
    parts = [part async for part in _Told(number, fact, context).parts()]
    text, buttons = paginate("\n".join(parts), page, f"/memory why {number} page")
    return CommandReply(text, buttons=buttons)


class _Told:
    """Builds the explanation of one fact."""

    def __init__(self, number: FactNumber, fact: Fact, context: CommandContext) -> None:
        self._number = number
        self._fact = fact
        self._context = context
        self._scope = scope_of(number, context)
        self._timezone = context.zone.timezone

    async def parts(self) -> AsyncIterator[str]:
        """Yield the explanation line by line."""
        fact = self._fact
        yield f"{fact_label(fact, shared=self._number.shared)} {escape_markdown(fact.text)}"
        yield await self._status()
        if fact.subject:
            yield f"It is about {fact.subject}."
        if fact.slot:
            yield f"It is the current value of {escape_markdown(fact.slot)}; a newer value replaces it."
        for before in self._scope.fold.history(fact)[1:]:
            told = fact_line(before, shared=self._number.shared)
            yield f"It replaced {told} ({validity_text(before, self._timezone)})"
        if self._may_see():
            yield "Evidence:" if fact.evidence else "Evidence: no person's words."
            store = self._context.tape.store
            for evidence in fact.evidence:
                gone = ": its words were erased" * await is_evidence_erased(evidence, store)
                yield f"- {evidence_line(evidence, self._context)}{gone}"
        else:
            yield "An owner shared it. Only owners see its evidence, in private."
        entry = await self._scope.find_batch(fact.admitted)
        decided = find_fact_decision(entry, fact.id) if entry is not None else None
        if entry is not None and decided is not None:
            erased = await is_all_evidence_erased(fact, self._context.tape.store)
            # A line directly below a list would continue the last item in Markdown.
            yield f"\nDecision of {self._dated(entry)}: {decision_text(decided, erased=erased)}."
            if fact.judged not in (0, fact.admitted) and (later := await self._judged()):
                yield later
            proposed = decided.proposal.text
            if proposed and fact_comparison_key(proposed) != fact_comparison_key(fact.text):
                yield f"Proposed as: {escape_markdown(proposed)}"

    async def _judged(self) -> str:
        """Return the judge's later decision on a fact that was believed at first."""
        entry = await self._scope.find_batch(self._fact.judged)
        decided = find_fact_decision(entry, self._fact.id) if entry is not None else None
        if entry is None or decided is None:
            return ""
        return f"Judged {self._dated(entry)}: {reason_text(decided.reason).removesuffix('.')}."

    def _may_see(self) -> bool:
        asker = self._context.author
        return not self._number.shared or (asker.private and asker.role == "owner")

    async def _status(self) -> str:
        fact = self._fact
        if fact.status == "active":
            unheard = (
                "; not verified yet: the judge has not decided whether the evidence supports it"
            )
            judged = unheard if fact.unverified else ""
            return f"Believed {validity_text(fact, self._timezone)}; {confidence_text(fact.confidence)}{judged}."
        if fact.status == "pending":
            return "It is pending: `/memory pending`."
        entry = await self._scope.find_batch(fact.batch)
        ended = (
            f"Valid {validity_text(fact, self._timezone)}"
            if fact.valid_to
            else "It was not accepted"
        )
        if entry is None:
            return f"{ended}; it is not believed."
        why = self._end(entry).removesuffix(".")
        return f"{ended}; it ended {self._dated(entry)}{f': {why}' if why else ''}."

    def _end(self, entry: TapeEntry) -> str:
        """Return what ended a fact; empty if nothing but its author is known."""
        heir = next(
            (
                fact
                for fact in self._scope.fold.facts.values()
                if fact.supersedes == self._fact.id and fact.text and fact.status != "pending"
            ),
            None,
        )
        if self._fact.status == "superseded" and heir is not None:
            return f"replaced by {fact_line(heir, shared=self._number.shared)}"
        if entry.data.get("clears") is True:
            return "all memory was cleared"
        decided = find_fact_decision(entry, self._fact.id)
        reason = decided.reason if decided is not None else self._fact.status
        return "" if reason == "ended" else reason_text(reason)

    def _dated(self, entry: TapeEntry) -> str:
        when = format_timestamp(entry.meta.get("ts"), self._timezone)
        return f"{when} ({self._author(entry)})"

    def _author(self, entry: TapeEntry) -> str:
        author, asker = str(entry.data.get("author")), entry.data.get("asker")
        if author in AUTHOR_NAMES:
            return AUTHOR_NAMES[author]
        me = self._context.author
        own = not is_other_person(str(asker or ""), self._context)
        if asker == me.id or (me.private and own and not self._number.shared):
            return "you asked"
        who = next(
            (evidence.who for evidence in self._fact.evidence if evidence.sender == asker), ""
        )
        if not asker and self._fact.evidence:
            who = self._fact.evidence[-1].who
        return f"{who} asked" if who and self._may_see() else "an owner asked"


def evidence_line(evidence: Evidence, context: CommandContext) -> str:
    """Return a piece of evidence as text: speaker, time, link to the message, entry and quote."""
    when = (
        format_timestamp(evidence.when, context.zone.timezone)
        if evidence.when
        else "an unknown day"
    )
    address = message_url(evidence.tape, evidence.inbound, private=evidence.origin != "member")
    message = f"message of {when}"
    if address is not None:
        message = f"[{message}]({address})"
    here = evidence.tape == context.tape.name
    entry = f"#{evidence.entry}" if here else f"#{evidence.entry} of `{evidence.tape}`"
    quote = f": “{escape_markdown(evidence.quote)}”" if evidence.quote else ""
    return f"{escape_markdown(evidence.who or evidence.origin)}, {message}, entry {entry}{quote}"
