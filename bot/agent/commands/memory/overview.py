"""``/memory`` and ``/memory history``: list facts and notes, and show history entries."""

from __future__ import annotations

from collections.abc import Iterator

from bot.agent.commands.memory.fact_text import (
    age_text,
    fact_count_text,
    fact_label,
)
from bot.agent.commands.pagination import paginate, parse_page_number
from bot.agent.commands.problem_label import problem_labeller
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.texts import bold, plain_day
from bot.core.i18n import N_, _, ngettext
from bot.core.text import escape_markdown
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.records.fact import Fact, newer_first
from bot.memory.records.fact_words import fact_words
from bot.memory.session.state.fact_markdown import group_by_subject
from bot.tape.entries import TapeEntry

_SCANNED = 20_000
_LISTED = 10
_NOTES = 3
_HINT = N_(
    "`/memory why N` shows the evidence, `/memory edit N TEXT` corrects a fact, and `/memory "
    "forget N` erases it."
)
_NOTHING = N_("Nothing yet. Tell me something about you, or use `/memory add`.")


async def summary(page: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory``."""
    text, buttons = paginate("\n\n".join(_parts(context)), parse_page_number(page), "/memory")
    return CommandReply(text, buttons=buttons)


def _parts(context: CommandContext) -> Iterator[str]:
    memory, zone = context.memory, context.zone
    own, shared = memory.facts(), memory.workspace.active()
    yield bold(_("What I remember")) + f" ({fact_count_text(len(own))})"
    subjects = group_by_subject(own)
    for subject, facts in subjects.items():
        heading = (
            bold(escape_markdown(subject) or _("other")) + "\n"
            if len(subjects) > 1 or subject
            else ""
        )
        yield heading + _lines(facts, context)
    if not own:
        yield _(_NOTHING)
    if shared:
        yield bold(_("Shared with everyone")) + "\n" + _lines(shared, context, shared=True)
    dailies = zone.read().dailies
    for note in dailies[-_NOTES:][::-1]:
        head = bold(_("Notes of {day}", day=plain_day(note.date)))
        yield f"{head}\n{escape_markdown(note.content)}"
    if len(dailies) > _NOTES:
        left = len(dailies) - _NOTES
        yield ngettext("and notes of {n} earlier day", "and notes of {n} earlier days", left)
    yield "\n".join(_state(context))
    if own or shared:
        yield _(_HINT)


def _lines(facts: list[Fact], context: CommandContext, *, shared: bool = False) -> str:
    today, timezone = context.zone.today(), context.zone.timezone
    lines = []
    for fact in newer_first(facts):
        old = age_text(fact.valid_from, today, timezone)
        since = f" ({old})" if old else ""
        told = escape_markdown(fact_words(fact, timezone))
        # A quotation tells its day itself.
        told += "" if fact.quoted else since
        pinned = "📌 " if fact.standing else ""
        lines.append(f"{fact_label(fact, shared=shared)} {pinned}{told}")
    return "\n".join(lines)


def _state(context: CommandContext) -> Iterator[str]:
    waiting = len(context.memory.home.fold.pending())
    if waiting:
        yield ngettext("{n} pending: `/memory pending`", "{n} pending: `/memory pending`", waiting)
    if quoted := sum(fact.quoted for fact in context.memory.facts()):
        yield ngettext(
            "{n} is in your own words: no judge has checked a sentence for it.",
            "{n} are in your own words: no judge has checked a sentence for them.",
            quoted,
        )
    if context.memory.paused:
        yield _("Paused: I learn nothing until `/memory resume`.")
    left = ngettext(
        "{n} message is not consolidated yet.",
        "{n} messages are not consolidated yet.",
        context.fold.window.unconsolidated,
    )
    state = _("Consolidation: {state}.", state=context.consolidation_line())
    yield f"{left} {state}"


async def history(page: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory history``."""
    entries: list[TapeEntry] = []
    scanned = 0
    async for entry in context.tape.read_back():
        scanned += 1
        if entry.kind == "event" and entry.name == HISTORY_EVENT:
            entries.append(entry)
        if len(entries) == _LISTED or scanned == _SCANNED:
            break
    if not entries:
        return CommandReply(_("There is no history yet: nothing was consolidated."))
    mark = problem_labeller(context.fold)
    told = "\n\n".join(
        escape_markdown(f"{entry.data.get('entry', '')}{mark(entry)}")
        for entry in reversed(entries)
    )
    text, buttons = paginate(told, parse_page_number(page), "/memory history")
    return CommandReply(text, buttons=buttons)
