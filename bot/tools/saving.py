"""``memory.save``: a new text of long-term memory as changes of facts, with what they rest on.

Rule 1: a line rests on the person's own words in the turn that saves it, or earlier in view; where a line
    takes nothing from them it rests on the assistant's, which is too little.
Rule 2: where other people's text is in view (quoted, a file, a tool's result), a line that it carries
    and no person's words do waits for a person.
Rule 3: where there is a judge, a line that puts something in words of its own is saved if its names, numbers and
    dates were said, and is judged afterwards; else rules decide at once.
Rule 4: a daily note is in the prompt as well: what would not be believed is not noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from bot.errors import MemoryRefused
from bot.memory.facts.asked import ORDERS
from bot.memory.facts.citing import cite, cite_others, is_own, others_words, words_in
from bot.memory.facts.fact import Evidence, Fact
from bot.memory.facts.proposals import Batch, Decided, Operation, Outcome, Proposal
from bot.memory.facts.rendering import difference
from bot.memory.gate.claims import best_support, is_verbatim, missing, overlap, unsupported
from bot.memory.gate.ending import not_ended
from bot.memory.gate.orders import gives_orders
from bot.memory.gate.secrets import looks_secret
from bot.memory.guards import check_rewrite, lines_of
from bot.memory.transcript import is_owner, said_on, speaker
from bot.tape.entries import TapeEntry
from bot.tools.registry import ToolContext

_LOOKED_AT = 60
_MOST_LINES = 50
"""New lines in one call: each is compared with all that was said, while everybody waits."""
_CARRIED = 0.5
_EARLIER = 3
"""Messages before those that are answered which a line may rest on as well."""
_OWN_TOOLS = frozenset(
    ("memory_save", "memory_daily", "memory_show", "memory_clear", "memory_forget", "skill_read")
)


def saving(content: str, removed: Sequence[str], context: ToolContext) -> Batch:
    """Return the batch that brings the facts to a new text.

    Args:
        content: The whole new long-term memory.
        removed: Lines that are dropped on purpose.
        context: Of the call.

    Raises:
        MemoryRefused: It would drop what it does not name.
    """
    seen = context.seen.long_term
    check_rewrite(seen, content, removed, strict=True)
    facts = context.memory.facts()
    change = difference(facts, seen, content)
    if not context.may_clear and (change.removed or change.replaced):
        raise MemoryRefused(
            "in a group only an owner may take lines away or change them: keep them as they are"
        )
    _check_lines(len(change.added) + len(change.replaced))
    grounds = replace(_grounds(context), judged=context.judged)
    texts = {one.id: one.text for one in facts}
    proposals = [
        *(
            _proposed("supersede", line, grounds, number, texts[number])
            for line, number in change.replaced
        ),
        *(_proposed("add", line, grounds) for line in change.added),
        *(_ended(number, facts, context) for number in change.removed),
    ]
    return Batch(f"call:{context.call}", "assistant", tuple(proposals))


def noted(note: str, context: ToolContext) -> str:
    """Return a daily note, in a group with who said it, by the rules for lines of memory.

    Raises:
        MemoryRefused: A line of it does not hold; nothing is noted.
    """
    lines: list[str] = []
    _check_lines(len(lines_of(note)))
    grounds = _grounds(context)
    for written in note.splitlines():
        for line in lines_of(written):
            proposal = _proposed("add", line, grounds)
            why = proposal.suspect or proposal.why
            if not why and (what := looks_secret(line)) is not None:
                why = f"it looks like {what}"
            if why:
                raise MemoryRefused(
                    f"{line[:120]!r} is not noted ({why}): note only what the user said themselves"
                )
            written = written.replace(line, proposal.text)  # noqa: PLW2901 - bullets stay
        lines.append(written)
    return "\n".join(lines)


def _check_lines(new: int) -> None:
    if new > _MOST_LINES:
        raise MemoryRefused(
            f"these are {new} new lines: give at most {_MOST_LINES} at a time, the most lasting first"
        )


def told(outcome: Outcome, version: int) -> str:
    """Return what the model is told of its save."""
    saved = outcome.of("approved")
    parts = []
    if saved:
        parts.append(f"Saved to long-term memory (version {version}).")
    elif any(one.verdict in ("refused", "logged") for one in outcome.decided):
        parts.append("Nothing was changed in long-term memory.")
    parts += [_unsaved(one) for one in outcome.decided if one.verdict != "approved"]
    return " ".join(parts) or "Long-term memory already says exactly this."


def is_settled(outcome: Outcome) -> bool:
    """Say whether something of a save is believed now, or was before, or nothing was asked."""
    fine = [one for one in outcome.of("approved", "known") if not waits(one)]
    return bool(fine) or not outcome.decided


def waits(decided: Decided) -> bool:
    """Say whether what is known already waits for a person."""
    fact = decided.fact
    return decided.verdict == "known" and fact is not None and fact.status == "pending"


def _unsaved(decided: Decided) -> str:
    line = decided.proposal.text[:120]
    if decided.proposal.op == "retire" and decided.fact is not None:
        return f"Not taken away ({decided.reason}): {decided.fact.text[:120]!r}."
    if waits(decided):
        return f"It waits for the user to decide with /memory pending: {line!r}."
    if decided.verdict == "known":
        return f"Known already: {line!r}."
    if decided.verdict == "pending":
        return (
            f"Set aside until the user decides with /memory pending ({decided.reason}): {line!r}."
        )
    return f"Not saved ({decided.reason}): {line!r}."


@dataclass(frozen=True, slots=True)
class _Grounds:
    """What lines may rest on.

    Attributes:
        tape: That holds it.
        timezone: The user's.
        asking: The messages that the turn answers.
        own: People's own messages, newest first, those that the turn answers before all others.
        foreign: Texts in view that are no person's own, each as evidence.
        judged: Somebody judges later what rules cannot tell.
    """

    tape: str
    timezone: tzinfo | None
    asking: Sequence[TapeEntry]
    own: Sequence[TapeEntry]
    foreign: Sequence[tuple[str, Evidence]]
    judged: bool = False


def _grounds(context: ToolContext) -> _Grounds:
    earlier = context.memory.fold.window.spoken()[-_LOOKED_AT:]
    newest = [*reversed(context.asking), *reversed(earlier)]
    own = [one for one in newest if one.kind == "message" and is_own(one)]
    return _Grounds(
        context.tape.name,
        context.zone.timezone,
        context.asking,
        [one for one in {one.id: one for one in own}.values() if one.payload.get("content")],
        _foreign(earlier, context.tape.name),
    )


def _proposed(
    op: Operation, line: str, grounds: _Grounds, fact: int | None = None, known: str = ""
) -> Proposal:
    evidence, why, unverified = _evidence(line, grounds, known)
    foreign = [one for text, one in grounds.foreign if overlap(line, text) >= _CARRIED]
    suspect = ""
    if not evidence and foreign:
        evidence = (foreign[-1],)
        suspect = "it is from quoted or fetched text, and no words of a person say it"
    elif gives_orders(line) and not all(_may_order(one) for one in grounds.asking):
        evidence = evidence or tuple(cite(grounds.tape, one) for one in grounds.asking)
        suspect = ORDERS
    if suspect:
        return Proposal(op, line, fact, evidence=evidence, suspect=suspect)
    text = _attributed(line, evidence)
    return Proposal(op, text, fact, evidence=evidence, why=why, unverified=unverified)


def _may_order(entry: TapeEntry) -> bool:
    return entry.meta.get("private", True) is not False or is_owner(entry)


def _attributed(line: str, evidence: Sequence[Evidence]) -> str:
    """Return a line of a group with who said it: "I" is whoever speaks."""
    who = evidence[0].who if evidence and evidence[0].origin == "member" else ""
    return line if not who or who in line else f"{who}: {line}"


def _evidence(line: str, grounds: _Grounds, known: str) -> tuple[tuple[Evidence, ...], str, bool]:
    """Return what a line rests on; why it does not where nothing carries it; whether that is still to be judged.

    Args:
        line: The line.
        grounds: What it may rest on.
        known: The text of the fact whose place it takes.
    """
    for entry in grounds.own:
        sentence = best_support(
            line,
            words_in(entry),
            when=said_on(entry, grounds.timezone),
            names=(speaker(entry),),
        )
        if sentence is not None:
            unverified = grounds.judged and not is_verbatim(line, sentence)
            return (cite(grounds.tape, entry, sentence),), "", unverified
    asking = [one for one in grounds.asking if is_own(one)]
    if not asking or grounds.foreign:
        return (), "no words of the user carry it", False
    # In other words, or in another language: names, numbers and dates must be there all the same.
    names = tuple(speaker(one) for one in asking)
    when = said_on(asking[-1], grounds.timezone)
    cited = tuple(cite(grounds.tape, one) for one in asking)
    said = " ".join(map(words_in, asking))
    why = unsupported(line, said, when=when, names=names)
    if why is not None and known:
        why = unsupported(line, said, when=when, names=names, known=known) and why
    if why is None or not grounds.judged:
        return (cited, "", grounds.judged) if why is None else ((), why, False)
    earlier = [one for one in grounds.own if one not in asking and overlap(line, words_in(one)) > 0]
    earlier = earlier[:_EARLIER]
    said = " ".join([said, known, *map(words_in, earlier)])
    why = missing(line, said, when, names=names, loose=True) or ""
    cited = (*(cite(grounds.tape, one) for one in reversed(earlier)), *cited)
    return ((), why, False) if why else (cited, "", True)


def _foreign(entries: Sequence[TapeEntry], tape: str) -> list[tuple[str, Evidence]]:
    """Return the texts among entries that are no person's own, each as evidence."""
    found = []
    for entry in entries:
        if entry.kind == "tool_result" and entry.payload.get("name") not in _OWN_TOOLS:
            text = str(entry.payload.get("content", ""))
            found.append((text, cite(tape, entry)))
        found += [(text, cite_others(tape, entry, text)) for text in others_words(entry)]
    return found


def _ended(number: int, facts: Sequence[Fact], context: ToolContext) -> Proposal:
    """Return the end of a fact: who is answered must have said that it has ended."""
    fact = next(one for one in facts if one.id == number)
    why: str | None = "the user said nothing of it"
    for entry in filter(is_own, context.asking):
        why = not_ended(fact.text, words_in(entry))
        if why is None:
            return Proposal("retire", fact=number, evidence=(cite(context.tape.name, entry),))
    return Proposal("retire", fact=number, why=why or "")
