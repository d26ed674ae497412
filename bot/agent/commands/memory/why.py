"""``/memory why N``: what a fact rests on, and who decided that it is one."""

from __future__ import annotations

from collections.abc import AsyncIterator

from bot.agent.commands.links import link
from bot.agent.commands.memory.numbers import Number, fact_of, missing, number_in, scope_of
from bot.agent.commands.memory.rights import is_elsewhere
from bot.agent.commands.memory.wording import (
    AUTHORS,
    label,
    line,
    literal,
    span,
    sure,
    verdict,
)
from bot.agent.commands.pages import page_of, paged
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.memory.facts.fact import Evidence, Fact
from bot.memory.facts.recorded import decision_on
from bot.memory.gate.likeness import folded
from bot.memory.transcript import shown_time
from bot.tape.entries import TapeEntry

_USAGE = "Which one? For example: `/memory why 3`. `/memory` lists the numbers."


async def why(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory why N``."""
    word, page = page_of(arguments)
    number = number_in(word)
    if number is None:
        return CommandReply(_USAGE)
    fact = fact_of(number, context)
    if fact is None:
        return CommandReply(missing(number, context))
    parts = [part async for part in _Told(number, fact, context).parts()]
    text, buttons = paged("\n".join(parts), page, f"/memory why {number} page")
    return CommandReply(text, buttons=buttons)


class _Told:
    """Tells of one fact."""

    def __init__(self, number: Number, fact: Fact, context: CommandContext) -> None:
        self._number = number
        self._fact = fact
        self._context = context
        self._scope = scope_of(number, context)
        self._timezone = context.zone.timezone

    async def parts(self) -> AsyncIterator[str]:
        """Yield what there is to tell, a line each."""
        fact = self._fact
        yield f"{label(fact, shared=self._number.shared)} {literal(fact.text)}"
        yield await self._status()
        if fact.subject:
            yield f"It is about {fact.subject}."
        if fact.slot:
            yield f"It is the one current value of {literal(fact.slot)}: a newer one takes its place."
        for before in self._scope.fold.chain(fact)[1:]:
            told = line(before, shared=self._number.shared)
            yield f"It took the place of {told} ({span(before, self._timezone)})"
        if self._may_see():
            yield "It rests on:" if fact.evidence else "It rests on no person's words."
            for one in fact.evidence:
                yield f"- {evidence_line(one, self._context)}"
        else:
            yield "An owner shared it; whose words it rests on is shown to owners in private."
        entry = await self._scope.batch(fact.admitted)
        decided = decision_on(entry, fact.id) if entry is not None else None
        if entry is not None and decided is not None:
            # Markdown takes a line right below a list for a part of its last item.
            yield f"\nDecision of {self._dated(entry)}: {verdict(decided)}."
            if fact.judged not in (0, fact.admitted) and (later := await self._judged()):
                yield later
            proposed = decided.proposal.text
            if proposed and folded(proposed) != folded(fact.text):
                yield f"It had been proposed as: {literal(proposed)}"

    async def _judged(self) -> str:
        """Return what the judge said later of a fact that was believed at first."""
        entry = await self._scope.batch(self._fact.judged)
        decided = decision_on(entry, self._fact.id) if entry is not None else None
        if entry is None or decided is None:
            return ""
        return f"Judged {self._dated(entry)}: {decided.reason}."

    def _may_see(self) -> bool:
        asker = self._context.asker
        return not self._number.shared or (asker.private and asker.role == "owner")

    async def _status(self) -> str:
        fact = self._fact
        if fact.status == "active":
            unheard = "; not verified yet: the judge has not said whether the words carry it"
            judged = unheard if fact.unverified else ""
            return f"Believed {span(fact, self._timezone)}; {sure(fact.confidence)}{judged}."
        if fact.status == "pending":
            return "It waits for somebody to decide: `/memory pending`."
        entry = await self._scope.batch(fact.batch)
        ended = f"Held {span(fact, self._timezone)}" if fact.valid_to else "It was not accepted"
        if entry is None:
            return f"{ended}; it is not believed."
        return f"{ended}; it ended {self._dated(entry)}: {self._end(entry)}."

    def _end(self, entry: TapeEntry) -> str:
        """Return by what a fact ended."""
        heir = next(
            (
                one
                for one in self._scope.fold.facts.values()
                if one.supersedes == self._fact.id and one.text and one.status != "pending"
            ),
            None,
        )
        if self._fact.status == "superseded" and heir is not None:
            return f"its place was taken by {line(heir, shared=self._number.shared)}"
        if entry.data.get("clears") is True:
            return "all memory was cleared"
        decided = decision_on(entry, self._fact.id)
        return decided.reason if decided is not None else self._fact.status

    def _dated(self, entry: TapeEntry) -> str:
        when = shown_time(entry.meta.get("ts"), self._timezone)
        return f"{when} ({self._author(entry)})"

    def _author(self, entry: TapeEntry) -> str:
        author, asker = str(entry.data.get("author")), entry.data.get("asker")
        if author in AUTHORS:
            return AUTHORS[author]
        me = self._context.asker
        own = not is_elsewhere(str(asker or ""), self._context)
        if asker == me.id or (me.private and own and not self._number.shared):
            return "you asked"
        who = next((one.who for one in self._fact.evidence if one.sender == asker), "")
        if not asker and self._fact.evidence:
            who = self._fact.evidence[-1].who
        return f"{who} asked" if who and self._may_see() else "an owner asked"


def evidence_line(one: Evidence, context: CommandContext) -> str:
    """Return a piece of evidence: who said it, when, a link to the message, its entry, and the words."""
    when = shown_time(one.when, context.zone.timezone) if one.when else "an unknown day"
    address = link(one.tape, one.inbound, private=one.origin != "member")
    message = f"message of {when}"
    if address is not None:
        message = f"[{message}]({address})"
    here = one.tape == context.tape.name
    entry = f"#{one.entry}" if here else f"#{one.entry} of `{one.tape}`"
    quote = f": “{literal(one.quote)}”" if one.quote else ""
    return f"{literal(one.who or one.origin)}, {message}, entry {entry}{quote}"
