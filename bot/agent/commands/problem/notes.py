"""``/problem note``: edit the active problem's working set."""

from __future__ import annotations

from bot.agent.commands.memory.fact_text import shorten
from bot.agent.commands.parser import split_form, split_word
from bot.agent.commands.problem.transitions import find_recorded_change, formatted_name
from bot.agent.commands.registry import CommandContext, CommandReply, idempotency_key
from bot.core.i18n import N_, _
from bot.core.text import escape_markdown
from bot.memory.records.compartment_records import WorkingSet, working_set_from_json
from bot.memory.records.problem_notes import (
    NOTE_KINDS,
    NoteKind,
    note_lines,
    with_note,
    without_note,
)
from bot.memory.session.bus.working_set import WorkingSetEdit

_SURE = 0.8
"""Confidence of an assumption that a person states."""

_EXAMPLES = N_(
    "For example: `/problem note must stay below 500 €`, `/problem note ask Which hotel?`, "
    "`/problem note decide by train because it is quiet`, `/problem note draft letter Dear …`, "
    "`/problem note drop ask 1`."
)


async def note(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/problem note KIND TEXT`` and ``/problem note drop KIND N``.

    A button appends the beginning of the note to the number, so that it cannot remove another note.
    """
    word, rest = split_form(arguments)
    drops = word == "drop"
    if drops:
        word, rest = split_form(rest)
    kind = next(
        (note_kind for note_kind in NOTE_KINDS if note_kind == word.replace("_", "-")), None
    )
    number, begins = split_form(rest)
    if kind is None or not rest or (drops and not _is_number(number)):
        return CommandReply(_(_EXAMPLES))
    edit = _dropping(kind, int(number), begins) if drops else _noting(kind, rest)
    return await _change(kind, edit, context, drops=drops)


async def _change(
    kind: NoteKind, edit: WorkingSetEdit, context: CommandContext, *, drops: bool
) -> CommandReply:
    bus, cause = context.memory.bus, idempotency_key(context)
    working = await _changed_before(context, cause)
    if working is None:
        problem = await bus.problems.get_active()
        working = await bus.working_sets.change(problem.problem_id, edit, cause=cause)
    owner = await bus.problems.get(working.problem_id)
    lines = [
        f"**{at}.** {escape_markdown(shorten(one))}"
        for at, one in enumerate(note_lines(working, kind), 1)
    ]
    head = _head(kind, "" if owner is None else formatted_name(owner), drops=drops)
    return CommandReply("\n".join([head, *(lines or [_("nothing")])]))


def _head(kind: NoteKind, problem: str, *, drops: bool) -> str:
    shown = f"**{kind}**"
    if not problem:
        return _("Left, {kind}:", kind=shown) if drops else _("Noted, {kind}:", kind=shown)
    if drops:
        return _("Left for {problem}, {kind}:", problem=problem, kind=shown)
    return _("Noted for {problem}, {kind}:", problem=problem, kind=shown)


async def _changed_before(context: CommandContext, cause: str) -> WorkingSet | None:
    """Return the working set this command wrote before a crash, to give the same reply."""
    entry = await find_recorded_change(context, cause)
    records = entry.data.get("working") if entry is not None else None
    return working_set_from_json(records[0]) if isinstance(records, list) and records else None


def _noting(kind: NoteKind, text: str) -> WorkingSetEdit:
    why = ""
    if kind == "decide":
        text, _sep, why = text.partition(" because ")
    elif kind == "draft":
        why, text = split_word(text)
    return lambda working: with_note(working, kind, text, why, _SURE)


def _dropping(kind: NoteKind, number: int, begins: str) -> WorkingSetEdit:
    return lambda working: without_note(working, kind, number, begins)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 2
