"""``/memory search WORDS``: search facts (ended ones too), daily notes and messages."""

from __future__ import annotations

from collections.abc import Iterable

from bot.agent.commands.memory.fact_text import fact_line, validity_text
from bot.agent.commands.pagination import paginate, split_page_number, usable_buttons
from bot.agent.commands.problem_label import problem_labeller
from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.texts import bold, plain_day
from bot.agent.tools.tape import render_hits, search_tape_entries
from bot.core.i18n import N_, _, format_number
from bot.core.text import escape_markdown
from bot.memory.gate.memory_validation import memory_lines
from bot.memory.records.attachments import one_line
from bot.memory.records.fact import Fact
from bot.memory.session.file_folder import FileSection
from bot.tape.index.terms import telling_terms
from bot.tape.search import MAX_QUERY_LENGTH, SearchQuery

_SAID = 20
_FACTS = 50
_IN_FILES = 10
_EXCERPT = 200
_LONGEST_SHOWN = 100
_MARKS = {"pending": N_("pending"), "dropped": N_("not accepted")}


async def search(arguments: str, context: CommandContext) -> CommandReply:
    """Answer ``/memory search WORDS``."""
    words, page = split_page_number(arguments)
    if not words:
        return CommandReply(_("What should I search for? For example: `/memory search green tea`."))
    if len(words) > MAX_QUERY_LENGTH:
        most = format_number(MAX_QUERY_LENGTH)
        return CommandReply(
            _("That is too long: a search takes at most {most} characters.", most=most)
        )
    parts = []
    if facts := _facts(words, context):
        parts.append("\n".join([bold(_("Remembered")), *facts]))
    if notes := _notes(words, context):
        parts.append("\n".join([bold(_("Daily notes")), *notes]))
    kinds = frozenset({"message", "event"})
    hits = await search_tape_entries(context.tape, SearchQuery(words, kinds=kinds, limit=_SAID))
    if hits:
        told = escape_markdown(
            render_hits(hits, context.zone.timezone, problem_labeller(context.fold))
        )
        parts.append("\n".join([bold(_("Said here")), told]))
    if context.files is not None:
        sections = await context.files.search(context.memory, words, _IN_FILES)
        if sections:
            parts.append("\n".join([bold(_("In files")), *map(file_line, sections)]))
    if not parts:
        return CommandReply(_("Nothing found in memory or in this chat."))
    shown = words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"
    text, buttons = paginate("\n\n".join(parts), page, f"/memory search {shown} page")
    return CommandReply(text, buttons=usable_buttons(buttons))


def file_line(section: FileSection) -> str:
    """Return a line for a section of a file: its source and the beginning of its text."""
    return escape_markdown(f"- {section.source}: {one_line(section.text, _EXCERPT)}")


def _facts(words: str, context: CommandContext) -> list[str]:
    memory = context.memory
    own = _matching(words, memory.home.fold.facts.values())
    shared = _matching(words, memory.workspace.active())
    timezone = context.zone.timezone
    lines = []
    for fact in own:
        mark = _(_MARKS[fact.status]) if fact.status in _MARKS else validity_text(fact, timezone)
        lines.append(f"{fact_line(fact)} ({mark})")
    lines += [
        f"{fact_line(fact, shared=True)} ({validity_text(fact, timezone)})" for fact in shared
    ]
    return lines[:_FACTS]


def _notes(words: str, context: CommandContext) -> list[str]:
    return [
        f"- {plain_day(note.date)}: {escape_markdown(memory_line)}"
        for note in reversed(context.zone.read().dailies)
        for memory_line in memory_lines(note.content)
        if _holds(memory_line, words)
    ]


def _matching(words: str, facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts that contain the words, active ones first."""
    found = [fact for fact in facts if fact.text and _holds(f"{fact.subject} {fact.text}", words)]
    return sorted(found, key=lambda fact: (fact.status != "active", fact.id))


def _holds(text: str, words: str) -> bool:
    wanted = set(telling_terms(words))
    return wanted <= set(telling_terms(text)) if wanted else words.casefold() in text.casefold()
