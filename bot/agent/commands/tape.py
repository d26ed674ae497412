"""``/tape``: show the state of the tape and its anchors, and search it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.agent.commands.pagination import paginate, split_page_number, usable_buttons
from bot.agent.commands.parser import split_word
from bot.agent.commands.problem_label import problem_labeller
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.tools.tape import (
    find_anchors,
    render_anchors,
    render_hits,
    render_info,
    search_tape_entries,
)
from bot.core.i18n import N_, _
from bot.core.text import escape_markdown
from bot.tape.search import SearchQuery

_LISTED = 20
_LONGEST_SHOWN = 100


async def _info(rest: str, context: CommandContext) -> CommandReply:  # noqa: ARG001 - a form
    return CommandReply(render_info(await context.tape.info()))


async def _anchors(topic: str, context: CommandContext) -> CommandReply:
    topic, page = split_page_number(topic)
    anchors = await find_anchors(context.tape, topic, _LISTED)
    return _reply(render_anchors(anchors, context.zone.timezone), page, f"/tape anchors {topic}")


async def _search(words: str, context: CommandContext) -> CommandReply:
    words, page = split_page_number(words)
    if not words:
        return CommandReply(
            _("What should I search for? For example: `/tape search the green bicycle`.")
        )
    hits = await search_tape_entries(context.tape, SearchQuery(words, limit=_LISTED))
    told = render_hits(hits, context.zone.timezone, problem_labeller(context.fold))
    return _reply(told, page, f"/tape search {words}")


def _reply(text: str, page: int, command: str) -> CommandReply:
    command = command.strip()
    if len(command) > _LONGEST_SHOWN:
        command = f"{command[:_LONGEST_SHOWN]}…"
    shown, buttons = paginate(escape_markdown(text), page, f"{command} page")  # for the parser
    return CommandReply(shown, buttons=usable_buttons(buttons))


_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "": _info,
    "anchors": _anchors,
    "search": _search,
}

_LISTED_FORMS = (
    (
        "anchors TOPIC",
        N_("show where phases of this conversation began; without TOPIC, the newest"),
    ),
    ("search WORDS", N_("search all messages of this conversation")),
)


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, rest = split_word(arguments)
    chosen = _FORMS.get(form.lower())
    if chosen is None:
        return CommandReply(TAPE_COMMAND.unknown_form_text(form, _FORMS))
    return await chosen(rest, context)


TAPE_COMMAND = Command(
    "tape",
    N_("show and search this conversation's tape"),
    _LISTED_FORMS,
    _run,
    right="read",
)
