"""``/memory undo`` and ``/memory clear``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from bot.agent.commands.memory.erased_evidence import is_all_evidence_erased
from bot.agent.commands.memory.fact_edits import ALREADY_DONE
from bot.agent.commands.memory.fact_text import bullet_list, fact_count_text, fact_line
from bot.agent.commands.memory.overview import summary
from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import CommandContext, CommandReply, idempotency_key
from bot.agent.texts import joined
from bot.bus import Button
from bot.core.i18n import N_, _, ngettext
from bot.memory.records.fact import Fact
from bot.memory.records.fact_undo import undone_batch_id
from bot.memory.records.proposals import BatchOutcome, ProposalBatch, ProposalDecision
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.memory_clear import (
    ClearPreview,
    clear_bus,
    clear_memory,
    preview_clear,
)
from bot.memory.session.state.zone_snapshot import DailyNote, MemorySnapshot
from bot.memory.session.state.zone_versions import (
    MEMORY_UNDONE_EVENT,
    notes_before_clearing,
    read_zone_versions,
)
from bot.tape.entries import TapeEntry, event

_NOTHING = N_("There is nothing to undo.")
_NAMED = 5
_CHANGED = N_(
    "Memory has changed since, so nothing was undone. `/memory undo` undoes the newest change."
)


async def undo(looked_at: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory undo``, and ``/memory undo ID``, which a button uses to name the change."""
    home, key = context.memory.home, idempotency_key(context)
    batch = ProposalBatch(key, "undo", ())
    if key not in home.fold.decided_keys:
        proposal_batch = await home.undo_batch()
        if looked_at and (proposal_batch is None or looked_at != str(proposal_batch.undone_entry)):
            return CommandReply(_(_CHANGED), replaces_message=False)
        if proposal_batch is None or await _is_import(proposal_batch, context):
            return await _undo_notes(context)
        undone = await home.find_batch(proposal_batch.undone_entry or 0)
        lost = await _without_evidence(undone, context) if undone is not None else {}
        batch = replace(
            proposal_batch,
            key=key,
            asker=context.author.id,
            proposals=tuple(
                one
                for one in proposal_batch.proposals
                if not (one.op == "reopen" and one.fact in lost)
            ),
        )
    outcome = await context.memory.apply(batch)
    recorded = await home.find_batch(outcome.entry)
    undone = await home.find_batch(undone_batch_id(recorded) or 0) if recorded is not None else None
    if undone is None:
        return CommandReply(_(ALREADY_DONE), zone_edit=context.memory.with_current_facts)
    notes = await _notes_before(undone, context)

    def change(snapshot: MemorySnapshot) -> MemorySnapshot:
        fresh = context.memory.with_current_facts(snapshot)
        dailies = _merged(notes, fresh.dailies)
        if dailies == fresh.dailies:
            return fresh
        return replace(fresh, version=snapshot.version + 1, dailies=dailies, cleared=False)

    lost = await _without_evidence(undone, context)
    told = [_told(outcome, lost.values())]
    if notes:
        told.append(_("The daily notes of this chat are restored, too."))
    told.append(_("`/memory undo` undoes the change before."))
    note = event(MEMORY_UNDONE_EVENT, {"from": context.zone.read().version, "batch": undone.id})
    return CommandReply("\n\n".join(told), change, [note])


async def _without_evidence(undone: TapeEntry, context: CommandContext) -> dict[int, Fact]:
    """Return the facts that a batch ended and whose evidence was erased since, by number."""
    home = context.memory.home
    facts, undoing = home.fold.facts, await home.undo_of(undone)
    numbers = [one.fact for one in undoing if one.op == "reopen"]
    ended = {number: facts[number] for number in numbers if number in facts}
    store = context.tape.store
    return {
        number: fact
        for number, fact in ended.items()
        if fact.status not in ("active", "pending") and await is_all_evidence_erased(fact, store)
    }


def _told(outcome: BatchOutcome, lost: Iterable[Fact]) -> str:
    lines = [
        _taken_back(decision) for decision in outcome.decisions if decision.verdict == "approved"
    ]
    lines += [
        _(
            "not restored, because the words that it rested on were erased: {fact}",
            fact=fact_line(fact),
        )
        for fact in lost
    ]
    return "\n".join([_("Undone:"), bullet_list(lines)]) if lines else _("Undone.")


def _taken_back(decided: ProposalDecision) -> str:
    fact = decided.fact
    if fact is None:
        return f"{decided.reason}"
    if decided.proposal.op == "retire":
        return _("removed: {fact}", fact=fact_line(fact))
    if decided.proposal.op == "weaken":
        return _("newest evidence removed: {fact}", fact=fact_line(fact))
    if fact.status == "pending":
        return _("pending again: {fact}", fact=fact_line(fact))
    return _("restored: {fact}", fact=fact_line(fact))


async def _is_import(batch: ProposalBatch, context: CommandContext) -> bool:
    """Return whether a batch would undo the import that a scope began with."""
    entry = await context.memory.home.find_batch(batch.undone_entry or 0)
    return entry is not None and entry.data.get("author") == "import"


async def _notes_before(undone: TapeEntry, context: CommandContext) -> tuple[DailyNote, ...]:
    """Return the daily notes that were removed when all memory was cleared in this chat."""
    key, name = str(undone.data.get("key")), context.tape.name
    here = key.startswith((f"command:{name}:", f"call:{name}:"))
    if not here or undone.data.get("clears") is not True:
        return ()
    return await notes_before_clearing(context.tape, str(undone.meta.get("ts")))


