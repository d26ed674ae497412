"""Dispatch of the forms of ``/memory``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.agent.commands.export import export
from bot.agent.commands.forget import forget
from bot.agent.commands.memory.beliefs import accept, beliefs, drop, why
from bot.agent.commands.memory.fact_edits import add, edit, share, unshare
from bot.agent.commands.memory.overview import history, summary
from bot.agent.commands.memory.pending import pause, pending, resume
from bot.agent.commands.memory.permissions import requires_owner
from bot.agent.commands.memory.search import search
from bot.agent.commands.memory.undo import clear, undo
from bot.agent.commands.parser import split_form
from bot.agent.commands.registry import Command, CommandContext, CommandReply

_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "why": why,
    "add": add,
    "edit": edit,
    "undo": undo,
    "clear": clear,
    "forget": forget,
    "pending": pending,
    "accept": accept,
    "drop": drop,
    "pause": pause,
    "resume": resume,
    "search": search,
    "history": history,
    "beliefs": beliefs,
    "share": share,
    "unshare": unshare,
    "export": export,
}

_LISTED_FORMS = (
    ("why N", "what number N rests on, and who decided that it is remembered"),
    ("add TEXT", "remember this"),
    ("edit N TEXT", "correct number N"),
    ("undo", "take the last change back; again, the one before it"),
    ("search WORDS", "look through all that was remembered and said here"),
    ("beliefs", "what was concluded, and how sure it still is: `why pN`, `accept pN`, `drop pN`"),
    ("pending", "what waits for you: `accept N`, `drop N`, `drop all`"),
    ("pause", "learn nothing until `resume`"),
    ("history", "what was consolidated, newest last"),
    ("share N", "let everybody see it who talks to this bot; `unshare wN` takes it back"),
    ("export", "write it to a file"),
    ("clear", "empty it (asks first); `undo` brings the facts back"),
    ("forget N", "erase it for good, or all that holds some words: `forget WORDS` (asks first)"),
)


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, rest = split_form(arguments)
    if not form or form.isdecimal():
        return await summary(form, context)
    chosen = _FORMS.get(form)
    if chosen is None:
        return CommandReply(MEMORY_COMMAND.unknown_form_text(form, _FORMS))
    return await chosen(rest, context)


MEMORY_COMMAND = Command(
    "memory", "show what I remember here", _LISTED_FORMS, _run, destructive=requires_owner
)
