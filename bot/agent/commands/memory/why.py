"""``/memory why N``: show a fact's evidence and the decisions about it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

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
    author_name,
    confidence_text,
    decision_text,
    fact_label,
    fact_line,
    validity_text,
)
from bot.agent.commands.memory.permissions import is_other_person
from bot.agent.commands.message_links import message_url
from bot.agent.commands.pagination import paginate, split_page_number
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.texts import local_time
from bot.core.i18n import N_, _
from bot.core.text import escape_markdown
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.fact_words import fact_words
from bot.memory.records.proposals import find_fact_decision
from bot.tape.entries import TapeEntry

_USAGE = N_("Which one? For example: `/memory why 3`. `/memory` lists the numbers.")

_ENDINGS = {
    "dropped": N_("dropped"),
    "retired": N_("retired"),
    "superseded": N_("superseded"),
}


async def why_fact(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory why N``."""
    word, page = split_page_number(arguments)
    number = parse_fact_number(word)
    if number is None:
        return CommandReply(_(_USAGE))
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
        yield f"{fact_label(fact, shared=self._number.shared)} {escape_markdown(fact_words(fact, self._timezone))}"
        yield await self._status()
        if fact.subject:
            yield _("It is about {subject}.", subject=escape_markdown(fact.subject))
        for line in self._replaced():
            yield line
        if self._may_see():
            yield _("Evidence:") if fact.evidence else _("Evidence: no person's words.")
            store = self._context.tape.store
            for evidence in fact.evidence:
                line = evidence_line(evidence, self._context)
                if await is_evidence_erased(evidence, store):
                    line = _("{evidence}: its words were erased", evidence=line)
                yield f"- {line}"
        else:
            yield _("An owner shared it. Only owners see its evidence, in private.")
        entry = await self._scope.find_batch(fact.admitted)
        decided = find_fact_decision(entry, fact.id) if entry is not None else None
        if entry is not None and decided is not None:
            erased = await is_all_evidence_erased(fact, self._context.tape.store)
            # A line directly below a list would continue the last item in Markdown.
            decision = _(
                "Decision of {when}: {decision}.",
                when=self._dated(entry),
                decision=decision_text(decided, erased=erased),
            )
            yield f"\n{decision}"
            if fact.judged not in (0, fact.admitted) and (later := await self._judged()):
                yield later
            if fact.quoted and not fact.ends and fact.gloss != fact.evidence[0].quote:
                yield _("The model's sentence for it: {text}", text=escape_markdown(fact.gloss))

    def _replaced(self) -> Iterator[str]:
        """Yield what the fact replaced, or is to replace or end."""
        fold, shared = self._scope.fold, self._number.shared
        if self._fact.proposes_change:
            for number in self._fact.replaces:
                if (other := fold.get(number)) is not None:
                    told = fact_line(other, self._timezone, shared=shared)
                    if self._fact.ends:
                        yield _("It may end {fact}", fact=told)
                    else:
                        yield _("It may take the place of {fact}", fact=told)
        for before in _all_before(self._fact, fold):
            told = fact_line(before, self._timezone, shared=shared)
            valid = validity_text(before, self._timezone)
            yield _("It replaced {fact} ({valid})", fact=told, valid=valid)

    async def _judged(self) -> str:
        """Return the judge's later decision on a fact that was believed at first."""
        entry = await self._scope.find_batch(self._fact.judged)
        decided = find_fact_decision(entry, self._fact.id) if entry is not None else None
        if entry is None or decided is None:
            return ""
        reason = f"{decided.reason}".removesuffix(".")
        return _("Judged {when}: {reason}.", when=self._dated(entry), reason=reason)

    def _may_see(self) -> bool:
        asker = self._context.author
        return not self._number.shared or (asker.private and asker.role == "owner")

    async def _status(self) -> str:
        fact = self._fact
        if fact.status == "active":
            valid, sure = validity_text(fact, self._timezone), confidence_text(fact.confidence)
            if not fact.quoted:
                return _("Believed {valid}; {confidence}.", valid=valid, confidence=sure)
            if fact.judged:
                return _("It is kept as a quotation.")
            return _(
                "It is a quotation: no judge has said yet whether the model's sentence for it holds. "
                "{command} says that it does.",
                command=f"`/memory accept {fact.id}`",
            )
        if fact.status == "pending":
            return _("It is pending: `/memory pending`.")
        entry = await self._scope.find_batch(fact.batch)
        if fact.valid_to:
            ended = _("Valid {valid}", valid=validity_text(fact, self._timezone))
        else:
            ended = _("It was not accepted")
        if entry is None:
            return _("{ended}; it is not believed.", ended=ended)
        when, why = self._dated(entry), self._end(entry).removesuffix(".")
        if not why:
            return _("{ended}; it ended {when}.", ended=ended, when=when)
        return _("{ended}; it ended {when}: {reason}.", ended=ended, when=when, reason=why)

    def _end(self, entry: TapeEntry) -> str:
        """Return what ended a fact; empty if nothing but its author is known."""
        heir = next(iter(self._scope.fold.successors(self._fact)), None)
        if self._fact.status == "superseded" and heir is not None:
            return _(
                "replaced by {fact}",
                fact=fact_line(heir, self._timezone, shared=self._number.shared),
            )
        if entry.data.get("clears") is True:
            return _("all memory was cleared")
        decided = find_fact_decision(entry, self._fact.id)
        if decided is None:
            return _(_ENDINGS.get(self._fact.status, self._fact.status))
        return "" if decided.reason == "ended" else f"{decided.reason}"

    def _dated(self, entry: TapeEntry) -> str:
        when = local_time(entry.meta.get("ts"), self._timezone)
        return _("{time} ({author})", time=when, author=self._author(entry))

    def _author(self, entry: TapeEntry) -> str:
        author, asker = str(entry.data.get("author")), entry.data.get("asker")
        if author in AUTHOR_NAMES:
            return author_name(author)
        me = self._context.author
        own = not is_other_person(str(asker or ""), self._context)
        if asker == me.id or (me.private and own and not self._number.shared):
            return _("you asked")
        who = next(
            (evidence.who for evidence in self._fact.evidence if evidence.sender == asker), ""
        )
        if not asker and self._fact.evidence:
            who = self._fact.evidence[-1].who
        return _("{who} asked", who=who) if who and self._may_see() else _("an owner asked")