def _merged(before: tuple[DailyNote, ...], now: tuple[DailyNote, ...]) -> tuple[DailyNote, ...]:
    """Return the current notes joined with earlier ones that they do not contain."""
    notes = {note.date: note.content for note in now}
    for note in before:
        later = notes.get(note.date, "")
        if note.content not in later:
            notes[note.date] = f"{note.content}\n{later}".strip()
    return tuple(DailyNote(day, notes[day]) for day in sorted(notes))


async def _undo_notes(context: CommandContext) -> CommandReply:
    """Restore earlier daily notes, if no change of facts is left to undo."""
    earlier = await _earlier_notes(context)
    if earlier is None:
        return CommandReply(_(_NOTHING))
    current = context.zone.read().version
    note = event(
        MEMORY_UNDONE_EVENT, {"from": current, "to": earlier.version, "version": current + 1}
    )
    return CommandReply(
        _("The daily notes are restored to version {version}.", version=earlier.version),
        lambda snapshot: replace(
            snapshot, version=snapshot.version + 1, dailies=earlier.dailies, cleared=False
        ),
        [note],
    )


async def _earlier_notes(context: CommandContext) -> MemorySnapshot | None:
    """Return the newest earlier zone with other notes; repeated undos go further back."""
    current, zone = context.zone.read(), context.zone
    ceiling = current.version
    async with aclosing(read_zone_versions(context.tape)) as zones:
        async for version in zones:
            memory_snapshot = version.snapshot.pruned(zone.today(), zone.retention_days)
            if memory_snapshot.version == ceiling and version.restores is not None:
                ceiling = version.restores
            if memory_snapshot.version < ceiling and memory_snapshot.dailies != current.dailies:
                return memory_snapshot
    return None


async def clear(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory clear``, which asks, ``/memory clear yes``, which clears, and ``no``, which shows what stays."""
    word, looked_at = split_form(arguments.lower())
    if word == "no":
        return await summary("", context)
    memory, key = context.memory, idempotency_key(context)
    if key in memory.home.fold.decided_keys:
        await clear_bus(memory, key)
        return _cleared(memory, memory.home.fold.decided_keys[key], _(_COPY_SAVED))
    state = f"{context.zone.read().version}-{memory.home.fold.last_change}"
    dailies, more = context.zone.read().dailies, preview_clear(memory)
    if not (memory.facts() or memory.home.fold.pending() or dailies or more):
        return CommandReply(_("There is nothing to clear."), replaces_message=False)
    if word != "yes":
        command = f"/memory clear yes {state}"
        return CommandReply(
            _clear_question(len(memory.facts()), more, f"`{command}`"),
            buttons=(
                Button(_("Clear it"), command),
                Button(_("Keep it"), f"/memory clear no {state}"),
            ),
        )
    if looked_at and looked_at != state:
        return CommandReply(
            _(
                "Memory has changed since I asked, so nothing was cleared. Check it with `/memory` "
                "first."
            ),
            replaces_message=False,
        )
    copy = await context.export_memory()
    outcome = await clear_memory(memory, key, context.author.id)
    saved = _("A copy is in {path}", path=f"`{_shown(copy.path, context)}`")
    return _cleared(memory, outcome.entry, saved, more)


_COPY_SAVED = N_("A copy was saved before")


def _clear_question(facts: int, more: ClearPreview, command: str) -> str:
    parts = []
    if more.values:
        parts.append(ngettext("{n} shared value", "{n} shared values", len(more.values)))
    if more.beliefs:
        parts.append(ngettext("{n} belief", "{n} beliefs", len(more.beliefs)))
    if more.notes:
        parts.append(_("the working notes of its problems"))
    if not parts:
        return _(
            "This clears long-term memory ({facts}) and the daily notes of this chat. To continue, say yes "
            "or send {command}.",
            facts=fact_count_text(facts),
            command=command,
        )
    return _(
        "This clears long-term memory ({facts}) and the daily notes of this chat, with {more}. To "
        "continue, say yes or send {command}.",
        facts=fact_count_text(facts),
        more=joined(parts),
        command=command,
    )


def _cleared(
    memory: LongTermMemory, entry: int, copy: str, more: ClearPreview | None = None
) -> CommandReply:
    if more:
        restores = _("{copy}; `/memory undo` restores the facts and the daily notes.", copy=copy)
    else:
        restores = _("{copy}; `/memory undo` restores it.", copy=copy)
    lines = [_("Memory is cleared."), restores]
    return CommandReply(
        " ".join([*lines, *_not_undone(more)]),
        # Values shared with everyone stay.
        lambda snapshot: replace(
            snapshot.without_own_memory(), reference=memory.render_reference()
        ),
        buttons=(Button(_("Undo"), f"/memory undo {entry}"),),
    )


def _not_undone(more: ClearPreview | None) -> list[str]:
    """Return what restores the rest of what was cleared."""
    told = []
    if more is not None and more.values:
        told.append(_("Restore shared values one by one: `/reference rollback KEY N`."))
    if more is not None and more.beliefs:
        command = f"`/memory accept {' '.join(more.beliefs[:_NAMED])}`"
        told.append(_("Restore beliefs with {command}.", command=command))
    if more is not None and more.notes:
        told.append(_("Working notes cannot be restored."))
    return told


def _shown(path: Path, context: CommandContext) -> str:
    """Return a file's path for an owner in private, else only its name."""
    return str(path) if context.author.role == "owner" and context.author.private else path.name