def _all_before(fact: Fact, fold: FactFold) -> list[Fact]:
    """Return all facts that a fact replaced, and those that they replaced, newest first."""
    found: dict[int, Fact] = {}
    waiting = fold.predecessors(fact)
    while waiting:
        before = waiting.pop(0)
        if before.id not in found:
            found[before.id] = before
            waiting += fold.predecessors(before)
    return list(found.values())


def evidence_line(evidence: Evidence, context: CommandContext) -> str:
    """Return a piece of evidence as text: speaker, time, link to the message, entry and quote."""
    when = _("an unknown day")
    if evidence.when:
        when = local_time(evidence.when, context.zone.timezone)
    address = message_url(evidence.tape, evidence.inbound, private=evidence.origin != "member")
    message = _("message of {time}", time=when)
    if address is not None:
        message = f"[{message}]({address})"
    entry = f"#{evidence.entry}"
    if evidence.tape != context.tape.name:
        entry = _("{entry} of {tape}", entry=entry, tape=f"`{evidence.tape}`")
    who = escape_markdown(evidence.who or evidence.origin)
    line = _("{who}, {message}, entry {entry}", who=who, message=message, entry=entry)
    if not evidence.quote:
        return line
    line = _("{line}: “{quote}”", line=line, quote=escape_markdown(evidence.quote))
    if not evidence.context:
        return line
    return _(
        "{said} (answering: “{question}”)", said=line, question=escape_markdown(evidence.context)
    )
